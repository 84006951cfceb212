"""A store in memory for admission to read, and attributes for it to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.kinds.resource import ALL_VERBS, Resource
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.auth.user import User
from tests.support.reader import FakeReader


class Reader(FakeReader):
    def put(self, group: str, plural: str, obj: Obj) -> Obj:
        return self.store(GroupResource(group, plural), obj)


AttributesOf = Callable[..., Attributes]


@pytest.fixture
def reader() -> Reader:
    found = Reader()
    found.put("", "namespaces", {"metadata": {"name": "ns"}})
    return found


@pytest.fixture
def attributes_of() -> AttributesOf:
    kinds = {
        "pods": GVK("", "v1", "Pod"),
        "configmaps": GVK("", "v1", "ConfigMap"),
        "services": GVK("", "v1", "Service"),
        "namespaces": GVK("", "v1", "Namespace"),
        "nodes": GVK("", "v1", "Node"),
        "persistentvolumeclaims": GVK("", "v1", "PersistentVolumeClaim"),
        "persistentvolumes": GVK("", "v1", "PersistentVolume"),
        "priorityclasses": GVK("scheduling.k8s.io", "v1", "PriorityClass"),
        "ingresses": GVK("networking.k8s.io", "v1", "Ingress"),
        "deployments": GVK("apps", "v1", "Deployment"),
        "localsubjectaccessreviews": GVK("authorization.k8s.io", "v1", "LocalSubjectAccessReview"),
    }
    cluster = {"namespaces", "nodes", "persistentvolumes", "priorityclasses"}
    resources = {
        plural: Resource(
            gvk=gvk,
            plural=plural,
            namespaced=plural not in cluster,
            verbs=("create",) if gvk.kind.endswith("Review") else ALL_VERBS,
            schema=Node,
            storage=gvk,
            storage_resource=GroupResource(gvk.group, plural),
        )
        for plural, gvk in kinds.items()
    }

    def make(
        operation: str,
        plural: str,
        obj: dict[str, Any] | None = None,
        old: dict[str, Any] | None = None,
        *,
        name: str = "x",
        namespace: str = "ns",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Attributes:
        resource = resources[plural]
        where = namespace if resource.namespaced else ""
        for found in (obj, old):
            if found is not None:
                found.setdefault("metadata", {}).setdefault("name", name)
        return Attributes(operation, resource, subresource, where, name, obj, old, User("alice"), dry_run=dry_run)

    return make
