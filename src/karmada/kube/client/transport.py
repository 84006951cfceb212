"""What a client stands on: one call, one stream. HTTPS and the embedded server's in-process door both offer it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from karmada.kube.objects.types import Obj


class WatchEvent(NamedTuple):
    """type is ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR event is raised as an ApiError instead."""

    type: str
    object: Obj


@dataclass(frozen=True, slots=True)
class Call:
    """One API request: `path` without query, `body` a JSON value (never changed by the callee) or None."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"


class Transport(Protocol):
    async def call(self, call: Call) -> Any:
        """The parsed answer (lists carry apiVersion and kind in every item); ApiError on failure.

        What comes back may be shared with others and must not be changed.
        """

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        """The events of a watch request until the server ends the stream."""

    async def close(self) -> None: ...
