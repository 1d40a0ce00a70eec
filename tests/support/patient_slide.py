"""A slide that tells a patient's name in its metadata and shows it on its label: nothing of that may leave."""

from pathlib import Path

import numpy as np
import tifffile

PATIENT = "Quixote^Miguel"
WORDS = (PATIENT, "Quixote", "Miguel", "1547-09-29", "SS77-Dulcinea", "Zebulon", "label 97x83", "macro 151x67")
"""What stands in the file's metadata, name and folder."""

LABEL_RGB, MACRO_RGB = (255, 0, 255), (0, 255, 255)
"""Colours that occur nowhere else in the slide."""

_SIDE_PX = 1024


def write_patient_slide(folder: Path) -> Path:
    """Write a small slide as Aperio's scanners do, with label and macro image, and return its path.

    The pixels are pink and violet, with less than 200 of green; neither is any of the images' colours.
    """
    path = folder / "Zebulon" / "SS77-Dulcinea_Quixote.svs"
    path.parent.mkdir(parents=True)
    y, x = np.mgrid[:_SIDE_PX, :_SIDE_PX]
    texture = np.random.default_rng(3).integers(0, 30, (_SIDE_PX, _SIDE_PX))
    rgb = np.stack([170 + texture + x // 32, 90 + texture + y // 16, 150 + texture], axis=2).astype(np.uint8)
    about = f"|AppMag = 40|MPP = 0.25|Patient = {PATIENT}|Born = 1547-09-29|User = Zebulon|Title = SS77-Dulcinea"
    name = "Aperio Image Library v12.0.15\n"
    with tifffile.TiffWriter(path) as file:
        tiled = {"tile": (256, 256), "compression": "jpeg", "photometric": "rgb", "metadata": None}
        side = _SIDE_PX
        file.write(rgb, description=f"{name}{side}x{side} [0,0 {side}x{side}] (256x256){about}", **tiled)
        file.write(
            rgb[::8, ::8], photometric="rgb", description=f"{name}{side}x{side} -> 128x128{about}", metadata=None
        )
        file.write(rgb[::4, ::4], description=f"{name}{side}x{side} (256x256) -> 256x256{about}", **tiled)
        for words, size, colour, kind in (("label", (83, 97), LABEL_RGB, 1), ("macro", (67, 151), MACRO_RGB, 9)):
            image = np.full((*size, 3), colour, np.uint8)
            about_image = f"{name}{words} {size[1]}x{size[0]}{about}"
            file.write(image, photometric="rgb", description=about_image, subfiletype=kind, metadata=None)
    return path
