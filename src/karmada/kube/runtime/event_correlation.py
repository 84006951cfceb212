"""Events as they wait to be written, and their correlation as Kubernetes' own recorder does it.

Correlation decides which events are written, as new objects or as counts of others:
 - an event equal to an earlier one raises that one's count instead of becoming a new object;
 - more than ten different messages with the same reason on the same object within ten minutes are combined into one;
 - an object may have bursts of 25 events and one more every five minutes; what is beyond is refused.
What is remembered for this is bounded; the oldest is forgotten first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

_COMBINE_AFTER = 10
_COMBINE_WINDOW = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
REMEMBERED = 4096


@dataclass(slots=True, eq=False)
class Event:
    """Less than half of what the object of the API takes, which is made to be written."""

    component: str
    """The source."""
    api_version: str
    """This, the next four and `version` are those of the object that it is about."""
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
    """Its identity, once it is correlated."""
    written_as: str = ""
    """The name of the object that it becomes; kept, so that a create whose outcome is unknown can be repeated."""
    sent: bool = False
    """True if there was such a create."""
    number: int = field(default_factory=itertools.count().__next__)
    """Its place in the order of emission."""

    def repeat(self, later: Event) -> None:
        """Let it stand for a later one, too, which is written in one object with this."""
        self.version, self.message, self.host, self.last = later.version, later.message, later.host, later.last
        self.count += 1

    def object(self) -> Obj:
        involved = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.version,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": self.target, "name": self.written_as},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": self.reason,
            "message": self.message,
            "source": {"component": self.component, **({"host": self.host} if self.host else {})},
            "firstTimestamp": rfc3339(self.first),
            "lastTimestamp": rfc3339(self.last),
            "count": self.count,
            "type": self.type,
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        }


def identity(event: Event) -> tuple[int, int, int]:
    """Return hashes: of the object and its source, of these with type and reason, and of all that with the message."""
    about = hash((event.component, event.api_version, event.kind, event.namespace, event.name, event.uid))
    similar = hash((about, event.type, event.reason))
    return about, similar, hash((similar, event.message))


class Correlator:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: Memo[int, tuple[float, float]] = Memo(REMEMBERED)
        """Tokens by object and source: how many are left, and since when."""
        self._similar: Memo[int, tuple[float, tuple[int, ...]]] = Memo(REMEMBERED)
        """The time of the last one, and hashes of the messages."""

    def allows(self, about: int) -> bool:
        """Return whether the object may have one more event, which is counted."""
        now = self._clock.monotonic()
        tokens, at = self._tokens.get(about) or (_BURST, now)
        tokens = min(_BURST, tokens + (now - at) / _REFILL_SECONDS)
        allowed = tokens >= 1
        self._tokens.put(about, (tokens - 1 if allowed else tokens, now))
        return allowed

    def combines(self, similar: int, text: str) -> bool:
        """Return whether there were so many other messages that this one is combined with them."""
        now, message = self._clock.monotonic(), hash(text)
        last, messages = self._similar.get(similar) or (now, ())
        if now - last > _COMBINE_WINDOW:
            messages = ()
        if len(messages) < _COMBINE_AFTER and message not in messages:
            messages += (message,)
        self._similar.put(similar, (now, messages))
        return len(messages) >= _COMBINE_AFTER
