"""Which worker runs which files: those that share a control plane with three members run on two workers.

Every worker that runs one of them starts such a control plane, and stops it after the last: members that nobody uses
still report their status every second.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

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


def shared_by(file: Path) -> str | None:
    """What the tests of a file share with those of other files."""
    group = sharing_files().get(file.name)
    return group and group.split()[0]


class Shared:
    """What the files of this worker share: made when one of them needs it first, ended when the next file does not."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._open = ExitStack()

    def get(self, name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        if name not in self._made:
            self._made[name] = self._open.enter_context(make())
        made: T = self._made[name]
        return made

    def end(self) -> None:
        self._made.clear()
        self._open.close()
