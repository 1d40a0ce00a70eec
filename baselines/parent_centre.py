"""`parent-centre`: the centre of the search region.

Annotators tend to centre a parent on its child, so that at 10x and 40x this is a strong answer that looks at nothing;
a query with `jitter` takes the habit away.
"""

from pathnav.geometry import Box
from pathnav.localise import Environment


class ParentCentre:
    """Report the window in the middle of the search region."""

    name = "parent-centre"
    version = "1"

    def run(self, environment: Environment) -> None:
        """Report the centre; looks at nothing."""
        query = environment.query
        box = Box.centred(query.region.centre, query.target_width, query.target_height)
        environment.report(box, conclusion="The centre of the search region.")
