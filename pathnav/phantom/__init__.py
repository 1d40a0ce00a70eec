"""Phantom slides: procedural H&E-like slides with their truth, for demonstrations and tests without a network.

What lies where is planned in `layout`, filled in `scene` with the parts of `noise` and `stamps`, drawn in `render` and
written in `files`; `tree` states the truth in words.
"""

from pathnav.phantom.files import PhantomFiles, make_phantom, phantom_files

__all__ = ["PhantomFiles", "make_phantom", "phantom_files"]
