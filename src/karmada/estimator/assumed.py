"""What a cluster has left once everything that is assumed there has been placed, kept from one estimate to the next.

In a burst every decision adds one assumption and takes none away. To place all of them for each estimate would make
the burst quadratic, so only those that were added are placed. After any other change all are placed anew: where the
first ones went depends on what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from karmada.estimator.terms import Assumption

S = TypeVar("S")


class Placed(Generic[S]):
    """The state of one cluster; whoever gets it must not change it."""

    __slots__ = ("_assumed", "_state", "_version")

    def __init__(self) -> None:
        self._version = -1
        self._assumed: list[Assumption] = []
        self._state: S | None = None

    def state(
        self,
        version: int,
        assumed: Sequence[Assumption],
        make: Callable[[], S],
        place: Callable[[S, Assumption], None],
    ) -> S:
        """`make` gives the state without assumptions, as it is at this version; `place` puts one into it."""
        state, done = self._state, len(self._assumed)
        if state is None or version != self._version or list(assumed[:done]) != self._assumed:
            state, done = make(), 0
        for one in assumed[done:]:
            place(state, one)
        self._version, self._assumed, self._state = version, list(assumed), state
        return state
