"""Roles and bindings as objects; with a namespace they are of it, without one of the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from karmada.kube.objects.types import Obj

GROUP: Final = "rbac.authorization.k8s.io"


def role(
    name: str, rules: Sequence[Obj] | None, namespace: str = "", *, labels: Mapping[str, str] | None = None
) -> Obj:
    return _object("Role", name, namespace, labels, rules=rules)


def binding(
    name: str, subject: Obj, namespace: str = "", *, role: str = "", labels: Mapping[str, str] | None = None
) -> Obj:
    """Return the binding of a role of the same scope; its name is that of the binding unless it is given."""
    reference = {"apiGroup": GROUP, "kind": _scoped("Role", namespace), "name": role or name}
    return _object("RoleBinding", name, namespace, labels, subjects=[subject], roleRef=reference)


def user(name: str) -> Obj:
    return {"apiGroup": GROUP, "kind": "User", "name": name}


def group(name: str) -> Obj:
    return {"apiGroup": GROUP, "kind": "Group", "name": name}


def account(namespace: str, name: str) -> Obj:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _scoped(kind: str, namespace: str) -> str:
    return kind if namespace else f"Cluster{kind}"


def _object(kind: str, name: str, namespace: str, labels: Mapping[str, str] | None, **content: object) -> Obj:
    metadata: Obj = {"name": name, **({"labels": dict(labels)} if labels else {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": f"{GROUP}/v1", "kind": _scoped(kind, namespace), "metadata": metadata, **content}
