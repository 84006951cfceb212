"""How a program of ours treats Python's garbage collector.

Cached objects are trees of dicts without cycles: reference counting frees them, and every pass of the collector over
them is wasted (a list of 100,000 objects spends two thirds of its time in such passes). So the young generation is made
large, full passes rare, and what exists after start-up is taken out of the collector's sight. The same holds while a
program is loaded and when it ends: modules stay, and passes over them were a quarter of the CPU time of a start.
"""

from __future__ import annotations

import atexit
import gc

_THRESHOLDS = (50_000, 50, 100)


def collect_rarely() -> None:
    """Call first in a program's main, before it loads the rest of its modules."""
    gc.set_threshold(*_THRESHOLDS)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # Python would look for garbage once more before the memory is given back anyway


def tune_garbage_collection() -> None:
    """Call once, early in a component's main."""
    gc.set_threshold(*_THRESHOLDS)
    gc.freeze()
