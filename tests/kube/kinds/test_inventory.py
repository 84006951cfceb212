"""The table of built-in kinds, and what a cluster has from the start."""

from __future__ import annotations

import pytest

from karmada.kube.kinds.inventory import builtin_resources, group_priority, version_priority
from karmada.kube.kinds.metadata import metadata_errors
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVK, GroupResource, GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.decode import normalize
from karmada.kube.server.addresses.allocator import Allocator
from karmada.kube.server.bootstrap.objects import default_objects
from tests.support.cases import cases
from tests.support.reader import FakeReader


@pytest.fixture(scope="module")
def resources() -> dict[GVK, Resource]:
    return {resource.gvk: resource for resource in builtin_resources(Definitions.load("1.36"))}


def find(resources: dict[GVK, Resource], version: str, kind: str) -> Resource:
    return resources[GVK.parse(version, kind)]


@cases(
    ("v1", "Endpoints", "endpoints", ("ep",)),
    ("v1", "ComponentStatus", "componentstatuses", ("cs",)),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", ("netpol",)),
    ("networking.k8s.io/v1", "Ingress", "ingresses", ("ing",)),
    ("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", ()),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", ("sc",)),
    ("networking.k8s.io/v1", "IPAddress", "ipaddresses", ("ip",)),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", ("crd", "crds")),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", ()),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", ()),
)
def test_names(version: str, kind: str, plural: str, short: tuple[str, ...], resources: dict[GVK, Resource]) -> None:
    found = find(resources, version, kind)
    assert (found.plural, found.short_names, found.singular) == (plural, short, kind.lower())


@cases(
    ("apps/v1", "Deployment", "", {"f:spec": {}, "f:status": {}}, {"f:spec": {}}),
    ("apps/v1", "Deployment", "status", {"f:metadata": {"f:labels": {}}, "f:status": {}}, {"f:status": {}}),
    ("apps/v1", "Deployment", "scale", {"f:spec": {}, "f:status": {}}, {"f:spec": {}, "f:status": {}}),
    ("v1", "ConfigMap", "", {"f:data": {}, "f:status": {}}, {"f:data": {}, "f:status": {}}),
)
def test_an_endpoint_owns_the_fields_that_it_writes(
    version: str, kind: str, subresource: str, fields: Obj, left: Obj, resources: dict[GVK, Resource]
) -> None:
    reset = find(resources, version, kind).reset_of(subresource)
    assert reset.keep(fields) == left


def test_every_schema_is_there(resources: dict[GVK, Resource]) -> None:
    assert all(resource.schema().is_struct for resource in resources.values())


def test_no_two_kinds_share_a_name(resources: dict[GVK, Resource]) -> None:
    assert len({resource.gvr for resource in resources.values()}) == len(resources)


def test_two_faces_on_one_storage(resources: dict[GVK, Resource]) -> None:
    old, new = (find(resources, version, "HorizontalPodAutoscaler") for version in ("autoscaling/v1", "autoscaling/v2"))
    assert old.storage == new.storage == new.gvk
    assert old.storage_resource == new.storage_resource
    event = find(resources, "events.k8s.io/v1", "Event")
    assert event.storage_resource == GroupResource("", "events")
    assert event.storage == GVK("", "v1", "Event")
    assert find(resources, "v1", "Event").to_storage is None


def test_subresources_have_their_kinds(resources: dict[GVK, Resource]) -> None:
    pod = find(resources, "v1", "Pod")
    assert list(pod.subresources) == [
        "attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize",
        "status",
    ]  # fmt: skip
    assert pod.subresources["eviction"].kind == GVK("policy", "v1", "Eviction")
    deployment = find(resources, "apps/v1", "Deployment")
    assert deployment.subresources["scale"].kind == GVK("autoscaling", "v1", "Scale")
    assert set(find(resources, "apps/v1", "DaemonSet").subresources) == {"status"}
    assert set(find(resources, "certificates.k8s.io/v1", "CertificateSigningRequest").subresources) == {
        "approval",
        "status",
    }


def test_every_kind_with_a_scale_says_how(resources: dict[GVK, Resource]) -> None:
    for resource in resources.values():
        assert ("scale" in resource.subresources) == (resource.strategy.scale is not None), resource.gvk


def test_verbs(resources: dict[GVK, Resource]) -> None:
    assert "deletecollection" not in find(resources, "v1", "Namespace").verbs
    assert find(resources, "authentication.k8s.io/v1", "TokenReview").verbs == ("create",)
    assert find(resources, "v1", "Binding").verbs == ("create",)
    assert find(resources, "v1", "ComponentStatus").verbs == ("get", "list")


UPSERTS = {
    "endpoints", "events", "leases", "limitranges", "services", "runtimeclasses", "roles", "rolebindings",
    "clusterroles", "clusterrolebindings",
}  # fmt: skip
CONDITIONAL = {
    "leases", "poddisruptionbudgets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings", "csidrivers", "csinodes", "volumeattachments", "runtimeclasses", "apiservices",
    "customresourcedefinitions",
}  # fmt: skip
RETURNED = {
    "pods", "services", "serviceaccounts", "namespaces", "persistentvolumes", "persistentvolumeclaims", "podtemplates",
    "resourcequotas", "storageclasses", "csidrivers", "csinodes", "volumeattachments",
    "resourceclaims", "resourceclaimtemplates",
}  # fmt: skip
NO_GENERATION = {
    "configmaps", "secrets", "services", "namespaces", "nodes", "persistentvolumes", "persistentvolumeclaims",
    "serviceaccounts", "horizontalpodautoscalers", "leases", "roles", "clusterroles", "rolebindings",
    "clusterrolebindings", "storageclasses", "apiservices", "endpoints", "events", "resourcequotas", "limitranges",
}  # fmt: skip


def test_how_kinds_are_written(resources: dict[GVK, Resource]) -> None:
    every = list(resources.values())
    assert {r.plural for r in every if r.strategy.create_on_update} == UPSERTS
    assert {r.plural for r in every if not r.strategy.unconditional_update} == CONDITIONAL
    assert {r.plural for r in every if r.strategy.returns_deleted} == RETURNED
    assert {r.plural for r in every if r.strategy.orphan_by_default} == {"jobs", "replicationcontrollers"}
    assert not {r.plural for r in every if r.strategy.generation is not None} & NO_GENERATION
    assert {r.plural for r in every if r.strategy.graceful is not None} == {"pods"}


def test_kinds_that_a_version_does_not_know_are_left_out() -> None:
    old = {resource.gvk for resource in builtin_resources(Definitions.load("1.30"))}
    assert GVK("networking.k8s.io", "v1", "IPAddress") not in old
    assert GVK("apps", "v1", "Deployment") in old


def test_service_names_were_stricter_before() -> None:
    for version, allowed in (("1.35", False), ("1.36", True)):
        [service] = [r for r in builtin_resources(Definitions.load(version)) if r.gvk.kind == "Service"]
        assert service.strategy.name_errors is not None
        assert (service.strategy.name_errors("1web") == []) is allowed


def test_priorities() -> None:
    assert group_priority("apiregistration.k8s.io") > group_priority("") > group_priority("apps")
    assert group_priority("example.com") == 1000
    assert (
        version_priority(GroupVersion("autoscaling", "v2")) > version_priority(GroupVersion("autoscaling", "v1")) == 15
    )
    assert version_priority(GroupVersion("resource.k8s.io", "v1beta1")) == 9
    assert version_priority(GroupVersion("resource.k8s.io", "v1alpha3")) == 1
    assert version_priority(GroupVersion("example.com", "v1")) == 100


async def test_the_first_objects_of_a_cluster_are_valid() -> None:
    definitions = Definitions.load("1.36")
    allocator = Allocator(FakeReader())
    served = {resource.gvk: resource for resource in builtin_resources(definitions, allocator.reserve)}
    objects = default_objects(host="192.168.1.10", port=6443, definitions=definitions)
    for obj in objects:
        resource = served[GVK.parse(obj["apiVersion"], obj["kind"])]
        assert normalize(resource.schema(), obj) == []
        obj["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        strategy = resource.strategy
        strategy.default(obj)
        strategy.prepare_create(obj)
        if strategy.reserve is not None:
            assert await strategy.reserve(obj, None) is not None
        errors = metadata_errors(obj, namespaced=resource.namespaced, name_errors=strategy.name_errors, builtin=True)
        assert errors + strategy.validate(obj) == []
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    assert {("Namespace", "kube-system"), ("Service", "kubernetes"), ("EndpointSlice", "kubernetes")} <= names
    assert {("APIService", "v1."), ("APIService", "v1.apps"), ("PriorityClass", "system-node-critical")} <= names
    [service] = [obj for obj in objects if obj["kind"] == "Service"]
    assert service["spec"]["clusterIPs"] == ["10.96.0.1"]


@cases(("127.0.0.1", True), ("0.0.0.0", False), ("api.example", False))
def test_only_an_address_can_be_an_endpoint(host: str, shown: bool) -> None:
    kinds = {obj["kind"] for obj in default_objects(host=host, port=6443)}
    assert ({"Endpoints", "EndpointSlice"} <= kinds) is shown


def test_defaulting_an_empty_object_of_any_kind_is_idempotent(resources: dict[GVK, Resource]) -> None:
    for resource in resources.values():
        obj = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": {"name": "x"}}
        normalize(resource.schema(), obj)
        resource.strategy.default(obj)
        first = repr(obj)
        resource.strategy.default(obj)
        assert repr(obj) == first, resource.gvk
        resource.strategy.validate(obj)
