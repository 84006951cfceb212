"""Fenced writes: a writer that works under a Lease sends the Lease along, and the server refuses it once that is over.

A process may be suspended at any moment, also between the decision to write and the write. So it is not enough that it
checks its Lease: the request carries which Lease it was sent under, by uid and epoch, and a server that knows the
header compares it with the Lease as it is when the write is stored. A server that does not know it (a kube-apiserver, a
member) ignores it; there, the check right before sending, a time limit, and preconditions of the write are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

HEADER: Final = "Fencing-Lease"


class FencingToken(NamedTuple):
    """The Lease that a write was sent under. `epoch` is its leaseTransitions."""

    namespace: str
    name: str
    uid: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}/{self.uid}/{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> FencingToken:
        """ValueError when it is none."""
        namespace, name, uid, epoch = text.split("/")
        if not (namespace and name and uid and epoch.isascii() and epoch.isdigit()):
            raise ValueError(text)
        return cls(namespace, name, uid, int(epoch))


class Guard(Protocol):
    """Consulted right before a request that writes is sent."""

    def check(self) -> Mapping[str, str]:
        """Return the headers to send with it; Fenced when nothing may be written any more."""

    def was_refused(self) -> None:
        """Record that the server refused the write, since the Lease is over."""

    def seconds_left(self) -> float:
        """Within which the request must have ended."""


class GuardElsewhere:
    """A guard of writes to servers that do not have the Lease: checked and limited in time, but sent without it."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def check(self) -> Mapping[str, str]:
        self._guard.check()
        return {}

    def was_refused(self) -> None:
        """For another reason."""

    def seconds_left(self) -> float:
        return self._guard.seconds_left()
