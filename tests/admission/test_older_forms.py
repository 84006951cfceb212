"""Forms of older documents: what becomes of each, and that every manifest at hand passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.admission.context import Context
from karmada.admission.hooks import Hook, run_mutating, run_validating
from karmada.admission.table import MUTATING, VALIDATING
from karmada.api.crds import all_kinds
from karmada.api.older_forms import present_ingress, present_policy
from karmada.api.schema import kind_schema
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.validation import validate
from karmada.kube.schema.yamlio import load_all
from tests.support.cases import cases

DATA = Path(__file__).parent.parent / "api" / "data" / "seeds"
MANIFESTS = [obj for path in sorted(DATA.glob("*.yaml")) for obj in load_all(path.read_bytes())]
KINDS = {info.gvk: info for info in all_kinds()}


def label(manifest: Obj) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


def hooks_of(resource: GroupResource, hooks: tuple[Hook, ...]) -> list[Hook]:
    return [hook for hook in hooks if hook.resource == resource and "CREATE" in hook.operations]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=label)
async def test_every_manifest_is_completed_and_accepted(manifest: Obj, settings: Any) -> None:
    info = KINDS[GVK.parse(manifest["apiVersion"], manifest["kind"])]
    node = compile_schema(kind_schema(info.type))
    resource = GroupResource(info.gvk.group, info.plural)
    obj = copy_json(manifest)
    if info.namespaced:
        obj["metadata"].setdefault("namespace", "default")
    context = Context(settings, namespace=obj["metadata"].get("namespace") or "")
    apply_defaults(node, obj)
    for hook in hooks_of(resource, MUTATING):
        run_mutating(hook, obj, None, context)
    if info.has_status:
        obj.pop("status", None)
    apply_defaults(node, obj)
    assert [str(error) for error in validate(node, obj)] == []
    for hook in hooks_of(resource, VALIDATING):
        await run_validating(hook, obj, None, context)


def policy(**spec: Any) -> Obj:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": {"resourceSelectors": [selector], **spec}}


WEIGHTED = {"replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}


@cases(
    ({"replicaDivisionPreference": "Dynamic", "dynamicWeight": "AvailableReplicas"}, WEIGHTED),
    ({"replicaDivisionPreference": "Dynamic"}, WEIGHTED),
    ({"dynamicWeight": "AvailableReplicas"}, WEIGHTED),
    ({"replicaDivisionPreference": "Weighted", "dynamicWeight": "AvailableReplicas"}, WEIGHTED),
    (
        {"replicaDivisionPreference": "Dynamic", "weightPreference": {"staticWeightList": [{"weight": 0}]}},
        {
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [{"weight": 0}], "dynamicWeight": "AvailableReplicas"},
        },
    ),
    ({"replicaDivisionPreference": "Aggregated"}, {"replicaDivisionPreference": "Aggregated"}),
)
def test_dynamic_division_is_weighted_by_available_replicas(given: Obj, meant: Obj, completed: Any) -> None:
    obj = completed("mutate-propagationpolicy", policy(placement={"replicaScheduling": given}))
    assert present_policy(obj["spec"])["placement"]["replicaScheduling"] == meant
    assert given.items() <= obj["spec"]["placement"]["replicaScheduling"].items()


@cases(
    ([{"spreadByField": "region", "minGroups": 2}], True),
    ([{"spreadByField": "region"}, {"spreadByField": "zone"}], True),
    ([{"spreadByField": "region"}, {"spreadByField": "cluster"}], False),
    ([{"spreadByField": "region"}, {}], False),
    ([{"spreadByLabel": "rack"}], False),
    ([], False),
)
def test_a_spread_over_regions_gets_one_over_clusters(given: list[Obj], added: bool, completed: Any) -> None:
    obj = completed("mutate-propagationpolicy", policy(placement={"spreadConstraints": given}))
    meant = present_policy(obj["spec"])["placement"].get("spreadConstraints") or []
    assert len(meant) == len(given) + added
    if added:
        assert meant[-1] == {"spreadByField": "cluster", "minGroups": 1}


def test_a_migration_policy_becomes_failover(completed: Any) -> None:
    older = {"decisionConditions": {"tolerationSeconds": 60}, "purgePolicy": "Immediately"}
    stored = completed("mutate-propagationpolicy", policy(failover={"applicationMigrationPolicy": older}))["spec"]
    assert stored["failover"] == {"applicationMigrationPolicy": older}
    spec = present_policy(stored)
    assert spec["failover"] == {
        "application": {"decisionConditions": {"tolerationSeconds": 60}, "purgeMode": "Immediately"},
        "cluster": {"purgeMode": "Directly"},
    }
    assert spec["propagateDeps"] is True


def test_a_migration_policy_that_never_purges_says_nothing_of_clusters(completed: Any) -> None:
    never = {"applicationMigrationPolicy": {"purgePolicy": "Never"}}
    spec = present_policy(completed("mutate-propagationpolicy", policy(failover=never))["spec"])
    conditions = {"tolerationSeconds": 300}
    assert spec["failover"] == {"application": {"decisionConditions": conditions, "purgeMode": "Never"}}


def test_present_failover_wins_over_an_older_one(completed: Any) -> None:
    present = {"application": {"decisionConditions": {}, "purgeMode": "Never"}, "cluster": {"purgeMode": "Directly"}}
    both = {**present, "applicationMigrationPolicy": {"purgePolicy": "Gracefully"}}
    stored = completed("mutate-propagationpolicy", policy(failover=both))["spec"]
    assert present_policy(stored)["failover"] == present


def test_the_template_of_an_ingress_becomes_its_spec(completed: Any) -> None:
    inner = {"rules": [{"host": "a.example.com"}], "ingressClassName": "inner"}
    spec = {"template": {"spec": inner}, "ingressClassName": "outer"}
    obj = completed("mutate-multiclusteringress", {"metadata": {"name": "i"}, "spec": spec})
    assert obj["spec"] == spec
    assert present_ingress(spec) == {"ingressClassName": "outer", "rules": [{"host": "a.example.com"}]}


def test_the_placement_of_a_new_binding_is_brought_into_form_too(completed: Any) -> None:
    spec = {"placement": {"replicaScheduling": {"replicaDivisionPreference": "Dynamic"}}}
    obj = completed("mutate-resourcebinding", {"metadata": {"name": "b"}, "spec": spec})
    assert obj["spec"]["placement"]["replicaScheduling"] == WEIGHTED


def test_older_forms_are_warned_of(completed: Any) -> None:
    warnings: list[str] = []
    placement = {
        "replicaScheduling": {"replicaDivisionPreference": "Dynamic"},
        "spreadConstraints": [{"spreadByField": "region"}],
    }
    spec = {"placement": placement, "failover": {"applicationMigrationPolicy": {}}}
    completed("mutate-propagationpolicy", policy(**spec), warnings=warnings)
    assert [text.partition(":")[0].partition(" ")[0] for text in warnings] == [
        "spec.placement.replicaScheduling",
        "spec.placement.spreadConstraints",
        "spec.failover.applicationMigrationPolicy",
    ]


def test_the_present_form_is_not_warned_of(completed: Any) -> None:
    warnings: list[str] = []
    placement = {"replicaScheduling": WEIGHTED, "spreadConstraints": [{"spreadByField": "cluster"}]}
    completed("mutate-propagationpolicy", policy(placement=placement), warnings=warnings)
    assert warnings == []


def test_the_present_form_is_not_copied() -> None:
    spec = policy(placement={"replicaScheduling": WEIGHTED}, failover={"cluster": {}})["spec"]
    assert present_policy(spec) is spec
