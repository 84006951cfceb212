"""Correlation of events, as Kubernetes' own recorder does it: which are written, as new objects or as counts of others.

 - an event equal to an earlier one raises that one's count instead of becoming a new object;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is refused.
What is remembered for this is bounded; the oldest is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
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

    def set(self, key: K, value: V) -> None:
        entries = self._entries
        if key in entries:
            entries.move_to_end(key)
        entries[key] = value
        if len(entries) > self._size:
            entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    messages: list[int]
    """Hashes of them."""
    last: float


class Correlator:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: Recent[int, _Bucket] = Recent()
        self._similar: Recent[int, _Similar] = Recent()

    def correlate(self, event: Identity, message: str) -> Correlated | None:
        """None when the object has had too many events."""
        now = self._clock.monotonic()
        if not self._has_token(event.about, now):
            return None
        if self._combined(event.similar, message, now):
            return Correlated(event.similar, f"(combined from similar events): {message}")
        return Correlated(event.key, message)

    def _has_token(self, about: int, now: float) -> bool:
        bucket = self._buckets.get(about)
        if bucket is None:
            self._buckets.set(about, _Bucket(_BURST - 1.0, now))
            return True
        tokens = min(float(_BURST), bucket.tokens + (now - bucket.at) / _REFILL_SECONDS)
        allowed = tokens >= 1
        bucket.tokens, bucket.at = tokens - 1 if allowed else tokens, now
        return allowed

    def _combined(self, group: int, text: str, now: float) -> bool:
        message = hash(text)
        similar = self._similar.get(group)
        if similar is None or now - similar.last > _COMBINE_WINDOW:
            self._similar.set(group, _Similar([message], now))
            return False
        similar.last = now
        if len(similar.messages) < _COMBINE_AFTER and message not in similar.messages:
            similar.messages.append(message)
        return len(similar.messages) >= _COMBINE_AFTER
