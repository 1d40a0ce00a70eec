"""An image-text model: pixels and sentences become vectors of one space."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import ConfigError, ModelError
from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.device import exact, first_batch, is_out_of_memory, out_of_memory, release
from pathnav.retrieval.network import Network

FORMAT = "image-text-model-1"
TEXT_BATCH = 16
WHITE = 255

Vectors = NDArray[np.float32]


class ImageTextModel:
    """A loaded network on its device; `load` makes one. Any number of threads may call it.

    A row does not depend on what else is in a call: every batch that the network sees has the same shape, filled up
    where images or texts run out. Another `batch` may change a row in the last digits of fp32.

    Args:
        choice: What was asked for.
        network: The network, on `device`.
        device: `cpu`, `cuda:N` or `mps`.
        precision: `fp32`, `bf16` or `fp16`.
    """

    def __init__(self, choice: ModelChoice, network: Network, device: str, precision: str) -> None:
        self.choice = choice
        self.device = device
        self.precision = precision
        self._network = network
        self._lock = threading.RLock()
        self._image_batch = choice.batch or first_batch(device, network.preprocess.side_px)
        self._text_batch = TEXT_BATCH
        self._dimensions = 0
        try:
            self._dimensions = int(self.encode_texts(["."]).shape[1])
            self.encode_images(np.zeros((1, self.side_px, self.side_px, 3), np.uint8))
        except ModelError as error:  # a network without numbers in it is a wrong checkpoint
            raise ConfigError(str(error)) from error

    @property
    def side_px(self) -> int:
        """Width and height of the images that the network sees."""
        return self._network.preprocess.side_px

    @property
    def dimensions(self) -> int:
        """The length of an embedding."""
        return self._dimensions

    @property
    def context_tokens(self) -> int:
        """The most tokens of a text, marks of begin and end included."""
        return self._network.context_tokens

    @property
    def batch(self) -> int:
        """Images that the network sees at a time; halved when memory runs out."""
        return self._image_batch

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON that tells this model from any other whose embeddings would differ."""
        return {
            "format": FORMAT,
            **self._network.identity,
            "preprocess": self._network.preprocess.as_json,
            "dimensions": self.dimensions,
            "precision": self.precision,
        }

    @property
    def key(self) -> str:
        """SHA-256 of `identity`, hexadecimal."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def encode_images(self, images: NDArray[np.uint8]) -> Vectors:
        """Return the embeddings of images.

        Args:
            images: uint8 RGB, shape (n, side_px, side_px, 3); `fitted` brings any image to that size.

        Returns:
            float32, shape (n, dimensions), rows of unit length.

        Raises:
            ConfigError: If the shape is another, or memory does not suffice for one image.
        """
        expected = (self.side_px, self.side_px, 3)
        if images.ndim != 4 or images.shape[1:] != expected or images.dtype != np.uint8:
            raise ConfigError(
                f"images must be uint8 of shape (n, {expected[0]}, {expected[1]}, 3), got {_spelled(images)}"
            )
        with self._lock:
            while True:
                rows = self._rows(
                    len(images), self._image_batch, lambda at: self._pixels(images[at], self._image_batch)
                )
                if rows is not None:
                    return rows
                self._image_batch = self._halved(self._image_batch, "image")

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the embeddings of texts; what is too long is cut, `is_cut` tells.

        Returns:
            float32, shape (len(texts), dimensions), rows of unit length.

        Raises:
            ConfigError: If memory does not suffice for one text.
        """
        if isinstance(texts, str) or not all(isinstance(one, str) for one in texts):
            raise ConfigError("texts must be a sequence of texts")
        with self._lock:
            while True:
                rows = self._rows(len(texts), self._text_batch, lambda at: self._sentences(texts[at], self._text_batch))
                if rows is not None:
                    return rows
                self._text_batch = self._halved(self._text_batch, "text")

    def is_cut(self, text: str) -> bool:
        """Return whether a text is longer than the text tower reads."""
        with self._lock:
            return self._network.is_cut(text)

    def fitted(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return an image as the network's square: its long side fills it, its surplus is white.

        Args:
            rgb: uint8 RGB, shape (height_px, width_px, 3).

        Returns:
            uint8 RGB, shape (side_px, side_px, 3), the image at the upper left; the image itself where it fits already.
        """
        from PIL import Image

        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
            raise ConfigError(f"an image must be uint8 of shape (height_px, width_px, 3), got {_spelled(rgb)}")
        side, (height, width) = self.side_px, rgb.shape[:2]
        if (height, width) == (side, side):
            return rgb
        scale = side / max(height, width)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        bilinear = self._network.preprocess.interpolation == "bilinear"
        method = Image.Resampling.BILINEAR if bilinear else Image.Resampling.BICUBIC
        small = rgb if size == (width, height) else np.asarray(Image.fromarray(rgb).resize(size, method))
        square = np.full((side, side, 3), WHITE, np.uint8)
        square[: size[1], : size[0]] = small
        return square

    def _rows(self, count: int, batch: int, encode: Callable[[slice], Any]) -> Vectors | None:
        """Return all rows, or None where memory ran out: a smaller batch then begins anew, with one shape for all."""
        rows = np.empty((count, self._dimensions), np.float32)
        for start in range(0, count, batch):
            found = self._attempt(lambda start=start: encode(slice(start, start + batch)))  # type: ignore[misc]
            if found is None:
                return None
            rows = rows if rows.shape[1] == found.shape[1] else np.empty((count, found.shape[1]), np.float32)
            rows[start : start + batch] = found[: min(batch, count - start)]
        if not np.isfinite(rows).all():
            way_on = (
                "check the checkpoint" if self.precision == "fp32" else "give precision=fp32, or check the checkpoint"
            )
            name, precision = self.choice.full_name, self.precision
            raise ModelError(f"{name} gives embeddings that are no numbers with precision={precision}; {way_on}")
        return rows

    def _attempt(self, encode: Callable[[], Any]) -> Vectors | None:
        import torch

        try:
            with exact(self.device, self.precision):
                vectors = encode().float()
                return np.asarray(torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy(), np.float32)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        release(self.device)
        return None

    def _halved(self, batch: int, what: str) -> int:
        if batch > 1:
            return batch // 2
        raise out_of_memory(f"a single {what} with {self.choice.full_name}", None, self.device)

    def _pixels(self, images: NDArray[np.uint8], batch: int) -> Any:
        import torch

        preprocess = self._network.preprocess
        full = np.zeros((batch, *images.shape[1:]), np.uint8)
        full[: len(images)] = images
        pixels = torch.from_numpy(full).to(self.device).permute(0, 3, 1, 2).contiguous().float().div_(255)
        mean = torch.tensor(preprocess.mean, device=self.device).view(3, 1, 1)
        std = torch.tensor(preprocess.std, device=self.device).view(3, 1, 1)
        return self._network.encode_image(pixels.sub_(mean).div_(std))

    def _sentences(self, texts: Sequence[str], batch: int) -> Any:
        full = [*texts, *[""] * (batch - len(texts))]
        return self._network.encode_text(self._network.tokenize(full).to(self.device))


def _spelled(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {tuple(array.shape)}"
