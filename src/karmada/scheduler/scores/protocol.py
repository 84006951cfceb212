"""The interface of scores: points from 0 to 100 for some clusters at once; those of all scores are added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from karmada.scheduler.request import Request

if TYPE_CHECKING:
    from karmada.estimator.amounts import Ints
    from karmada.scheduler.fleet import Fleet

MOST = 100


class ScoreError(Exception):
    """A score that cannot be given; scheduling fails and is tried again."""


@runtime_checkable
class Score(Protocol):
    name: str

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:
        """Return points for the slots, in their order; None for no points to anybody. May raise ScoreError."""
        ...
