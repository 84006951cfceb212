"""State for the tests of authentication and authorisation: a dict that looks like the watch cache, and small makers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from karmada.kube.kinds.rbac import GROUP
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import Authorizer, Written
from tests.support import reader

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


class FakeReader(reader.FakeReader):
    def __init__(self, objects: Iterable[Obj] = ()) -> None:
        super().__init__()
        self._written: list[Written] = []
        self.broken = False
        for obj in objects:
            self.put(obj)

    def put(self, obj: Obj) -> None:
        resource = _PLURALS[obj["kind"]]
        self.hold(resource, obj)
        self._written.append(Written(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        key = _PLURALS[kind], namespace, name
        del self.objects[key]
        self._written.append(Written(*key))

    def changes(self) -> Callable[[], Sequence[Written] | None]:
        """What gives what was written since its last call; None for its first."""
        position: int | None = None

        def take() -> Sequence[Written] | None:
            nonlocal position
            before, position = position, len(self._written)
            return None if before is None else self._written[before:]

        return take

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None:
        if self.broken:
            raise ServiceUnavailable("the store cannot be read")
        return super().get(resource, namespace, name)


def authorizer(objects: FakeReader) -> Authorizer:
    return Authorizer(objects, objects.changes())


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
