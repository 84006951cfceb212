"""Which programs of a local environment are started again when they end: a control plane that hung, a few times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from karmada.kube.runtime.watchdog import EXIT_CODE

MOST: Final = 5
WITHIN_SECONDS: Final = 600.0


class Restarts:
    """Counts the restarts of a program."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._times: list[float] = []

    def take(self, code: int) -> bool:
        """Return whether a program that ended with this code is to be started again, and count it if so."""
        if code != EXIT_CODE:
            return False
        now = self._now()
        self._times = [before for before in self._times if now - before < WITHIN_SECONDS]
        if len(self._times) >= MOST:
            return False
        self._times.append(now)
        return True

    @property
    def recent(self) -> int:
        """Return how many there were in the last ten minutes."""
        return len(self._times)
