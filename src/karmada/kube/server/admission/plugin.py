"""What the built-in plug-ins have in common.

`static` promises that `handles` looks at nothing but resource, subresource and operation, so that the chain can ask
once for all requests of a sort. `mutates` tells whether `admit` may change the object, which then gets its defaults
again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes


class BuiltinPlugin(ABC):
    name: str = ""
    static: ClassVar[bool] = True
    mutates: ClassVar[bool] = True

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @abstractmethod
    def handles(self, attributes: Attributes) -> bool:
        """Whether this plug-in has anything to do with the request."""

    async def admit(self, attributes: Attributes) -> None:  # noqa: B027 (most plug-ins write one of the two)
        """May change the object."""

    async def validate(self, attributes: Attributes) -> None:  # noqa: B027
        """Judges the final object."""


def is_pod_create(attributes: Attributes) -> bool:
    return is_create_of(attributes, "", "pods")


def is_create_of(attributes: Attributes, group: str, plural: str) -> bool:
    return (
        attributes.operation == "CREATE" and not attributes.subresource and attributes.group_resource == (group, plural)
    )


def refuse(attributes: Attributes, why: str) -> Forbidden:
    """The refusal of a write; an object without a name yet goes by the prefix it asked its name to be made from."""
    return Forbidden.of(attributes.group_resource, _name(attributes), why)


def _name(attributes: Attributes) -> str:
    meta: Obj = (attributes.obj or {}).get("metadata") or {}
    name: str = attributes.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return name
