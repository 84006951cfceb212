"""How a program of ours loads: without passes of the garbage collector over its modules, and with plug-ins read once.

Modules stay to the end: passes over them were a quarter of the CPU time of a start, and one more at the end is in vain.
"""

from __future__ import annotations

import atexit
import gc
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

_THRESHOLDS = (50_000, 50, 100)


def collect_rarely() -> None:
    """Call first in a program's main, before it loads the rest of its modules."""
    gc.set_threshold(*_THRESHOLDS)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # Python would look for garbage once more before the memory is given back anyway


def entry_points(group: str) -> EntryPoints:
    """Return what installed packages register in a group.

    A look opens a file of each of them (2 ms), so there is one.
    """
    found: EntryPoints = _every_entry_point(tuple(sys.path)).select(group=group)
    return found


@cache
def _every_entry_point(_path: tuple[str, ...]) -> Any:
    from importlib import metadata

    return metadata.entry_points()
