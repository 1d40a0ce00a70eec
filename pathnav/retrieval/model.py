"""An image-text model: pixels and sentences become vectors of one space, on a CPU, CUDA or MPS."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import ConfigError, ModelError
from pathnav.retrieval.weights import is_out_of_memory, out_of_memory

FORMAT = "image-text-model-1"
WHITE = 255
TEXT_BATCH = 16
MAX_BATCH_CPU = 16
"""ViT-B-32 on one thread: 15 images/s at 16, and no more at 32."""

MAX_BATCH_ACCELERATOR = 256
BYTES_AN_IMAGE_224 = 64_000_000
"""Generous room for what lives while one image of 224 px is encoded: ViT-L-14 needs about 15 MB."""

Rgb = NDArray[np.uint8]
Vectors = NDArray[np.float32]
Channels = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Network:
    """A network of torch with its weights, and how it is called.

    Args:
        name: The architecture's full name.
        module: The network of torch.
        encode_image: Embeddings of a float batch (n, 3, side_px, side_px).
        tokenize: Tokens of texts, cut silently where they are too long.
        is_cut: Whether a text is too long for the tokenizer.
        side_px: Width and height of the images that it sees.
        mean: Per channel, of pixels from 0 to 1.
        std: Likewise.
        interpolation: `bicubic` or `bilinear`, for images of another size.
        identity: JSON that tells these weights from any other.
    """

    name: str
    module: Any
    encode_image: Callable[[Any], Any]
    tokenize: Callable[[list[str]], Any]
    is_cut: Callable[[str], bool]
    side_px: int
    mean: Channels
    std: Channels
    interpolation: str
    identity: Mapping[str, Any]


class ImageTextModel:
    """A network on its device; `load` makes one. Any number of threads may call it.

    A row does not depend on what else is in a call: every batch that the network sees has the same shape, filled up
    where images or texts run out. Another `batch` may change a row in the last digits of fp32.

    Args:
        network: The network, on the CPU.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        precision: `auto`, `fp32`, `bf16` or `fp16`.
        batch: Images that the network sees at a time; None finds it by memory.

    Raises:
        ConfigError: If the device is not there, or the network gives no numbers.
    """

    def __init__(self, network: Network, device: str, precision: str, batch: int | None) -> None:
        self.device = _device(device)
        self.precision = _precision(precision, self.device)
        self.side_px, self.dimensions = network.side_px, 0
        network.module.to(self.device).eval().requires_grad_(False)
        self._network, self._lock = network, threading.RLock()
        self._batches = {"image": batch or _first_batch(self.device, self.side_px), "text": TEXT_BATCH}
        try:
            self.dimensions = self.encode_texts(["."]).shape[1]
            self.encode_images(np.zeros((1, self.side_px, self.side_px, 3), np.uint8))
        except ModelError as error:  # a network without numbers in it is a wrong checkpoint
            raise ConfigError(str(error)) from error

    @property
    def batch(self) -> int:
        """Images that the network sees at a time; halved when memory runs out."""
        return self._batches["image"]

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON that tells this model from any other whose embeddings would differ."""
        network = self._network
        return {
            "format": FORMAT,
            **network.identity,
            "preprocess": {
                "side_px": network.side_px,
                "mean": list(network.mean),
                "std": list(network.std),
                "interpolation": network.interpolation,
            },
            "dimensions": self.dimensions,
            "precision": self.precision,
        }

    def encode_images(self, images: Rgb) -> Vectors:
        """Return the embeddings of images: float32, shape (n, dimensions), rows of unit length.

        Args:
            images: uint8 RGB, shape (n, side_px, side_px, 3); `fitted` brings any image to that size.

        Raises:
            ConfigError: If the shape is another, or memory does not suffice for one image.
        """
        side = self.side_px
        if images.ndim != 4 or images.shape[1:] != (side, side, 3) or images.dtype != np.uint8:
            raise ConfigError(
                f"images must be uint8 of shape (n, {side}, {side}, 3), got {images.dtype} of shape {images.shape}"
            )
        return self._rows("image", len(images), lambda at, batch: self._pixels(images[at], batch))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the embeddings of texts, of unit length; what is too long is cut, `is_cut` tells.

        Raises:
            ConfigError: If memory does not suffice for one text.
        """
        if isinstance(texts, str) or not all(isinstance(one, str) for one in texts):
            raise ConfigError("texts must be a sequence of texts")
        return self._rows("text", len(texts), lambda at, batch: self._sentences(texts[at], batch))

    def is_cut(self, text: str) -> bool:
        """Return whether a text is longer than the text tower reads."""
        with self._lock:
            return self._network.is_cut(text)

    def fitted(self, rgb: Rgb) -> Rgb:
        """Return an image as the network's square: its long side fills it, its surplus is white.

        Args:
            rgb: uint8 RGB, shape (height_px, width_px, 3).
        """
        from PIL import Image

        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
            raise ConfigError(
                f"an image must be uint8 of shape (height_px, width_px, 3), got {rgb.dtype} of shape {rgb.shape}"
            )
        side, (height, width) = self.side_px, rgb.shape[:2]
        if (height, width) == (side, side):
            return rgb
        scale = side / max(height, width)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        method = Image.Resampling[self._network.interpolation.upper()]
        small = rgb if size == (width, height) else np.asarray(Image.fromarray(rgb).resize(size, method))
        square = np.full((side, side, 3), WHITE, np.uint8)
        square[: size[1], : size[0]] = small
        return square

    def _rows(self, what: str, count: int, encode: Callable[[slice, int], Any]) -> Vectors:
        """Return all rows; where memory runs out, half the batch begins anew, with one shape for all."""
        import torch

        with self._lock:
            while True:
                batch = self._batches[what]
                rows = [np.zeros((0, self.dimensions), np.float32)] if count == 0 else []
                try:
                    for start in range(0, count, batch):
                        with _exact(self.device, self.precision):
                            vectors = encode(slice(start, start + batch), batch).float()
                            unit = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
                        rows.append(np.asarray(unit, np.float32))
                    return self._checked(np.concatenate(rows)[:count])
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    if batch == 1:
                        raise out_of_memory(f"a single {what} with {self._network.name} on {self.device}") from error
                self._batches[what] = batch // 2
                if self.device.startswith("cuda"):
                    torch.cuda.empty_cache()

    def _checked(self, rows: Vectors) -> Vectors:
        if not np.isfinite(rows).all():
            raise ModelError(
                f"{self._network.name} gives embeddings that are no numbers with precision={self.precision}; "
                "check the checkpoint, or give precision=fp32"
            )
        return rows

    def _pixels(self, images: Rgb, batch: int) -> Any:
        import torch

        full = np.zeros((batch, *images.shape[1:]), np.uint8)
        full[: len(images)] = images
        pixels = torch.from_numpy(full).to(self.device).permute(0, 3, 1, 2).contiguous().float().div_(255)
        mean = torch.tensor(self._network.mean, device=self.device).view(3, 1, 1)
        std = torch.tensor(self._network.std, device=self.device).view(3, 1, 1)
        return self._network.encode_image(pixels.sub_(mean).div_(std))

    def _sentences(self, texts: Sequence[str], batch: int) -> Any:
        full = [*texts, *[""] * (batch - len(texts))]
        return self._network.module.encode_text(self._network.tokenize(full).to(self.device))


def _device(wanted: str) -> str:
    """Return the device that a choice means: `cpu`, `cuda:N` or `mps`."""
    import torch

    if wanted == "auto":
        has_mps = torch.backends.mps.is_available()
        wanted = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch without CUDA
        said = str(error).partition("\n")[0]
        raise ConfigError(
            f"device {wanted} cannot be used by torch {torch.__version__} ({said}); give device=cpu or auto"
        ) from error
    return "cuda:0" if wanted == "cuda" else wanted


def _precision(wanted: str, device: str) -> str:
    import torch

    if wanted != "auto":
        return wanted
    if device == "cpu":
        return "fp32"
    has_bf16 = device.startswith("cuda") and torch.cuda.get_device_capability(device)[0] >= 8
    return "bf16" if has_bf16 else "fp16"


def _first_batch(device: str, side_px: int) -> int:
    """Return the batch to begin with; on CUDA a power of two that the free memory has ample room for."""
    import torch

    if not device.startswith("cuda"):
        return MAX_BATCH_CPU if device == "cpu" else MAX_BATCH_ACCELERATOR
    an_image = max(1, int(BYTES_AN_IMAGE_224 * (side_px / 224) ** 2))
    room = max(1, int(torch.cuda.mem_get_info(device)[0]) // 2 // an_image)
    return int(min(MAX_BATCH_ACCELERATOR, 1 << (room.bit_length() - 1)))


@contextmanager
def _exact(device: str, precision: str) -> Iterator[None]:
    """Compute without gradients, without TF32 and with kernels that repeat themselves to the bit.

    `bf16` and `fp16` are mixed precision: products in half, sums, norms and softmax in fp32, weights kept in fp32.
    """
    import torch

    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with (
            torch.inference_mode(),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            torch.autocast(device.partition(":")[0], dtype=half, enabled=half is not None),
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
