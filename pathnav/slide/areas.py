"""Connected areas of a mask: which are large enough, which hold a seed, which lie on glass."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Labels = NDArray[np.int64]


def labelled(mask: Mask, diagonal: bool = False) -> Labels:
    """Return the number of the connected area that each cell belongs to, 0 outside: int64, the mask's shape."""
    from skimage.measure import label

    return cast(Labels, label(mask, connectivity=2 if diagonal else 1))  # type: ignore[no-untyped-call]


def of_at_least(mask: Mask, cells: int) -> Mask:
    """Return the connected areas of at least so many cells."""
    labels = labelled(mask)
    chosen = np.bincount(labels.ravel()) >= cells
    chosen[0] = False
    return np.asarray(chosen[labels])


def holding(mask: Mask, seeds: Mask) -> Mask:
    """Return the connected areas that hold one of the seeds, which lie inside the mask."""
    labels = labelled(mask, diagonal=True)
    chosen = np.zeros(int(labels.max()) + 1, dtype=np.bool_)
    chosen[labels[seeds]] = True
    return np.asarray(chosen[labels])


def mostly_beside(mask: Mask, beside: Mask, cells: int, margin: int, share: float) -> Mask:
    """Return the large connected areas, with a margin, that have more than a share of the ring around them beside.

    Args:
        mask: The areas.
        beside: What should lie around them.
        cells: How many cells make an area large.
        margin: By how many cells an area is widened, and the width of the ring around that.
        share: Of the ring.
    """
    if np.count_nonzero(mask) < cells:
        return np.zeros_like(mask)
    labels = labelled(mask, diagonal=True)
    large = np.bincount(labels.ravel()) >= cells
    large[0] = False
    if not large.any():  # as on most slides: widening takes 0.3 s
        return np.zeros_like(mask)
    labels *= large[labels]
    near = _widened(labels, margin)
    ring = np.where(near > 0, 0, _widened(labels, 2 * margin))
    around = np.bincount(ring.ravel(), minlength=large.size)
    found = np.bincount(ring[beside], minlength=large.size)
    return np.asarray((large & (found > share * around))[near])


def _widened(labels: Labels, cells: int) -> Labels:
    from skimage.segmentation import expand_labels

    return cast(Labels, expand_labels(labels, cells))  # type: ignore[no-untyped-call]
