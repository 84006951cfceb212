"""What the built-in plug-ins have in common: they read current state."""

from __future__ import annotations

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes, Plugin


class BuiltinPlugin(Plugin):
    """One that reads current state."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader


def is_pod_create(attributes: Attributes) -> bool:
    return is_create_of(attributes, "", "pods")


def is_create_of(attributes: Attributes, group: str, plural: str) -> bool:
    return (
        attributes.operation == "CREATE" and not attributes.subresource and attributes.group_resource == (group, plural)
    )


def refuse(attributes: Attributes, why: str) -> Forbidden:
    """Return the refusal of a write; an object without a name yet is named by its generateName."""
    return Forbidden.of(attributes.group_resource, _name(attributes), why)


def _name(attributes: Attributes) -> str:
    meta: Obj = (attributes.obj or {}).get("metadata") or {}
    name: str = attributes.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return name
