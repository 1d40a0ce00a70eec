"""Names of a cohort's slides that are unique in it and the same on every machine."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def slide_names(paths: Sequence[str]) -> dict[str, str]:
    """Return a name for each path.

    It is the file's name; where two files share it, what their paths are below the folder common to all slides. URLs
    stay whole.

    Args:
        paths: Absolute paths and URLs, each once.
    """
    files = [path for path in paths if "://" not in path]
    root = os.path.commonpath([str(Path(file).parent) for file in files]) if files else ""
    uses = Counter(Path(file).name for file in files)
    names = {file: Path(file).name if uses[Path(file).name] == 1 else _below(root, file) for file in files}
    return {path: names.get(path, path) for path in paths}


def _below(root: str, file: str) -> str:
    return Path(file).relative_to(root).as_posix()
