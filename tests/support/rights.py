"""Roles for the whole cluster, and who has them."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

RBAC = "rbac.authorization.k8s.io"


def role(name: str, *rules: Obj) -> Obj:
    return kube_object(f"{RBAC}/v1", "ClusterRole", name, rules=list(rules))


def binding(name: str, *subjects: Obj, to: str = "") -> Obj:
    """To the role of the same name if none is given."""
    return kube_object(f"{RBAC}/v1", "ClusterRoleBinding", name) | {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": to or name},
        "subjects": list(subjects),
    }


def user(name: str) -> Obj:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group(name: str) -> Obj:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def account(name: str, namespace: str) -> Obj:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


async def grant(client: Client, name: str, rules: list[Obj], *subjects: Obj) -> None:
    """Make a role with these rules, and bind the subjects to it."""
    await client.create(CLUSTER_ROLES, role(name, *rules))
    await client.create(CLUSTER_ROLE_BINDINGS, binding(name, *subjects))
