"""State for the tests of authentication and authorisation: a dict that looks like the watch cache, and small makers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.kube.kinds.rbac import GROUP
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import Authorizer

NOW = 1_700_000_000.0
_PLURALS = {
    "Role": GroupResource(GROUP, "roles"),
    "ClusterRole": GroupResource(GROUP, "clusterroles"),
    "RoleBinding": GroupResource(GROUP, "rolebindings"),
    "ClusterRoleBinding": GroupResource(GROUP, "clusterrolebindings"),
    "Secret": GroupResource("", "secrets"),
    "ServiceAccount": GroupResource("", "serviceaccounts"),
    "Pod": GroupResource("", "pods"),
    "Node": GroupResource("", "nodes"),
}


class FakeReader:
    def __init__(self, objects: Iterable[Obj] = ()) -> None:
        self._objects: dict[tuple[GroupResource, str, str], Obj] = {}
        self.version = 0
        for obj in objects:
            self.put(obj)

    def put(self, obj: Obj) -> None:
        meta = obj["metadata"]
        self._objects[(_PLURALS[obj["kind"]], meta.get("namespace", ""), meta["name"])] = obj
        self.version += 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        del self._objects[(_PLURALS[kind], namespace, name)]
        self.version += 1

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None:
        return self._objects.get((resource, namespace, name))

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        return [o for (r, ns, _), o in self._objects.items() if r == resource and namespace in ("", ns)]


def authorizer(reader: FakeReader) -> Authorizer:
    return Authorizer(reader, lambda: reader.version)


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Obj:
    made: Obj = {"verbs": verbs.split(), "apiGroups": groups.split(","), "resources": resources.split()}
    if names:
        made["resourceNames"] = names.split()
    return made


def urls(verbs: str, paths: str) -> Obj:
    return {"verbs": verbs.split(), "nonResourceURLs": paths.split()}


def role(name: str, *rules: Obj, namespace: str = "", **more: Any) -> Obj:
    meta: Obj = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": meta, "rules": list(rules), **more}


def subject(text: str) -> Obj:
    kind, _, name = text.partition(":")
    if kind == "sa":
        namespace, _, account = name.partition("/")
        return {"kind": "ServiceAccount", "name": account} | ({"namespace": namespace} if namespace else {})
    return {"kind": {"user": "User", "group": "Group"}[kind], "apiGroup": GROUP, "name": name}


def binding(name: str, to: str, *subjects: str, namespace: str = "") -> Obj:
    """`to` is Role/<name> or ClusterRole/<name>."""
    kind, _, role_name = to.partition("/")
    meta: Obj = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": [subject(text) for text in subjects],
    }


def account(name: str = "robot", namespace: str = "default", uid: str = "sa-1") -> Obj:
    return {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace, "uid": uid}}
