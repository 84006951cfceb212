"""NamespaceLifecycle: nothing is created in a missing or terminating namespace; some namespaces cannot be deleted."""

from __future__ import annotations

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.admission.interface import CREATE, DELETE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse

NAMESPACES = GroupResource("", "namespaces")
IMMORTAL = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_REVIEWED_ANYWHERE = GroupResource("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(BuiltinPlugin):
    name = "NamespaceLifecycle"
    mutates = False
    by_namespace = True

    def handles(self, attributes: Attributes) -> bool:
        if attributes.operation == DELETE:
            return attributes.group_resource == NAMESPACES
        if attributes.operation != CREATE or not attributes.resource.namespaced:
            return False
        return attributes.group_resource != _REVIEWED_ANYWHERE

    async def admit(self, attributes: Attributes) -> None:
        if attributes.operation == DELETE:
            if attributes.name in IMMORTAL:
                raise refuse(attributes, "this namespace may not be deleted")
            return
        name = attributes.namespace
        namespace = self.reader.get(NAMESPACES, "", name)
        if namespace is None:
            raise NotFound.of(NAMESPACES, name)
        if "deletionTimestamp" in namespace["metadata"] and attributes.subresource != "eviction":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            error = refuse(attributes, why)
            error.details["causes"] = [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {name} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
            raise error
