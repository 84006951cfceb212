"""How a long-running process of ours treats Python's garbage collector.

Cached objects are trees of dicts without cycles: reference counting frees them, and every pass of the collector over
them is wasted (a list of 100,000 objects spends two thirds of its time in such passes). So the young generation is made
large, full passes rare, and what exists after start-up is taken out of the collector's sight.
"""

from __future__ import annotations

import gc


def tune_garbage_collection() -> None:
    """Call once, early in a component's main."""
    gc.set_threshold(50_000, 50, 100)
    gc.freeze()
