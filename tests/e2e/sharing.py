"""Which worker runs which files: those that share a control plane with three members run on two workers.

Every worker that runs one of them starts such a control plane, which then is there to the end.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_WORKERS = 2
_SHARED = "three_members"
_DASHBOARD = "dashboard"
"""The folder of the files that share a dashboard, its control plane and a browser: one worker runs them."""


@cache
def sharing_files() -> dict[str, str]:
    """The names of the files that share, and the group of each."""
    here = Path(__file__).parent
    sharing = sorted(file.name for file in here.glob("test_*.py") if _SHARED in file.read_text())
    groups = {name: f"{_SHARED} {number % _WORKERS}" for number, name in enumerate(sharing)}
    return groups | {file.name: _DASHBOARD for file in sorted((here / _DASHBOARD).glob("test_*.py"))}
