"""Fixtures of the phantom tests: slides, made once per session."""

from support.phantoms import phantom_folder, small_phantom

__all__ = ["phantom_folder", "small_phantom"]
