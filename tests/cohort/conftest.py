"""Fixtures of the cohort tests: phantom slides, made once per session."""

from support.phantoms import phantom_folder, small_phantom

__all__ = ["phantom_folder", "small_phantom"]
