"""What a policy that passed admission under other rules must still not do."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.overrides.errors import OverrideError
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.overriding import applied, config_map, cop, op, rule

RBAC = "rbac.authorization.k8s.io/v1"


def replaced(path: str, value: Any = "x") -> Obj:
    return rule(plaintext=[{"path": path, "operator": "replace", "value": value}])


def role_binding() -> Obj:
    return kube_object("rbac.authorization.k8s.io/v1", "RoleBinding", "viewers", "default") | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [],
    }


@pytest.mark.parametrize("kind", [op, cop])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/metadata/namespace", "kube-system"),
        ("/metadata/name", "other"),
        ("/kind", "Secret"),
        ("/apiVersion", "v2"),
        ("/metadata", {"name": "web", "namespace": "kube-system"}),
    ],
)
def test_an_object_keeps_its_identity(kind: Any, path: str, value: Any) -> None:
    with pytest.raises(OverrideError, match="must not be changed by an override policy"):
        applied(config_map(), kind("p", replaced(path, value)))


def test_a_namespaced_policy_leaves_a_role_binding_to_its_role() -> None:
    policy = replaced("/roleRef/name", "cluster-admin")
    with pytest.raises(OverrideError, match="/roleRef must not be changed"):
        applied(role_binding(), op("p", policy))
    made = applied(role_binding(), cop("p", policy)).manifest
    assert made["roleRef"]["name"] == "cluster-admin"


def guarded(api_version: str, kind: str, **content: Any) -> Obj:
    return kube_object(api_version, kind, "g", "default", **content)


@cases(
    (guarded(RBAC, "Role", rules=[]), "/rules", [{"apiGroups": ["*"]}], "/rules"),
    (guarded(RBAC, "Role", rules=[{"verbs": ["get"]}]), "/rules/0/verbs/0", "*", "/rules"),
    (role_binding(), "/subjects", [{"kind": "User", "name": "mallory"}], "/subjects"),
    (guarded("v1", "Secret", type="Opaque"), "/type", "kubernetes.io/service-account-token", "/type"),
    (guarded("v1", "ServiceAccount", secrets=[]), "/secrets", [{"name": "x"}], "/secrets"),
    (guarded("v1", "Service", spec={}), "/spec", {"externalIPs": ["8.8.8.8"]}, "/spec/externalIPs"),
    (guarded("v1", "ResourceQuota", spec={"hard": {"pods": "1"}}), "/spec/hard/pods", "1000", "/spec"),
    (guarded("v1", "LimitRange", spec={"limits": []}), "/spec/limits", [{}], "/spec"),
    (guarded("discovery.k8s.io/v1", "EndpointSlice", endpoints=[]), "/endpoints", [{}], "/endpoints"),
    ids=lambda value: value["kind"] if isinstance(value, dict) and "kind" in value else "",
)
def test_what_gives_rights_is_changed_by_a_cluster_wide_policy_only(
    obj: Obj, path: str, value: Any, field: str
) -> None:
    policy = replaced(path, value)
    with pytest.raises(OverrideError, match=f"{field} must not be changed by an OverridePolicy"):
        applied(obj, op("p", policy))
    assert applied(obj, cop("p", policy)).manifest != obj


def test_other_fields_of_such_kinds_are_changed_by_both() -> None:
    service = guarded("v1", "Service", spec={"type": "ClusterIP", "externalIPs": ["10.0.0.1"]})
    whole = replaced("/spec", {"type": "LoadBalancer", "externalIPs": ["10.0.0.1"]})
    for policy in (op("p", whole), cop("p", whole)):
        assert applied(service, policy).manifest["spec"]["type"] == "LoadBalancer"


def test_setting_what_is_there_already_is_no_change() -> None:
    same = config_map()["metadata"]["name"]
    assert applied(config_map(), op("p", replaced("/metadata/name", same))).manifest["metadata"]["name"] == same
