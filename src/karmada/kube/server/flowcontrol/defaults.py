"""The FlowSchemas and PriorityLevelConfigurations that every server has, as Kubernetes defines them."""

from __future__ import annotations

from typing import Any, Final

from karmada.kube.objects.types import Obj

API_VERSION: Final = "flowcontrol.apiserver.k8s.io/v1"
EXEMPT, CATCH_ALL = "exempt", "catch-all"
_AUTOUPDATE = {"apf.kubernetes.io/autoupdate-spec": "true"}
_EVERYBODY = ("system:unauthenticated", "system:authenticated")
_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"

_LEVELS: Final[dict[str, tuple[int, int, tuple[int, int, int] | None]]] = {
    "system": (30, 33, (64, 6, 50)),
    "node-high": (40, 25, (64, 6, 50)),
    "leader-election": (10, 0, (16, 4, 50)),
    "workload-high": (40, 50, (128, 6, 50)),
    "workload-low": (100, 90, (128, 6, 50)),
    "global-default": (20, 50, (128, 6, 50)),
    CATCH_ALL: (5, 0, None),
}
"""Shares, lendable percent, and (queues, hand size, queue length) where requests may wait, by name."""


def _user(name: str) -> Obj:
    return {"kind": "User", "user": {"name": name}}


def _group(name: str) -> Obj:
    return {"kind": "Group", "group": {"name": name}}


def _account(name: str) -> Obj:
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}


def _resources(*resources: str, verbs: tuple[str, ...] = ("*",), group: str = "*", **scope: Any) -> Obj:
    where = scope or {"clusterScope": True, "namespaces": ["*"]}
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources or ("*",)), **where}


_PATHS: Final[Obj] = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_ALL: Final[Obj] = {"resourceRules": [_resources()], "nonResourceRules": [_PATHS]}
_LEASES = ("get", "create", "update")
_IN_ALL_NAMESPACES: Final[Obj] = {"namespaces": ["*"]}

_SCHEMAS: Final[tuple[tuple[str, str, int, str, list[Obj], Obj], ...]] = (
    (EXEMPT, EXEMPT, 1, "", [_group("system:masters")], _ALL),
    (
        "probes", EXEMPT, 2, "", [_group(name) for name in _EVERYBODY],
        {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]},
    ),
    (
        "system-leader-election", "leader-election", 100, "ByUser",
        [_user(_MANAGER), _user(_SCHEDULER), _account("*")],
        {"resourceRules": [
            _resources("leases", verbs=_LEASES, group="coordination.k8s.io", namespaces=["kube-system"])
        ]},
    ),
    (
        "endpoint-controller", "workload-high", 150, "ByUser",
        [_user(_MANAGER), _account("endpoint-controller"), _account("endpointslicemirroring-controller")],
        {"resourceRules": [_resources("endpoints", verbs=_LEASES, group="", **_IN_ALL_NAMESPACES)]},
    ),
    (
        "workload-leader-election", "leader-election", 200, "ByUser", [_account("*")],
        {"resourceRules": [
            _resources("leases", verbs=_LEASES, group="coordination.k8s.io", **_IN_ALL_NAMESPACES)
        ]},
    ),
    (
        "system-node-high", "node-high", 400, "ByUser", [_group("system:nodes")],
        {"resourceRules": [
            _resources("nodes", "nodes/status", group="", clusterScope=True),
            _resources("leases", group="coordination.k8s.io", **_IN_ALL_NAMESPACES),
        ]},
    ),
    ("system-nodes", "system", 500, "ByUser", [_group("system:nodes")], _ALL),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", [_user(_MANAGER)], _ALL),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", [_user(_SCHEDULER)], _ALL),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_account("*")], _ALL),
    ("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")], _ALL),
    ("global-default", "global-default", 9900, "ByUser", [_group(name) for name in _EVERYBODY], _ALL),
    (CATCH_ALL, CATCH_ALL, 10000, "ByUser", [_group(name) for name in _EVERYBODY], _ALL),
)  # fmt: skip
"""Name, level, matching precedence, distinguisher method, subjects and rules."""


def priority_levels() -> list[Obj]:
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    limited = {name: _limited(*values) for name, values in _LEVELS.items()}
    return [_object("PriorityLevelConfiguration", name, spec) for name, spec in {EXEMPT: exempt, **limited}.items()]


def _limited(shares: int, lendable: int, queuing: tuple[int, int, int] | None) -> Obj:
    response: Obj = {"type": "Reject"}
    if queuing is not None:
        queues, hand, length = queuing
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": length}}
    limits = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
    return {"type": "Limited", "limited": limits}


def flow_schemas() -> list[Obj]:
    return [
        _object(
            "FlowSchema",
            name,
            {
                "priorityLevelConfiguration": {"name": level},
                "matchingPrecedence": precedence,
                **({"distinguisherMethod": {"type": method}} if method else {}),
                "rules": [{"subjects": subjects, **which}],
            },
        )
        for name, level, precedence, method, subjects, which in _SCHEMAS
    ]


def _object(kind: str, name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "annotations": dict(_AUTOUPDATE)}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
