"""Events that wait to be written, by namespace.

Events of one namespace are created as one group, in which each costs less than alone. So a batch has all that wait of a
few namespaces, not one of each. Namespaces take turns, and the events of each keep their order.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass, field

_SERIALS = itertools.count(1)


@dataclass(slots=True, eq=False)
class Event:
    """Less than half of what the object of the API takes, which is made to be written."""

    component: str
    """The source."""
    api_version: str
    """Of the object that it is about, as the next four and the resourceVersion."""
    kind: str
    namespace: str
    name: str
    uid: str
    version: str
    type: str
    reason: str
    message: str
    host: str
    last: float
    """The time of the last of those that it stands for."""
    first: float
    target: str
    """The namespace in which it is written."""
    count: int = 1
    """How many it stands for that correlate."""
    key: int = 0
    """Its identity, once it is correlated (see event_correlation)."""
    serial: int = field(default_factory=_SERIALS.__next__)
    written_as: str = ""
    """The name of the object that it becomes; kept, so that a create whose outcome is unknown can be repeated."""
    sent: bool = False
    """Whether there was such a create."""

    def repeat(self, later: Event) -> None:
        """A later one, which is written in one object with this."""
        self.version, self.message, self.host, self.last = later.version, later.message, later.host, later.last
        self.count += 1


class EventQueue:
    def __init__(self) -> None:
        self._by_key: dict[int, Event] = {}
        self._by_namespace: OrderedDict[str, list[Event]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: int) -> Event | None:
        return self._by_key.get(key)

    def add(self, event: Event) -> None:
        self._by_key[event.key] = event
        self._by_namespace.setdefault(event.target, []).append(event)

    def take(self, most: int, without: Container[str]) -> list[Event]:
        """Up to so many, of the namespaces whose turn it is, except those `without`."""
        chosen, count = list[str](), 0
        for namespace, events in self._by_namespace.items():
            if count >= most:
                break
            if namespace not in without:
                chosen.append(namespace)
                count += len(events)
        taken: list[Event] = []
        for namespace in chosen:
            taken += self._take_of(namespace, most - len(taken))
        return taken

    def _take_of(self, namespace: str, most: int) -> list[Event]:
        events = self._by_namespace[namespace]
        taken, events[:most] = events[:most], []
        for event in taken:
            del self._by_key[event.key]
        if events:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return taken
