"""Names made from others, and that the constants are names."""

from __future__ import annotations

from karmada.api import well_known
from karmada.api.well_known import (
    binding_name,
    cluster_of_namespace,
    cluster_role_name,
    depended_by_label,
    derived_service_name,
    estimator_name,
    execution_namespace,
    generated_policy_name,
    impersonator_secret_name,
    imported_slice_name,
    is_reserved_namespace,
    service_account_name,
    work_name,
)
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.names import qualified_name
from tests.support.cases import cases


@cases(
    (("Deployment", "nginx", "default"), "nginx-687f7fb96f"),
    (("ClusterRole", "system:test-x"), "system.test-x-7b576cf94d"),
    (("Role", "a:b", "ns"), "a.b-74865bcc99"),
)
def test_a_work_is_named_after_its_template_and_a_hash(template: tuple[str, ...], expected: str) -> None:
    assert work_name(*template) == expected


@cases(
    (("Deployment", "a", "x"), ("Deployment", "a", "y")),
    (("Deployment", "a", "x"), ("StatefulSet", "a", "x")),
    (("ClusterRole", "a"), ("ClusterRole", "a", "x")),
)
def test_works_of_different_templates_have_different_names(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert work_name(*one) != work_name(*other)


def test_colons_and_capitals_do_not_get_into_names() -> None:
    assert binding_name("ClusterRole", "system:Admin") == "system.admin-clusterrole"
    assert work_name("ClusterRole", "system:Admin").startswith("system.admin-")
    assert work_name("ClusterRole", "system:Admin") == work_name("ClusterRole", "system:admin")


@cases(
    ("default", "nginx", GVK("apps", "v1", "Deployment"), "nginx-6d7f8d5f5b"),
    ("", "Sys:Tem", GVK("", "v1", "Namespace"), "sys.tem-646d6c6947"),
)
def test_a_generated_policy_is_named_after_its_resource(namespace: str, name: str, gvk: GVK, expected: str) -> None:
    assert generated_policy_name(namespace, name, gvk) == expected


def test_an_execution_namespace_leads_back_to_its_cluster() -> None:
    assert cluster_of_namespace(execution_namespace("member1")) == "member1"
    assert execution_namespace("member1") == "karmada-es-member1"
    assert cluster_of_namespace("default") is None


@cases(
    ("karmada-system", True),
    ("karmada-cluster", True),
    ("karmada-es-m1", True),
    ("default", False),
    ("kube-system", False),
    ("karmada-systems", False),
    ("karmada", False),
)
def test_reserved_namespaces(namespace: str, reserved: bool) -> None:
    assert is_reserved_namespace(namespace) is reserved


def test_the_depended_by_label_is_a_valid_key_and_its_own_for_every_binding() -> None:
    labels = {depended_by_label("a", "b"), depended_by_label("a", "c"), depended_by_label("", "b")}
    assert len(labels) == 3
    assert all(label.startswith("resourcebinding.karmada.io/depended-by-") for label in labels)
    assert [qualified_name(label) for label in labels] == [[]] * 3


def test_names_of_what_belongs_to_a_cluster() -> None:
    assert impersonator_secret_name("m1") == "m1-impersonator"
    assert service_account_name("m1") == "karmada-m1"
    assert cluster_role_name("karmada-m1") == "karmada-controller-manager:karmada-m1"
    assert derived_service_name("web") == "derived-web"
    assert imported_slice_name("m1", "web-x") == "imported-m1-web-x"
    assert estimator_name("m1") == "karmada-scheduler-estimator-m1"
    assert estimator_name("m1", "other") == "other-m1"


def test_every_key_is_a_valid_label_or_annotation_key_and_none_stands_twice() -> None:
    keys = [
        value
        for name, value in vars(well_known).items()
        if name.isupper() and isinstance(value, str) and "/" in value and not name.endswith("_PREFIX")
    ]
    assert len(keys) > 50
    assert [key for key in keys if qualified_name(key)] == []
    assert len(keys) == len(set(keys))
