"""How an episode ended (docs/protocol.md, section 2, Outcomes)."""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of an episode; the first seven are the agent's, the last two are not."""

    FINISHED = "finished"
    FORCED = "forced"
    NO_REPORT = "no_report"
    FORMAT_ERRORS = "format_errors"
    STEP_LIMIT = "step_limit"
    REFUSED = "refused"
    CONTEXT_OVERFLOW = "context_overflow"
    INFRA_ERROR = "infra_error"
    INTERRUPTED = "interrupted"

    @property
    def is_agents(self) -> bool:
        """Whether the outcome is the agent's own and is scored as its answer."""
        return self not in (Outcome.INFRA_ERROR, Outcome.INTERRUPTED)
