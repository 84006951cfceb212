"""How a program of ours loads: without passes of the garbage collector over its modules.

Modules stay to the end: passes over them were a quarter of the CPU time of a start, and one more at the end is in vain.
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
