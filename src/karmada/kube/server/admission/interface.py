"""Admission: what may still change or refuse a write after it was authorised and decoded.

Plug-ins run in a fixed order: every `admit` (may change `obj` in place), then, on the final object, every `validate`.
A refusal is an ApiError. A plug-in names what it handles, so that a request pays only for those that concern it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import User

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


@dataclass(slots=True)
class Attributes:
    """One write on its way in. `obj` is None on DELETE, `old` is None on CREATE."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Obj | None
    old: Obj | None
    user: User
    dry_run: bool = False
    options: Obj = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What plug-ins add to the audit event."""

    @property
    def group_resource(self) -> GroupResource:
        return self.resource.group_resource


class Plugin(Protocol):
    name: str

    def handles(self, attributes: Attributes) -> bool: ...

    async def admit(self, attributes: Attributes) -> None: ...

    async def validate(self, attributes: Attributes) -> None: ...
