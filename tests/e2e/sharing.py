"""Which worker runs which files: those that share a control plane with three members run on two workers.

Every worker that runs one of them starts such a control plane, which then is there to the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

_WORKERS = 2
_SHARED = "three_members"
_DASHBOARD = "dashboard"
"""The folder of the files that share a dashboard, its control plane and a browser: one worker runs them."""


def sharing_files() -> dict[str, str]:
    """The names of the files that share, and the group of each."""
    here = Path(__file__).parent
    sharing = sorted(file.name for file in here.glob("test_*.py") if _SHARED in file.read_text())
    groups = {name: f"{_SHARED} {number % _WORKERS}" for number, name in enumerate(sharing)}
    return groups | {file.name: _DASHBOARD for file in sorted((here / _DASHBOARD).glob("test_*.py"))}


def scope(nodeid: str, groups: Mapping[str, str]) -> str:
    """What a test is run together with: the other files of its group, or its file alone."""
    file = nodeid.split("::", 1)[0]
    return groups.get(Path(file).name, file)


class SharingFiles(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """File by file, but the files of a group on one worker."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._groups = sharing_files()

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, self._groups)
