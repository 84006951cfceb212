"""What a policy that passed admission under other rules must still not do."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.overrides.errors import OverrideError
from tests.support.overriding import applied, config_map, cop, op, rule


def replaced(path: str, value: Any = "x") -> Obj:
    return rule(plaintext=[{"path": path, "operator": "replace", "value": value}])


def role_binding() -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"namespace": "default", "name": "viewers"},
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


def test_setting_what_is_there_already_is_no_change() -> None:
    same = config_map()["metadata"]["name"]
    assert applied(config_map(), op("p", replaced("/metadata/name", same))).manifest["metadata"]["name"] == same
