"""Print the lowest allowed version of every direct dependency as pip constraints.

Usage: `python .ci/lowest.py pyproject.toml`. A dependency without a lower bound is left to the resolver.
"""

import re
import sys
import tomllib
from pathlib import Path

LOWER_BOUND = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[0-9][0-9.]*)")


def constraints(requirements: list[str]) -> list[str]:
    """Return `name==version` for each requirement that has a lower bound."""
    found = (LOWER_BOUND.match(requirement) for requirement in requirements)
    return [f"{match['name']}=={match['version']}" for match in found if match]


def main(path: str) -> None:
    """Print the constraints of the base and the test dependencies."""
    project = tomllib.loads(Path(path).read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    sys.stdout.write("\n".join(constraints(requirements)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
