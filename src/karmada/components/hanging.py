"""What every program does when its event loop hangs: it logs why, notes the key that is to blame, and ends.

Its supervisor starts it again, and the key is left alone then (see kube/runtime/quarantine).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from karmada.kube.runtime.quarantine import QUARANTINE
from karmada.kube.runtime.watchdog import THRESHOLD_SECONDS, watching_for_stalls

if TYPE_CHECKING:
    from karmada.components.flags import Given


def open_quarantine(path: Path) -> None:
    """Hold what the file says, and keep it there from now on."""
    from karmada.kube.server.auth.files import write_private

    QUARANTINE.load(path.read_bytes() if path.exists() else b"", partial(write_private, path))


@contextmanager
def ending_hangs(given: Given, threshold: float = THRESHOLD_SECONDS) -> Iterator[None]:
    """Around the life of a program, on its loop; a stall of `threshold` seconds counts."""
    limit: float = given.get("hang_timeout", 0.0)
    with watching_for_stalls(threshold=threshold, limit=limit, blame=QUARANTINE.blame):
        yield
