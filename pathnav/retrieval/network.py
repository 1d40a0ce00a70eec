"""What every loader hands over: a network, its tokenizer, and what tells it from another."""

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval.checkpoint import Shapes

EXTRA = ("torch", "torchvision", "open_clip")
HOW_TO_INSTALL = "pip install 'pathnav[clip]'"
BYTES_A_WEIGHT = 4
TALKATIVE = ("transformers", "huggingface_hub", "timm")


@dataclass(frozen=True, slots=True)
class Preprocess:
    """How pixels become a network's input.

    Args:
        side_px: Width and height of what the network sees.
        mean: Per channel, of pixels from 0 to 1.
        std: Likewise.
        interpolation: `bicubic` or `bilinear`, for pixels of another size.
    """

    side_px: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    interpolation: str = "bicubic"

    @property
    def as_json(self) -> dict[str, Any]:
        """The settings as a record keeps them."""
        return {
            "side_px": self.side_px,
            "mean": list(self.mean),
            "std": list(self.std),
            "interpolation": self.interpolation,
        }


@dataclass(frozen=True, slots=True)
class Network:
    """A network on the CPU with its weights, and how it is called.

    Args:
        module: The network of torch.
        encode_image: Embeddings of a float batch (n, 3, side_px, side_px).
        encode_text: Embeddings of a batch of tokens (n, context_tokens).
        tokenize: Tokens of texts, cut silently where they are too long.
        is_cut: Whether a text is too long for the tokenizer.
        context_tokens: The most tokens of a text, its marks of begin and end included.
        preprocess: How pixels become its input.
        identity: JSON that tells this network from any other.
    """

    module: Any
    encode_image: Callable[[Any], Any]
    encode_text: Callable[[Any], Any]
    tokenize: Callable[[list[str]], Any]
    is_cut: Callable[[str], bool]
    context_tokens: int
    preprocess: Preprocess
    identity: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        """The memory that its weights take."""
        return int(sum(tensor.numel() * tensor.element_size() for tensor in self.module.state_dict().values()))


def check_extra() -> None:
    """Refuse to go on without the libraries of the extra.

    Raises:
        PluginError: If one is missing, or is there and cannot be imported.
    """
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise PluginError(f"image-text models need {HOW_TO_INSTALL}; {', '.join(missing)} {verb} not installed")
    try:
        with quiet():
            import open_clip  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise PluginError(
            f"open_clip or torch is installed but cannot be imported ({error}); {HOW_TO_INSTALL} in a fresh environment"
        ) from error


def weights_bytes(shapes: Shapes) -> int:
    """Return the memory that tensors of these shapes take in fp32."""
    return sum(math.prod(shape) for shape in shapes.values()) * BYTES_A_WEIGHT


def version_of(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def triple(name: str, value: Any, architecture: str) -> tuple[float, float, float]:
    """Return a mean or deviation per channel.

    Raises:
        ConfigError: If it is neither one number nor three.
    """
    values = tuple(value) if isinstance(value, list | tuple) else (value,) * 3
    if len(values) != 3 or not all(isinstance(one, int | float) for one in values):
        raise ConfigError(f"{architecture}: {name} must be three numbers, got {value!r}")
    return (float(values[0]), float(values[1]), float(values[2]))


def square_side(value: Any, architecture: str) -> int:
    """Return the side of a network's square input.

    Raises:
        ConfigError: If it is not square or not a size.
    """
    sides = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not sides or len(set(sides)) != 1 or not isinstance(sides[0], int) or sides[0] < 1:
        raise ConfigError(f"{architecture} sees images of {value!r} px; pathnav shows a network squares only")
    return sides[0]


class _Silence(logging.Filter):
    """Drops what open_clip says on the root logger, where it says everything."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries from writing to the terminal; what matters comes as an error of ours.

    `logging.info`, as open_clip calls it, also gives a root logger without handlers one that prints.
    """
    root, silence, handler = logging.getLogger(), _Silence(), logging.NullHandler()
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(root.removeHandler, handler)
        root.addHandler(handler)
        stack.callback(root.removeFilter, silence)
        root.addFilter(silence)
        for name in TALKATIVE:
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        yield
