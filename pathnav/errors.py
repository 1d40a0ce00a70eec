"""The error tree of pathnav.

::

    PathnavError
    ├── ConfigError       options, scenario files, folders
    ├── SlideError        slide files and their metadata
    ├── AnnotationError   diagnostic trees and tumour annotations
    ├── RoiError          a box that cannot be looked at or reported
    ├── BudgetExhausted   a look, or a survey, beyond what the agent was granted
    ├── ModelError        chat endpoints
    │   ├── EndpointUnreachable
    │   ├── ContextOverflow
    │   └── RunStopped
    ├── RecordError       run folders and their files
    └── PluginError       agents, scorers and tools that cannot be used

Each message is one sentence that says what was expected and what came; what to do about it is the error's `remedy`.
"""


class PathnavError(Exception):
    """Raised when pathnav cannot do what was asked; the base of every error below.

    Args:
        message: The sentence.
        remedy: What to do, an option of the command line for instance; None where the sentence says it all.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    @property
    def with_remedy(self) -> str:
        """The sentence and the remedy as one, as the command line prints them."""
        return f"{self}; {self.remedy}" if self.remedy else str(self)


class ConfigError(PathnavError):
    """Raised when an option, a scenario file or an output folder is not usable."""


class SlideError(PathnavError):
    """Raised when a slide cannot be opened, read, or placed on a physical scale."""


class AnnotationError(PathnavError):
    """Raised when a diagnostic tree or a tumour annotation breaks a rule of its format."""


class RoiError(PathnavError):
    """Raised when a requested or reported box is outside the legal range; costs no ROI."""


class BudgetExhausted(PathnavError):
    """Raised when an agent asks for more looks than its budget, or for a survey it did not declare."""


class ModelError(PathnavError):
    """Raised when a chat endpoint fails in a way that is not the model's answer."""


class EndpointUnreachable(ModelError):
    """Raised when an endpoint that never answered cannot be used as named: no such address, key, model, or no API."""


class ContextOverflow(ModelError):
    """Raised when a conversation has grown longer than the model's context."""


class RunStopped(ModelError):
    """Raised when a question is not asked any more: a guard was reached, the endpoint is down, or Ctrl-C came."""


class RecordError(PathnavError):
    """Raised when a run folder's files cannot be read or do not belong together."""


class PluginError(PathnavError):
    """Raised when an agent, scorer or tool cannot be found, loaded or configured."""
