from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.selectors import parse_fields
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.http.options import list_options
from karmada.kube.server.http.request import Query
from karmada.search.proxy.selecting import check_fields, matching
from tests.support.cases import cases

RESOURCES = {resource.gvk: resource for resource in builtin_resources(Definitions.load())}
NAMES = ["metadata.name", "metadata.namespace"]
OBJECT = [
    f"involvedObject.{f}" for f in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]
]
ACCEPTED = {
    "Pod": [
        "spec.nodeName", "spec.host", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ],
    "Node": ["spec.unschedulable"],
    "ReplicationController": ["status.replicas"],
    "Event": [*OBJECT, "reason", "reportingComponent", "source", "type"],
    "Namespace": ["status.phase"],
    "Secret": ["type"],
    "Service": ["spec.clusterIP", "spec.type"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in ACCEPTED.items() for path in paths + NAMES])
def test_core_kinds_are_selected_by_their_fields(kind: str, path: str) -> None:
    check_fields(RESOURCES[GVK("", "v1", kind)], parse_fields(f"{path}=x"))


@pytest.mark.parametrize("kind", ACCEPTED)
def test_an_unknown_field_of_a_core_kind_is_refused(kind: str) -> None:
    with pytest.raises(BadRequest, match=r"^field label not supported: spec\.other$"):
        check_fields(RESOURCES[GVK("", "v1", kind)], parse_fields("spec.other=x"))


@cases(GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "ReplicaSet"), GVK("events.k8s.io", "v1", "Event"))
def test_other_kinds_are_selected_by_name_and_namespace_only(gvk: GVK) -> None:
    check_fields(RESOURCES[gvk], parse_fields("metadata.name=x,metadata.namespace!=y"))
    with pytest.raises(BadRequest) as refused:
        check_fields(RESOURCES[gvk], parse_fields("status.replicas=1"))
    known = 'only "metadata.name", "metadata.namespace"'
    assert refused.value.message == f'"status.replicas" is not a known field selector: {known}'


def entry(**obj: Any) -> Doc:
    metadata = {"name": "p", "namespace": "a", "labels": {"app": "web"}}
    return Doc("", "a", "p", 1, orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **obj}))


@cases(
    ("labelSelector=app%3Dweb", True),
    ("labelSelector=app%3Dother", False),
    ("fieldSelector=metadata.name%3Dp", True),
    ("fieldSelector=metadata.namespace%3Db", False),
    ("fieldSelector=status.phase%3DRunning", True),
    ("fieldSelector=status.phase!%3DRunning", False),
    ("fieldSelector=spec.host%3Dn1&labelSelector=app%3Dweb", True),
    ("fieldSelector=spec.host%3Dn1&labelSelector=app%3Dother", False),
)
def test_cached_objects_are_matched_by_labels_and_fields(query: str, matches: bool) -> None:
    selects = matching(RESOURCES[GVK("", "v1", "Pod")], list_options(Query.parse(query), watch=False))
    assert selects is not None
    assert selects(entry(spec={"nodeName": "n1"}, status={"phase": "Running"})) is matches


def test_without_selectors_nothing_is_matched() -> None:
    assert matching(RESOURCES[GVK("", "v1", "Pod")], list_options(Query({}), watch=False)) is None
