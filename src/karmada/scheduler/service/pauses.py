"""How long a binding that could not be scheduled waits for the next try.

Usually every failure doubles its pause, and all bindings together are tried again no faster than a bucket of tokens
allows: a fleet that is full must not keep the scheduler busy with what does not fit. With priorities the pauses are
short, and a binding for which there is no room waits long: it is clusters that must change, and those
trigger it. There, a change of the binding resets its count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.keys import Key

_SHORT, _WITHOUT_ROOM = BackOff(1.0, 10.0), 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the usual pauses; seconds, and tries a second."""

    base_delay: float = 0.005
    max_delay: float = 1000.0
    rate: float = 10.0
    burst: int = 100


class Pauses(ABC):
    """Counts the failures of each binding, and holds those that back off."""

    def __init__(self) -> None:
        self._failures: dict[Key, int] = {}
        self._waiting: dict[Key, bool] = {}
        """True for a binding that waits for room."""

    def failed(self, key: Key, *, no_room: bool = False) -> float:
        """Return seconds until the next try."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._waiting[key] = no_room
        return self._pause(failures, no_room)

    @abstractmethod
    def _pause(self, failures: int, no_room: bool) -> float:
        """Return the pause after so many failures before this one."""

    def triggered(self, key: Key) -> None:
        """Note that something that concerns the binding has changed: it is scheduled at once."""
        self._waiting.pop(key, None)

    def over(self, key: Key) -> None:
        """Note that the pause is over: the binding is being scheduled."""
        self._waiting.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forget a binding that was scheduled, or is gone."""
        self._failures.pop(key, None)
        self._waiting.pop(key, None)

    def counts(self) -> tuple[int, int]:
        """Return how many wait to be tried again, and how many for room."""
        without_room = sum(self._waiting.values())
        return len(self._waiting) - without_room, without_room


class Doubling(Pauses):
    """A change of a binding does not reset its pause."""

    def __init__(self, clock: Clock, limits: Limits | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._limits = limits or Limits()
        self._tokens = float(self._limits.burst)
        self._filled = clock.monotonic()

    def _pause(self, failures: int, no_room: bool) -> float:  # noqa: ARG002 - makes no difference here
        own = BackOff(self._limits.base_delay, self._limits.max_delay).pause(failures)
        return max(own, self._take_token())

    def _take_token(self) -> float:
        """Return seconds until there is one for this try."""
        now = self._clock.monotonic()
        limits = self._limits
        self._tokens = min(float(limits.burst), self._tokens + (now - self._filled) * limits.rate) - 1
        self._filled = now
        return max(0.0, -self._tokens / limits.rate)


class Short(Pauses):
    """With priorities."""

    def _pause(self, failures: int, no_room: bool) -> float:
        return _WITHOUT_ROOM if no_room else _SHORT.pause(failures)

    def triggered(self, key: Key) -> None:
        self.forget(key)
