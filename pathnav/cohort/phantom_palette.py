"""What a phantom slide is drawn with: textures, nuclei, glands, vessels and the stain's colours."""

import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.phantom_decals import Decal, draw_glands, draw_vessels
from pathnav.cohort.phantom_fibres import Fibres
from pathnav.cohort.phantom_noise import Texture, periodic_noise, to_plane
from pathnav.cohort.phantom_stain import colour_table
from pathnav.cohort.phantom_stamps import Nucleus, StampBank, draw_banks

BLOCK_PX = 1024  # level-0 side of the windows that are rendered

Streams = Callable[[str], np.random.Generator]


@dataclass(frozen=True)
class Palette:
    """Ready-made parts.

    Args:
        fibres: Collagen.
        grain: Fine noise of the camera, about 128.
        mottle: Noise of 6 um, about 128: cytoplasm, and the frayed edge of the section.
        banks: Nuclei by kind.
        glands: Decals, small to large.
        vessels: Decals, small to large.
        colours: Packed RGB of each pair of stain values.
    """

    fibres: Fibres
    grain: Texture
    mottle: Texture
    banks: dict[Nucleus, StampBank]
    glands: tuple[Decal, ...]
    vessels: tuple[Decal, ...]
    colours: NDArray[np.uint32]


def streams(seed: int, side: int) -> Streams:
    """Return a source of random numbers by purpose: one part of a phantom never disturbs another."""

    def stream(purpose: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([seed, side, zlib.crc32(purpose.encode())]))

    return stream


def mix_palette(rng: Streams) -> Palette:
    """Return all parts, drawn afresh from the streams of a phantom."""
    with ThreadPoolExecutor(1) as pool:  # the fibres take as long as all the rest
        fibres = pool.submit(Fibres, rng("fibres"), BLOCK_PX)
        banks = draw_banks(rng("nuclei"))
        glands = draw_glands(rng("glands"), banks[Nucleus.GLAND])
        vessels = draw_vessels(rng("vessels"), banks[Nucleus.STROMAL])
        mottle = 128 + 40 * periodic_noise(rng("mottle"), 1024, 26)
        grain = 128 + 9 * rng("grain").standard_normal((512, 512), dtype=np.float32)
        textures = Texture(to_plane(grain), BLOCK_PX), Texture(to_plane(mottle), BLOCK_PX)
        return Palette(fibres.result(), *textures, banks, glands, vessels, colour_table())
