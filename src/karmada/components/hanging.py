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
from karmada.kube.runtime.watchdog import REPORT_SECONDS, Stalls, watching_for_stalls

if TYPE_CHECKING:
    from karmada.components.flags import Given


def open_quarantine(path: Path) -> None:
    """Hold what the file says, and keep it there from now on."""
    from karmada.kube.server.auth.files import write_private

    QUARANTINE.load(path.read_bytes() if path.exists() else b"", partial(write_private, path))


@contextmanager
def ending_hangs(given: Given) -> Iterator[None]:
    """Around the life of a program, on its loop."""
    with watching_for_stalls(limit=_limit(given), blame=QUARANTINE.blame):
        yield


@contextmanager
def ending_hangs_at_the_start(given: Given) -> Iterator[None]:
    """Around the start of a server, which may hold the loop for long to check its store: only controllers may not."""
    with watching_for_stalls(Stalls(), REPORT_SECONDS, limit=_limit(given), known_only=True, blame=QUARANTINE.blame):
        yield


def _limit(given: Given) -> float:
    limit: float = given.get("hang_timeout", 0.0)
    return limit
