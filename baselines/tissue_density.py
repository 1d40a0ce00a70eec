"""`tissue-density`: the window of the target's size that holds most tissue.

Windows are centred on the cells of the tissue mask (long side 1,024 cells). Equals are decided by the seed: on a
region full of tissue nearly all windows are equal, and the answer is one of them at random, not the first.
"""

from pathnav.localise import Environment

from .windows import densest_window


class TissueDensity:
    """Report the window with most tissue."""

    name = "tissue-density"
    version = "1"
    unbudgeted = True

    def run(self, environment: Environment) -> None:
        """Survey the tissue mask and report the densest window."""
        query = environment.query
        mask = environment.survey.tissue_mask()
        box = densest_window(mask, query.target_width, query.target_height, environment.rng)
        environment.report(box, conclusion="The window with most tissue.")
