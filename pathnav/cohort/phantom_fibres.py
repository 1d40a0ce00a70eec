"""The collagen of a phantom slide: a wavy fibre texture and the direction of its fibres, for nuclei to follow."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pathnav.cohort.phantom_noise import Plane, Reals, Texture, periodic_noise, to_plane

PERIOD = 2048  # level-0 px; half a millimetre, no structure at 2.5x is fine enough to show the repetition
_HALF = PERIOD // 2
_DOUBLINGS = 5  # smears over 2**5 texture pixels to each side: fibres of about 30 um


class Fibres:
    """Wavy fibres that repeat every `PERIOD` level-0 pixels.

    Args:
        rng: Where the randomness comes from.
        reach: The largest window side that will be asked for, in level-0 pixels.
    """

    def __init__(self, rng: np.random.Generator, reach: int) -> None:
        self._angle = _direction_field(rng)
        thin = _smear(rng.standard_normal((_HALF, _HALF), dtype=np.float32), self._angle)
        bundles = _smear(periodic_noise(rng, _HALF, 16), self._angle)
        strands = 0.85 * thin / float(thin.std()) + 0.55 * bundles / float(bundles.std())
        self.texture = Texture(_doubled(to_plane(128 + 34 * strands)), reach)

    def angle_at(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the fibre direction at level-0 points, in radians clockwise from the x axis (y points down)."""
        rows, columns = (y.astype(np.int64) // 2) % _HALF, (x.astype(np.int64) // 2) % _HALF
        angle: NDArray[np.float32] = self._angle[rows, columns]
        return angle


def _direction_field(rng: np.random.Generator) -> Reals:
    """Return the fibre direction of each texture pixel: a main direction that meanders."""
    swing = 0.75 * periodic_noise(rng, _HALF, 512) + 0.22 * periodic_noise(rng, _HALF, 128)
    return np.asarray(rng.uniform(0, np.pi) + swing, dtype=np.float32)


def _smear(noise: Reals, angle: Reals) -> Reals:
    """Return noise averaged along the direction field (line integral convolution by doubling)."""
    rows, columns = np.indices(noise.shape, dtype=np.int32)
    sine, cosine = np.sin(angle), np.cos(angle)
    smeared = noise
    for power in range(_DOUBLINGS):
        down, across = (np.rint(part * 2**power).astype(np.int32) for part in (sine, cosine))
        ahead = ((rows + down) % _HALF) * _HALF + (columns + across) % _HALF
        behind = ((rows - down) % _HALF) * _HALF + (columns - across) % _HALF
        smeared = 0.5 * smeared + 0.25 * (np.take(smeared, ahead) + np.take(smeared, behind))
    return smeared


def _doubled(tile: Plane) -> Plane:
    """Return a seamless tile enlarged twice, still seamless."""
    margin = 8
    padded = np.pad(tile, margin, mode="wrap")
    side = 2 * padded.shape[0]
    big = np.asarray(Image.fromarray(padded).resize((side, side), Image.Resampling.BICUBIC))
    inner: Plane = big[2 * margin : -2 * margin, 2 * margin : -2 * margin]
    return inner
