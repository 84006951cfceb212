"""Manifests as documents show them, older releases' among them: each is accepted, and nothing of it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.api.crds import all_kinds
from karmada.api.kind import KindInfo
from karmada.api.schema import kind_schema
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.node import Node
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.validation import validate
from karmada.kube.schema.yamlio import load_all
from tests.support.cases import cases

DATA = Path(__file__).parent / "data" / "seeds"
MANIFESTS = [
    (path.stem, index, obj)
    for path in sorted(DATA.glob("*.yaml"))
    for index, obj in enumerate(load_all(path.read_bytes()))
]
KINDS = {info.gvk: info for info in all_kinds()}


def info_of(obj: Obj) -> KindInfo:
    return KINDS[GVK.parse(obj["apiVersion"], obj["kind"])]


def node_of(obj: Obj) -> Node:
    return compile_schema(kind_schema(info_of(obj).type))


def label(value: object) -> str:
    return f"{value['kind']}-{value['metadata']['name']}" if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("source", "index", "manifest"), MANIFESTS, ids=label)
def test_no_field_is_unknown(source: str, index: int, manifest: Obj) -> None:
    assert prune(node_of(manifest), copy_json(manifest)) == []


@pytest.mark.parametrize(("source", "index", "manifest"), MANIFESTS, ids=label)
def test_the_manifest_is_valid(source: str, index: int, manifest: Obj) -> None:
    obj = copy_json(manifest)
    if info_of(obj).has_status:
        obj.pop("status", None)  # as a server does with what comes to the main endpoint
    node = node_of(obj)
    apply_defaults(node, obj)
    assert [str(error) for error in validate(node, obj)] == []


@pytest.mark.parametrize(("source", "index", "manifest"), MANIFESTS, ids=label)
def test_code_can_read_it(source: str, index: int, manifest: Obj) -> None:
    given = {key: value for key, value in manifest.items() if key != "status"}
    view = info_of(manifest).type.of(given)
    assert view.to_obj()["metadata"] == manifest["metadata"]
    assert view.of(view.to_obj()) == view


def test_the_last_binding_shows_a_status_that_fits() -> None:
    shown = [obj for source, _, obj in MANIFESTS if source == "overview" and obj["kind"] == "ResourceBinding"][-1]
    assert validate(node_of(shown), shown) == []


@cases(
    ("PropagationPolicy", "nginx-dynamic", "spec.placement.replicaScheduling.dynamicWeight"),
    ("PropagationPolicy", "failover-policy", "spec.failover.applicationMigrationPolicy.purgePolicy"),
    ("OverridePolicy", "nginx-override", "spec.overrideRules.0.overriders.replicasOverrider.0.value"),
    ("OverridePolicy", "nginx-override", "spec.overrideRules.0.overriders.resourcesOverrider.0.value.limits.cpu"),
    ("MultiClusterService", "nginx-mcs", "spec.ports.0.targetPort"),
    ("MultiClusterIngress", "nginx-mci", "spec.template.spec.rules.0.http.paths.0.backend.service.port.number"),
    ("ReplicaSchedulingPolicy", "replica-reschedule", "spec.reschedulePolicy.threshold.cpuUtilization"),
    ("Cluster", "member-cluster-1", "spec.zone"),
)
def test_an_old_form_is_kept_for_admission_to_see(kind: str, name: str, path: str) -> None:
    manifest = next(obj for _, _, obj in MANIFESTS if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
    pruned = copy_json(manifest)
    prune(node_of(manifest), pruned)
    value: object = pruned
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    assert value is not None
