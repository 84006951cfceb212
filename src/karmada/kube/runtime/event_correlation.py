"""Correlation of events, as Kubernetes' own recorder does it: which are written, as new objects or as counts of others.

 - an event equal to an earlier one raises that one's count instead of becoming a new object;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is refused.
What is remembered for this is bounded; the oldest is forgotten first.
"""

from __future__ import annotations

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo
from karmada.kube.runtime.event_queue import Event

_COMBINE_AFTER = 10
_COMBINE_WINDOW = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
REMEMBERED = 4096


def identity(event: Event) -> tuple[int, int, int]:
    """Hashes: of the object and its source, of these with type and reason, and of all that with the message."""
    about = hash((event.component, event.api_version, event.kind, event.namespace, event.name, event.uid))
    similar = hash((about, event.type, event.reason))
    return about, similar, hash((similar, event.message))


class Correlator:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: Memo[int, tuple[float, float]] = Memo(REMEMBERED)
        """Of an object and its source: how many are left, and since when."""
        self._similar: Memo[int, tuple[float, tuple[int, ...]]] = Memo(REMEMBERED)
        """When there was the last one, and hashes of the messages."""

    def allows(self, about: int) -> bool:
        """Whether the object may have one more event, which is counted."""
        now = self._clock.monotonic()
        tokens, at = self._tokens.get(about) or (_BURST, now)
        tokens = min(_BURST, tokens + (now - at) / _REFILL_SECONDS)
        allowed = tokens >= 1
        self._tokens.put(about, (tokens - 1 if allowed else tokens, now))
        return allowed

    def combines(self, similar: int, text: str) -> bool:
        """Whether there were so many other messages that this one is combined with them."""
        now, message = self._clock.monotonic(), hash(text)
        last, messages = self._similar.get(similar) or (now, ())
        if now - last > _COMBINE_WINDOW:
            messages = ()
        if len(messages) < _COMBINE_AFTER and message not in messages:
            messages += (message,)
        self._similar.put(similar, (now, messages))
        return len(messages) >= _COMBINE_AFTER
