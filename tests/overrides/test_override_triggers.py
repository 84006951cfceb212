"""Which bindings are rendered again when policies and clusters change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.well_known import binding_name
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.overrides.engine import Overrides
from karmada.overrides.hook import work_annotations
from karmada.overrides.triggers import Triggers, affected
from tests.support.cases import cases
from tests.support.overriding import DEPLOYMENTS, cluster, cop, deployment, op, rule

KINDS = {
    "Cluster": Cluster.gvr,
    "OverridePolicy": OverridePolicy.gvr,
    "ClusterOverridePolicy": ClusterOverridePolicy.gvr,
    "ResourceBinding": ResourceBinding.gvr,
    "ClusterResourceBinding": ClusterResourceBinding.gvr,
}


def binding(template: Obj, *clusters: str, required_in: Iterable[str] = ()) -> Obj:
    metadata = template["metadata"]
    namespace = metadata.get("namespace")
    where = {"namespace": namespace} if namespace else {}
    spec: Obj = {
        "resource": {"apiVersion": template["apiVersion"], "kind": template["kind"], "name": metadata["name"], **where},
        "clusters": [{"name": name} for name in clusters],
    }
    if required_in:
        spec["requiredBy"] = [{"clusters": [{"name": name} for name in required_in]}]
    kind = "ResourceBinding" if namespace else "ClusterResourceBinding"
    name = binding_name(template["kind"], metadata["name"])
    return {"kind": kind, "metadata": {"name": name, **where}, "spec": spec}


class World:
    """Informers with objects of the test, without a server."""

    def __init__(
        self, *objects: Obj, templates: Iterable[Obj] | None = (), bindings: GVR = ResourceBinding.gvr
    ) -> None:
        """No `templates` at all (None) means that their labels cannot be read."""
        self.informers = Informers(None)  # type: ignore[arg-type]
        self.overrides = Overrides(self.informers)
        self._templates = {key_of(template): template for template in templates or ()}
        fetch = None if templates is None else self._template
        self.triggers = Triggers(self.informers, bindings, self.overrides, fetch)
        for obj in objects:
            self.put(obj)

    def _template(self, resource: Obj) -> Obj | None:
        return self._templates.get(Key(resource.get("namespace", ""), resource["name"]))

    def put(self, obj: Obj) -> None:
        informer = self.informers.of(KINDS[obj["kind"]])
        informer._store(key_of(obj), {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(id(obj))}})

    def drop(self, obj: Obj) -> None:
        self.informers.of(KINDS[obj["kind"]])._forget(key_of(obj), obj)

    def of_policy(self, old: Obj | None, new: Obj | None) -> list[str]:
        return asyncio.run(_all(self.triggers.of_policy(old, new)))

    def of_cluster(self, old: Obj | None, new: Obj | None) -> list[str]:
        return asyncio.run(_all(self.triggers.of_cluster(old, new)))


async def _all(keys: AsyncIterator[Key]) -> list[str]:
    return sorted({str(key) async for key in keys})


def template(name: str = "web", namespace: str = "default", **labels: str) -> Obj:
    made = deployment(name=name, labels=labels)
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def relabel(value: str, target: Obj | None = None) -> Obj:
    return rule(target, labelsOverrider=[{"operator": "add", "value": {"by": value}}])


M1, M2 = {"clusterNames": ["m1"]}, {"clusterNames": ["m2"]}
PROD = {"labelSelector": {"matchLabels": {"env": "prod"}}}
WEB, DB, FAR = template("web", tier="front"), template("db", tier="back"), template("far", "other", tier="front")
CLUSTERS = [cluster("m1", {"env": "prod"}), cluster("m2", {"env": "test"})]
BINDINGS = [binding(WEB, "m1"), binding(DB, "m1", "m2"), binding(FAR, "m2")]


@pytest.fixture
def world() -> World:
    return World(*CLUSTERS, *BINDINGS, templates=[WEB, DB, FAR])


FRONT = {"labelSelector": {"matchLabels": {"tier": "front"}}}


@cases(
    (op("p", rule()), ["default/db-deployment", "default/web-deployment"]),
    (op("p", rule(), namespace="other"), ["other/far-deployment"]),
    (cop("c", rule()), ["default/db-deployment", "default/web-deployment", "other/far-deployment"]),
    (op("p", rule(), selectors=[{**DEPLOYMENTS, "name": "web"}]), ["default/web-deployment"]),
    (op("p", rule(), selectors=[{**DEPLOYMENTS, "name": "far"}]), []),
    (op("p", rule(), selectors=[{**DEPLOYMENTS, "kind": "Pod"}]), []),
    (op("p", rule(), selectors=[{**DEPLOYMENTS, "apiVersion": "v1", "name": "web"}]), []),
    (op("p", rule(), selectors=[{**DEPLOYMENTS, **FRONT}]), ["default/web-deployment"]),
    (cop("c", rule(), selectors=[{**DEPLOYMENTS, **FRONT}]), ["default/web-deployment", "other/far-deployment"]),
    (cop("c", rule(), selectors=[{**DEPLOYMENTS, "namespace": "other"}]), ["other/far-deployment"]),
    (cop("c", rule(), selectors=[{**DEPLOYMENTS, "name": "far"}]), ["other/far-deployment"]),
    (cop("c", rule(), selectors=[{**DEPLOYMENTS, "namespace": "default", "name": "far"}]), []),
    (cop("c", rule(M2)), ["default/db-deployment", "other/far-deployment"]),
    (cop("c", rule(PROD)), ["default/db-deployment", "default/web-deployment"]),
    (cop("c", rule({"clusterNames": ["m9"]})), []),
    (cop("c", targetCluster=M2), ["default/db-deployment", "other/far-deployment"]),
)
def test_a_policy_that_comes_or_goes_concerns_what_it_changes(policy: Obj, expected: list[str], world: World) -> None:
    assert world.of_policy(None, policy) == expected
    assert world.of_policy(policy, None) == expected
    assert world.of_policy(policy, {**policy, "status": {"seen": True}}) == []


def test_of_a_policy_that_changes_only_the_rules_that_did_count(world: World) -> None:
    old = cop("c", relabel("a", M1), relabel("b", M2))
    assert world.of_policy(old, cop("c", relabel("a", M1), relabel("z", M2))) == [
        "default/db-deployment",
        "other/far-deployment",
    ]
    assert world.of_policy(old, cop("c", relabel("a", M1))) == ["default/db-deployment", "other/far-deployment"]
    assert world.of_policy(old, cop("c", relabel("b", M2), relabel("a", M1))) == [
        "default/db-deployment",
        "default/web-deployment",
        "other/far-deployment",
    ]
    moved_there = cop("c", relabel("a", M1), relabel("b", M1))
    assert len(world.of_policy(old, moved_there)) == 3


def test_what_is_no_longer_selected_counts_as_well(world: World) -> None:
    old = op("p", rule(), selectors=[{**DEPLOYMENTS, "name": "web"}])
    new = op("p", rule(), selectors=[{**DEPLOYMENTS, "name": "db"}])
    assert world.of_policy(old, new) == ["default/db-deployment", "default/web-deployment"]


def test_bindings_that_go_nowhere_are_left_alone() -> None:
    assert World(binding(WEB), templates=[WEB]).of_policy(None, op("p", rule())) == []


def test_clusters_of_those_who_need_a_template_count() -> None:
    world = World(*CLUSTERS, binding(WEB, required_in=["m2"]), templates=[WEB])
    assert world.of_policy(None, op("p", rule(M2))) == ["default/web-deployment"]
    assert world.of_policy(None, op("p", rule(M1))) == []


def test_what_is_not_known_counts() -> None:
    selectors = [{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "other"}}}]
    assert World(*CLUSTERS, *BINDINGS, templates=[]).of_policy(None, op("p", rule(), selectors=selectors))
    assert World(*CLUSTERS, *BINDINGS, templates=None).of_policy(None, op("p", rule(), selectors=selectors))
    assert World(*BINDINGS, templates=[WEB]).of_policy(None, op("p", rule(PROD)))


def test_labels_that_a_cluster_wide_policy_makes_count(world: World) -> None:
    policy = op("p", rule(), selectors=[{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"by": "x"}}}])
    assert world.of_policy(None, policy) == []
    world.put(cop("c", relabel("x"), selectors=[{**DEPLOYMENTS, "name": "web"}]))
    assert world.of_policy(None, policy) == ["default/web-deployment"]


def test_cluster_wide_policies_trigger_cluster_wide_bindings() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
    world = World(*CLUSTERS, binding(role, "m1"), templates=[role], bindings=ClusterResourceBinding.gvr)
    selector = {"apiVersion": role["apiVersion"], "kind": "ClusterRole", "name": "reader"}
    assert world.of_policy(None, cop("c", rule(), selectors=[selector])) == ["reader-clusterrole"]
    assert world.of_policy(None, cop("c", rule(), selectors=[{**selector, "namespace": "x"}])) == []
    assert world.of_policy(None, cop("c", rule())) == ["reader-clusterrole"]
    assert [watch.resource for watch in world.triggers.watches()] == [ClusterOverridePolicy.gvr]


# --- clusters --------------------------------------------------------------------------------------------------------


def test_a_cluster_with_other_labels_concerns_what_rules_then_say(world: World) -> None:
    world.put(op("labels", relabel("x", PROD), selectors=[{**DEPLOYMENTS, "name": "db"}]))
    world.put(op("names", relabel("x", M1)))
    old, relabelled = cluster("m1", {"env": "prod"}), cluster("m1", {"env": "test"})
    assert world.of_cluster(old, relabelled) == ["default/db-deployment"]
    assert world.of_cluster(old, cluster("m1", {"env": "prod", "more": "x"})) == []
    assert world.of_cluster(None, old) == []
    assert world.of_cluster(old, None) == []
    world.drop(op("labels"))
    assert world.of_cluster(old, relabelled) == []


def test_a_cluster_in_another_region_or_zone(world: World) -> None:
    eu = {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}}
    zone = {"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}}
    world.put(cop("c", relabel("x", eu), selectors=[{**DEPLOYMENTS, "name": "web"}]))
    world.put(cop("d", relabel("x", zone), selectors=[{**DEPLOYMENTS, "name": "far"}]))
    assert world.of_cluster(cluster("m1"), cluster("m1", region="eu")) == ["default/web-deployment"]
    assert world.of_cluster(cluster("m2"), cluster("m2", zones=["z"])) == ["other/far-deployment"]
    assert world.of_cluster(cluster("m1"), cluster("m1", region="us")) == []
    assert world.of_cluster(cluster("m1"), cluster("m1", taints=[{"key": "x"}])) == []


async def test_watches_enqueue_the_keys_of_a_change(world: World) -> None:
    added: list[Key] = []

    def add(key: Key, _priority: int = 0, /) -> None:
        added.append(key)

    for watch in world.triggers.watches():
        policy = (op if watch.resource == OverridePolicy.gvr else cop)("p", rule(M1))
        assert watch.walk is not None
        await watch.walk(None, policy, add)
        assert sorted(added) == [Key("default", "db-deployment"), Key("default", "web-deployment")]
        added.clear()
        await watch.walk(policy, policy, add)
        assert added == []
    world.put(op("p", rule(PROD)))
    walk = world.triggers.cluster_watch().walk
    assert walk is not None
    await walk(cluster("m1"), cluster("m1", {"env": "prod"}), add)
    assert len(added) == 2


def test_nothing_changed_affects_nothing() -> None:
    assert affected(op("p", rule()), op("p", rule())) == []
    (part,) = affected(None, op("p", rule(M1)))
    assert (part.namespace, part.selectors, len(part.rules)) == ("default", (), 1)


# --- whatever comes out differently is found -------------------------------------------------------------------------

_targets = st.sampled_from([None, M1, M2, PROD, {"exclude": ["m1"]}])
_rules = st.lists(st.builds(relabel, st.sampled_from("ab"), _targets), max_size=3)
_selectors = st.lists(
    st.sampled_from(
        [
            DEPLOYMENTS,
            {**DEPLOYMENTS, "name": "web"},
            {**DEPLOYMENTS, "name": "far"},
            {**DEPLOYMENTS, "namespace": "other"},
            {**DEPLOYMENTS, **FRONT},
            {**DEPLOYMENTS, "labelSelector": {"matchLabels": {"by": "a"}}},
        ]
    ),
    max_size=2,
)
_specs = st.none() | st.tuples(_rules, _selectors)


def _policy(make: Any, spec: Any) -> Obj | None:
    return None if spec is None else make("p", *spec[0], selectors=spec[1])


def _outcomes(world: World) -> dict[str, list[Any]]:
    outcomes = {}
    for bound, made in zip(BINDINGS, (WEB, DB, FAR), strict=True):
        done = [world.overrides.apply(made, target["name"]) for target in bound["spec"]["clusters"]]
        outcomes[str(key_of(bound))] = [(each.manifest, work_annotations(each)) for each in done]
    return outcomes


@settings(max_examples=300)
@given(st.sampled_from([op, cop]), _specs, _specs, st.lists(st.tuples(_rules, _selectors), max_size=2))
def test_every_binding_that_comes_out_differently_after_a_policy_changed_is_found(
    make: Any, before: Any, after: Any, others: list[Any]
) -> None:
    world = World(*CLUSTERS, *BINDINGS, templates=[WEB, DB, FAR])
    for number, (rules, selectors) in enumerate(others):
        world.put(cop(f"other-{number}", *rules, selectors=selectors))
    old, new = _policy(make, before), _policy(make, after)
    if old is not None:
        world.put(old)
    was = _outcomes(world)
    if new is not None:
        world.put(new)
    elif old is not None:
        world.drop(old)
    now = _outcomes(world)
    assert {key for key in was if was[key] != now[key]} <= set(world.of_policy(old, new))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from([op, cop]), _rules, _selectors), max_size=3), st.sampled_from(["prod", "test"])
)
def test_every_binding_that_comes_out_differently_after_a_cluster_changed_is_found(
    policies: list[Any], env: str
) -> None:
    world = World(*CLUSTERS, *BINDINGS, templates=[WEB, DB, FAR])
    for number, (make, rules, selectors) in enumerate(policies):
        world.put(make(f"p{number}", *rules, selectors=selectors))
    was = _outcomes(world)
    new = cluster("m1", {"env": env})
    world.put(new)
    now = _outcomes(world)
    assert {key for key in was if was[key] != now[key]} <= set(world.of_cluster(CLUSTERS[0], new))
