from __future__ import annotations

from karmada.kube.objects import rbac

LABELS = {"a": "b"}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def test_a_role_is_of_a_namespace_or_of_the_whole_cluster() -> None:
    assert rbac.role("reader", [RULE]) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [RULE],
    }
    own = rbac.role("reader", [RULE], "shop", labels=LABELS)
    assert (own["kind"], own["metadata"]) == ("Role", {"name": "reader", "namespace": "shop", "labels": LABELS})


def test_a_binding_refers_to_a_role_of_its_scope_by_its_own_name_or_another() -> None:
    found = rbac.binding("reader", rbac.user("ann"), "shop")
    assert found["kind"] == "RoleBinding"
    assert found["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    assert found["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]
    everywhere = rbac.binding("readers", rbac.group("staff"), role="reader")
    assert everywhere["kind"] == "ClusterRoleBinding"
    assert everywhere["roleRef"]["kind"] == "ClusterRole"
    assert everywhere["roleRef"]["name"] == "reader"
    assert rbac.binding("x", rbac.account("ns", "robot"))["subjects"] == [
        {"kind": "ServiceAccount", "namespace": "ns", "name": "robot"}
    ]
