"""How an episode has ended, in a word and in a sentence."""

from pathnav.errors import PathnavError
from pathnav.localise.outcome import Outcome


def outcome_of(returned: object, *, finished: bool) -> Outcome:
    """Return the outcome that what an agent returned, and whether it reported, make together."""
    if finished:
        return Outcome.FORCED if returned == Outcome.FORCED else Outcome.FINISHED
    if isinstance(returned, Outcome) and returned.is_agents and returned not in (Outcome.FINISHED, Outcome.FORCED):
        return returned
    return Outcome.NO_REPORT


def sentence(error: BaseException) -> str:
    """Return an error of pathnav's with its remedy, any other with its type."""
    return error.with_remedy if isinstance(error, PathnavError) else f"{type(error).__name__}: {error}".rstrip(": ")
