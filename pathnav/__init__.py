"""pathnav: find out whether a vision-language model can navigate a whole-slide image."""

__version__ = "0.1.0"
