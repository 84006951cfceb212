"""Events that wait to be written, by namespace.

Events of one namespace are created as one group, in which each costs less than alone. So a batch has all that wait of a
few namespaces, not one of each. Namespaces take turns, and the events of each keep their order.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from karmada.kube.runtime.event_correlation import Subject

_SERIALS = itertools.count(1)


class Event(NamedTuple):
    """Less than half of what the object of the API takes, which is made to be written."""

    about: Subject
    version: str
    """The resourceVersion of the object."""
    type: str
    reason: str
    message: str
    host: str
    time: float


@dataclass(slots=True)
class Due:
    """An event that waits to be written, and how many it stands for that correlate."""

    key: int
    """Its identity, see event_correlation."""
    event: Event
    """The last of them."""
    namespace: str
    """In which it is written."""
    first: float
    """The time of the first."""
    count: int = 1
    serial: int = field(default_factory=_SERIALS.__next__)
    name: str = ""
    """Of the object that it becomes; kept, so that a create whose outcome is unknown can be repeated."""
    sent: bool = False
    """Whether there was such a create."""

    def repeat(self, event: Event) -> None:
        """A later one, which is written in one object with this."""
        self.event = event
        self.count += 1


class EventQueue:
    def __init__(self) -> None:
        self._by_key: dict[int, Due] = {}
        self._by_namespace: OrderedDict[str, list[Due]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: int) -> Due | None:
        return self._by_key.get(key)

    def add(self, due: Due) -> None:
        self._by_key[due.key] = due
        self._by_namespace.setdefault(due.namespace, []).append(due)

    def take(self, most: int, without: Container[str]) -> list[Due]:
        """Up to so many, of the namespaces whose turn it is, except those `without`."""
        chosen, count = list[str](), 0
        for namespace, dues in self._by_namespace.items():
            if count >= most:
                break
            if namespace not in without:
                chosen.append(namespace)
                count += len(dues)
        taken: list[Due] = []
        for namespace in chosen:
            taken += self._take_of(namespace, most - len(taken))
        return taken

    def _take_of(self, namespace: str, most: int) -> list[Due]:
        dues = self._by_namespace[namespace]
        taken, dues[:most] = dues[:most], []
        for due in taken:
            del self._by_key[due.key]
        if dues:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return taken
