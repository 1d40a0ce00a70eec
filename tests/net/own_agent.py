"""An agent of a user's own, by its path: looks at the corner and the centre, reports, and gives hints to a model."""

try:
    from pathnav.localise.hints import Proposal
except ModuleNotFoundError:  # where the working tree has it
    from pathnav.localise import Proposal

from pathnav.geometry import Box
from pathnav.localise import Environment


class CornerAndCentre:
    """Look at the search region's top-left corner, then at its centre, and report the centre."""

    name = "corner-and-centre"
    version = "1"

    def run(self, environment: Environment) -> None:
        """Look while the budget lasts, and report."""
        for proposal in self.propose(environment, min(environment.rois_left, 2)):
            environment.extract_roi(proposal.box, "to look")
        environment.report(self.propose(environment, 2)[1].box, conclusion="the centre", confidence=0.5)

    def propose(self, environment: Environment, count: int) -> list[Proposal]:
        """Return the corner and the centre."""
        query = environment.query
        region, width, height = query.region, query.target_width, query.target_height
        centre = Box(region.x + (region.width - width) / 2, region.y + (region.height - height) / 2, width, height)
        return [Proposal(Box(region.x, region.y, width, height), 0.9), Proposal(centre, 0.7)][:count]
