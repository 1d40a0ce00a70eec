"""Choices that depend on a seed and on what is chosen, never on the order in which things were listed."""

import hashlib

import numpy as np


def seeded_rank(seed: int, *words: str) -> str:
    """Return a sort key that puts things into an order drawn by the seed.

    The key of one thing does not depend on what else there is: a cohort that gains a slide keeps most of its sample.
    """
    return hashlib.sha256("\x1f".join((str(seed), *words)).encode()).hexdigest()


def generator(seed: int, *words: str) -> np.random.Generator:
    """Return a random generator for one purpose, independent of all others with the same seed."""
    return np.random.default_rng(int(seeded_rank(seed, *words), 16))
