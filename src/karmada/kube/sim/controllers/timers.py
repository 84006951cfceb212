"""Things that take a while: how long each key still has to wait for what was begun for it.

A reconciler calls `left`; the first call draws the duration and starts the timer. Nothing is stored: a controller that
restarts starts the timer again, as the real component would.
"""

from __future__ import annotations

from collections.abc import Hashable

from karmada.kube.sim.context import Context
from karmada.kube.sim.profile import Delay


class Timers:
    def __init__(self, context: Context, delay: Delay) -> None:
        self._context = context
        self._delay = delay
        self._due: dict[Hashable, float] = {}

    def running(self, key: Hashable) -> bool:
        """Return whether it was begun; also true once its time is over, until it is forgotten."""
        return key in self._due

    def left(self, key: Hashable) -> float:
        """Seconds until it is done; begins it if need be."""
        now = self._context.clock.monotonic()
        due = self._due.get(key)
        if due is None:
            due = self._due[key] = now + self._context.draw(self._delay)
        return max(0.0, due - now)

    def forget(self, key: Hashable) -> None:
        self._due.pop(key, None)
