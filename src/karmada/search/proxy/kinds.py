"""How the kinds of members are shown: with the columns and fields that the API server itself has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVR
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node

Served = Callable[[GVR], Resource | None]
"""The kinds that the control plane serves itself, if it does so in this process."""


class Kinds:
    """Built-in kinds, and what else `served` knows; for others there is a plain form."""

    def __init__(self, definitions: Definitions, served: Served = lambda _gvr: None) -> None:
        self._served = served
        self._builtin = _by_gvr(builtin_resources(definitions))
        self._others: dict[Kind, Resource] = {}

    def resource(self, kind: Kind) -> Resource:
        found = self._served(kind.gvr) or self._builtin.get(kind.gvr)
        if found is not None and found.gvk == kind.gvk:
            return found
        return self._others.setdefault(kind, _plain(kind))


def _by_gvr(resources: Iterable[Resource]) -> dict[GVR, Resource]:
    return {resource.gvr: resource for resource in resources}


def _plain(kind: Kind) -> Resource:
    return Resource(
        gvk=kind.gvk,
        plural=kind.gvr.resource,
        namespaced=kind.namespaced,
        schema=lambda: Node(type="object", preserve=True),
        storage=kind.gvk,
        storage_resource=kind.gvr.group_resource,
        custom=True,
    )
