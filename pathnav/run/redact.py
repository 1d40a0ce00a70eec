"""Keep an endpoint's key out of a record; what the endpoint itself repeats is freed of it where it comes in."""

from pathnav.model.redact import redacted

__all__ = ["redacted"]
