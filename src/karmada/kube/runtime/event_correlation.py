"""Correlation of events, as Kubernetes' own recorder does it: which are written, as new objects or as counts of others.

 - an event equal to an earlier one raises that one's count instead of becoming a new object;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is refused.
What is remembered for this is bounded; the oldest is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from karmada.kube.objects.clock import Clock

_COMBINE_AFTER = 10
_COMBINE_WINDOW = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
_REMEMBERED = 4096
K = TypeVar("K")
V = TypeVar("V")


class Subject(NamedTuple):
    """The object that an event is about, and the source that emits it."""

    component: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Correlated(NamedTuple):
    """The identity of an event among all others, and its message."""

    key: int
    message: str


class Identity(NamedTuple):
    """Hashes: of the object and its source, of these with type and reason, and of all that with the message."""

    about: int
    similar: int
    key: int
    """Of an event that is not combined with others."""


def identity(about: Subject, type: str, reason: str, message: str) -> Identity:  # noqa: A002
    subject = hash(about)
    similar = hash((subject, type, reason))
    return Identity(subject, similar, hash((similar, message)))


class Recent(Generic[K, V]):
    """A dict of bounded size that forgets what was not used for longest."""

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def pop(self, key: K) -> V | None:
        """For one that is set again: both together cost less than `get` and `set`."""
        return self._entries.pop(key, None)

    def set(self, key: K, value: V) -> None:
        entries = self._entries
        if key in entries:
            entries.move_to_end(key)
        entries[key] = value
        if len(entries) > self._size:
            entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


class Correlator:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: Recent[int, tuple[float, float]] = Recent()
        """Of an object and its source: how many are left, and since when."""
        self._similar: Recent[int, tuple[float, tuple[int, ...]]] = Recent()
        """When there was the last one, and hashes of the messages."""

    def correlate(self, event: Identity, message: str) -> Correlated | None:
        """None when the object has had too many events."""
        now = self._clock.monotonic()
        if not self._has_token(event.about, now):
            return None
        if self._combined(event.similar, message, now):
            return Correlated(event.similar, f"(combined from similar events): {message}")
        return Correlated(event.key, message)

    def _has_token(self, about: int, now: float) -> bool:
        tokens, at = self._tokens.pop(about) or (float(_BURST), now)
        tokens = min(float(_BURST), tokens + (now - at) / _REFILL_SECONDS)
        allowed = tokens >= 1
        self._tokens.set(about, (tokens - 1 if allowed else tokens, now))
        return allowed

    def _combined(self, group: int, text: str, now: float) -> bool:
        message = hash(text)
        last, messages = self._similar.pop(group) or (now, ())
        if now - last > _COMBINE_WINDOW:
            messages = ()
        if len(messages) < _COMBINE_AFTER and message not in messages:
            messages += (message,)
        self._similar.set(group, (now, messages))
        return len(messages) >= _COMBINE_AFTER
