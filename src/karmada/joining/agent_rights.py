"""The rights of an agent in the control plane: six objects, all bound to the user of its certificate.

A role for the whole control plane, one in the namespace of clusters' Secrets, and one in the execution namespace. RBAC
cannot limit a create to a name, nor a list without a field selector: what that leaves open is closed by the embedded
server (see apiserver/agent_isolation.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada.api import well_known
from karmada.joining.objects import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj

ROLES: Final = GVR("rbac.authorization.k8s.io", "v1", "roles")
ROLE_BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "rolebindings")
_RBAC: Final = "rbac.authorization.k8s.io"
_OURS: Final = {well_known.SYSTEM: well_known.TRUE}


def agent_rights(cluster: str, namespace: str = well_known.NAMESPACE_CLUSTER) -> list[tuple[GVR, Obj]]:
    """In the order in which they can be created, once their namespaces exist; `namespace` is that of the Secrets."""
    return [
        *_granted(cluster, f"system:karmada:{cluster}:agent", "", _everywhere(cluster)),
        *_granted(cluster, f"system:karmada:{cluster}:agent-secret", namespace, _secrets(cluster)),
        *_granted(cluster, f"system:karmada:{cluster}:agent-work", well_known.execution_namespace(cluster), _works()),
    ]


def _everywhere(cluster: str) -> list[Obj]:
    return [
        _rule("cluster.karmada.io", ["clusters"], ["get", "delete"], [cluster]),
        _rule("cluster.karmada.io", ["clusters"], ["create", "list", "watch"]),
        _rule("cluster.karmada.io", ["clusters/status"], ["update"], [cluster]),
        _rule(
            "config.karmada.io",
            ["resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"],
            ["get", "list", "watch"],
        ),
        _rule("", ["namespaces"], ["get"]),
        _rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        _rule("certificates.k8s.io", ["certificatesigningrequests"], ["get", "create"]),
        _rule("", ["services"], ["list", "watch"]),
        _rule("", ["events"], ["patch", "create", "update"]),
    ]


def _secrets(cluster: str) -> list[Obj]:
    own = [cluster, well_known.impersonator_secret_name(cluster)]
    return [_rule("", ["secrets"], ["get", "patch"], own), _rule("", ["secrets"], ["create"])]


def _works() -> list[Obj]:
    return [
        _rule("work.karmada.io", ["works"], ["get", "create", "list", "watch", "update", "delete"]),
        _rule("work.karmada.io", ["works/status"], ["patch", "update"]),
    ]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Obj:
    rule: Obj = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _granted(cluster: str, name: str, namespace: str, rules: list[Obj]) -> list[tuple[GVR, Obj]]:
    """A role with these rules, and its binding to the agent."""
    kind = "Role" if namespace else "ClusterRole"
    metadata: Obj = {"name": name, "labels": _OURS, **({"namespace": namespace} if namespace else {})}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": well_known.agent_user(cluster)}],
    }
    if namespace:
        return [(ROLES, role), (ROLE_BINDINGS, binding)]
    return [(CLUSTER_ROLES, role), (CLUSTER_ROLE_BINDINGS, binding)]
