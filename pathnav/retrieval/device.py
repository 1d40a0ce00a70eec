"""Where a network runs: the device, its precision, its memory, and exact arithmetic on it."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError

MAX_BATCH_CPU = 16
"""ViT-B-32 on one thread: 15 images/s at 16, and no more at 32."""

MAX_BATCH_ACCELERATOR = 256
BYTES_AN_IMAGE_224 = 64_000_000
"""Generous room for what lives while one image of 224 px is encoded: ViT-L-14 needs about 15 MB."""

OUT_OF_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "could not create a memory",
)


def device_for(wanted: str) -> str:
    """Return the device that a choice means: `cpu`, `cuda:N` or `mps`.

    Raises:
        ConfigError: If it is not there.
    """
    import torch

    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return "cuda:0" if cuda else "mps" if mps else "cpu"
    if wanted == "mps" and not mps:
        raise ConfigError(f"device mps was asked for, and torch {torch.__version__} sees none; give device=cpu")
    if wanted.startswith("cuda"):
        count = torch.cuda.device_count() if cuda else 0
        number = int(wanted.partition(":")[2] or 0)
        if number >= count:
            seen = f"{count} CUDA device{'s' if count != 1 else ''}" if count else "no CUDA device"
            raise ConfigError(
                f"device {wanted} was asked for, and torch {torch.__version__} sees {seen}; give device=cpu or auto"
            )
        return f"cuda:{number}"
    return wanted


def precision_for(wanted: str, device: str) -> str:
    """Return the precision that a choice means on a device: `fp32`, `bf16` or `fp16`."""
    import torch

    if wanted != "auto":
        return wanted
    if device == "cpu":
        return "fp32"
    has_bf16 = device.startswith("cuda") and torch.cuda.get_device_capability(device)[0] >= 8
    return "bf16" if has_bf16 else "fp16"


def first_batch(device: str, side_px: int) -> int:
    """Return the batch to begin with: a power of two that the free memory has ample room for."""
    most = MAX_BATCH_CPU if device == "cpu" else MAX_BATCH_ACCELERATOR
    free = free_bytes(device)
    if free is None:
        return most
    an_image = max(1, int(BYTES_AN_IMAGE_224 * (side_px / 224) ** 2))
    room = max(1, free // 2 // an_image)
    return int(min(most, 1 << (room.bit_length() - 1)))


def free_bytes(device: str) -> int | None:
    """Return the memory that a device has free, or None where nobody tells."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    if device != "cpu" or not sys.platform.startswith("linux"):
        return None
    known = [one for one in (_free_of_machine(), _free_of_container(), _free_of_limit()) if one is not None]
    return min(known, default=None)


def _free_of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kib = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kib[0] * 1024 if kib else None


def _free_of_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        most = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = (folder / "memory.current").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return max(0, int(most) - int(used)) if most.isdigit() else None


def _free_of_limit() -> int | None:
    """Return what is left of a limit on the address space (`ulimit -v`)."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch or Python says that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(mark in str(error).lower() for mark in OUT_OF_MEMORY)


def in_mb(size_bytes: int | None) -> str:
    """Return a size as messages tell it."""
    return "an unknown amount" if size_bytes is None else f"{size_bytes / 1e6:,.0f} MB"


def out_of_memory(what: str, needed_bytes: int | None, device: str) -> ConfigError:
    """Return the error that tells what does not fit, what it needs where that is known, and what is free."""
    needed = "" if needed_bytes is None else f"{in_mb(needed_bytes)} are needed and "
    return ConfigError(
        f"not enough memory on {device} for {what}: {needed}{in_mb(free_bytes(device))} are free; "
        "free some, or choose a smaller model or another device"
    )


def check_room(what: str, needed_bytes: int, device: str) -> None:
    """Refuse what plainly does not fit into the free memory of a device.

    Raises:
        ConfigError: With what is needed and what is free.
    """
    free = free_bytes(device)
    if free is not None and needed_bytes > free:
        raise out_of_memory(what, needed_bytes, device)


@contextmanager
def exact(device: str, precision: str) -> Iterator[None]:
    """Compute without gradients, without TF32 and with kernels that repeat themselves to the bit.

    `bf16` and `fp16` are mixed precision: products in half, sums, norms and softmax in fp32, weights kept in fp32.
    """
    import torch

    kind = device.partition(":")[0]
    before = torch.get_float32_matmul_precision()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        stack.enter_context(
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
        )
        stack.callback(torch.set_float32_matmul_precision, before)
        torch.set_float32_matmul_precision("highest")
        if precision != "fp32":
            half = torch.bfloat16 if precision == "bf16" else torch.float16
            stack.enter_context(torch.autocast(kind, dtype=half))
        else:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def release(device: str) -> None:
    """Give back what torch keeps for later on a device."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def moved(module: Any, device: str, size_bytes: int) -> Any:
    """Return a network on its device, ready to encode.

    Raises:
        ConfigError: If it does not fit there.
    """
    if device != "cpu":
        check_room("the network", size_bytes, device)
    try:
        return module.to(device).eval().requires_grad_(False)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory("the network", size_bytes, device) from error
