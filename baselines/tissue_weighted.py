"""`tissue-weighted`: a window drawn with probability proportional to its tissue share.

The expectation is exact: every window that is centred on a cell of the tissue mask (long side 1,024 cells) and holds
tissue is declared with its weight. Without tissue all windows weigh the same.
"""

from pathnav.localise import Environment

from .windows import weighted_windows


class TissueWeighted:
    """Declare all windows, weighted by their tissue."""

    name = "tissue-weighted"
    version = "1"
    unbudgeted = True

    def run(self, environment: Environment) -> None:
        """Survey the tissue mask and report the weighted windows."""
        query = environment.query
        boxes, weights = weighted_windows(environment.survey.tissue_mask(), query.target_width, query.target_height)
        environment.report_draws(boxes, weights, conclusion="All windows, weighted by the tissue they hold.")
