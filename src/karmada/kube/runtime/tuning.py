"""How a long-running process of ours treats Python's garbage collector.

Cached objects are trees of dicts without cycles: reference counting frees them, and every pass of the collector over
them is wasted (a list of 100,000 objects spends two thirds of its time in such passes). So the young generation is made
large, full passes rare, and what exists after start-up is taken out of the collector's sight.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (200_000, 12, 100)
"""A pass visits objects that have left the processor's caches, a microsecond each: the later it comes, the more of them
are gone by then. The first two multiplied bound what a pass over the middle generation visits."""


def tune_garbage_collection() -> None:
    """Call once, early in a component's main."""
    gc.set_threshold(*_THRESHOLDS)
    gc.freeze()
