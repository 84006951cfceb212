"""Admission: plug-ins that may change or refuse a write after it was authorised and decoded.

Plug-ins run in a fixed order: every `admit` (may change `obj` in place), then, on the final object, every `validate`.
A refusal is an ApiError. `handles` selects requests, so that a request pays only for the plug-ins that handle it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.warnings import Warnings

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Rounds:
    """The rounds of mutating admission: in the second one webhooks and policies are reinvoked after later changes."""

    __slots__ = ("_again", "_earlier", "second")

    def __init__(self) -> None:
        self.second = False
        self._earlier: set[object] = set()
        self._again: set[object] = set()

    def takes(self, mutation: object) -> bool:
        """Return whether a webhook or policy is called in this round."""
        return not self.second or mutation in self._again

    def took(self, mutation: object, *, changed: bool, reinvocable: bool) -> None:
        """Record that one ran; if it changed the object, the reinvocable ones before it run again."""
        if changed:
            self._again |= self._earlier
            self._earlier.clear()
        if reinvocable:
            self._earlier.add(mutation)

    def begin_second(self) -> bool:
        """Begin the second round; return whether there is one."""
        self.second = bool(self._again)
        return self.second


@dataclass(slots=True)
class Attributes:
    """One write under admission. `obj` is None on DELETE, `old` is None on CREATE."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Obj | None
    old: Obj | None
    user: User
    dry_run: bool = False
    options: Callable[[], Obj] = dict
    """Makes the options of the request as webhooks and policies see them; most writes are seen by none."""
    warnings: list[str] = field(default_factory=Warnings)
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that plug-ins add to the audit event."""

    steps: Any = None
    """Plug-ins that handle this write, kept here by the chain."""
    rounds: Rounds | None = None
    """Made by the first plug-in that is reinvoked."""

    def count_rounds(self) -> Rounds:
        if self.rounds is None:
            self.rounds = Rounds()
        return self.rounds

    @property
    def group_resource(self) -> GroupResource:
        return self.resource.group_resource


class Generation(Protocol):
    """Something that changes."""

    generation: int
    """Rises with each change."""


class Plugin(ABC):
    """One of the chain; most write `admit` or `validate`, and those they leave out are not called."""

    name: str = ""
    depends_on: Sequence[Generation] = ()
    """What `handles` reads besides resource, subresource, operation and whether there is a namespace."""
    waits: ClassVar[bool] = False
    """It may call another server."""
    mutates: ClassVar[bool] = True
    """`admit` may change the object, which then gets its defaults again."""
    by_namespace: ClassVar[bool] = False
    """A create is admitted or refused by nothing but its namespace, and is not changed."""

    @abstractmethod
    def handles(self, attributes: Attributes, /) -> bool:
        """Return whether this plug-in is called for such requests; what it `depends_on` says when to ask again."""

    async def admit(self, attributes: Attributes, /) -> None:  # noqa: B027
        """May change the object."""

    async def validate(self, attributes: Attributes, /) -> None:  # noqa: B027
        """Validate the final object, which may not be changed."""

    def finish(self, attributes: Attributes, stored: bool | None, /) -> None:  # noqa: B027
        """Follow the outcome after the whole chain: the write was stored, was not, or (None) nobody knows."""
