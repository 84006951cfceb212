"""Override policies in a running control plane: seen as they change, reported in events, and what they trigger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.work import ResourceBinding
from karmada.controllers.context import Context
from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result
from karmada.kube.runtime.keys import Key
from karmada.overrides.engine import Overrides
from karmada.overrides.errors import OverrideError
from karmada.overrides.hook import COMPONENT, Override, override_with
from karmada.overrides.triggers import Triggers
from tests.support.control_plane import ControlPlane, running
from tests.support.objects import kube_object
from tests.support.overriding import DEPLOYMENTS, cop, deployment, op, rule

POLICIES = Path(__file__).parent / "data" / "policies.yaml"


class Bindings(Reconciler):
    """Counts how often each binding is looked at."""

    name = "bindings"

    def __init__(self, context: Context, overrides: Overrides) -> None:
        triggers = Triggers(context.informers, ResourceBinding.gvr, overrides)
        self.watches = (*triggers.watches(), triggers.cluster_watch())
        self.seen: list[Key] = []

    async def reconcile(self, key: Key) -> Result:
        self.seen.append(key)
        return Done


class Part:
    """What a test holds of the process."""

    overrides: Overrides
    override: Override
    bindings: Bindings


@pytest.fixture
def part() -> Part:
    return Part()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys and certificates are made once."""
    return tmp_path_factory.mktemp("control-plane")


@pytest.fixture
async def plane(folder: Path, part: Part) -> AsyncIterator[ControlPlane]:
    def parts(context: Context) -> list[Reconciler]:
        part.overrides = Overrides(context.informers)
        part.override = override_with(part.overrides, context.recorder(COMPONENT))
        part.bindings = Bindings(context, part.overrides)
        return [part.bindings]

    async with running(folder, parts) as plane:
        for name in ("m1", "m2"):
            await plane.add_cluster(name)
        await plane.until(lambda: len(plane.context.informers.of(Cluster.gvr)) == 2)
        yield plane


def by(text: str) -> Obj:
    return rule(annotationsOverrider=[{"operator": "add", "value": {"by": text}}])


def last(part: Part) -> str | None:
    return (part.overrides.apply(deployment(), "m1").manifest["metadata"].get("annotations") or {}).get("by")


async def test_policies_are_seen_as_they_come_change_and_go(plane: ControlPlane, part: Part) -> None:
    assert last(part) is None
    created = await plane.client.create(OverridePolicy.gvr, op("p", by("one"), selectors=[DEPLOYMENTS]))
    await plane.until(lambda: last(part) == "one")
    changed = {**created, "spec": {**created["spec"], "overrideRules": [by("two")]}}
    await plane.client.update(OverridePolicy.gvr, changed)
    await plane.until(lambda: last(part) == "two")
    await plane.client.create(ClusterOverridePolicy.gvr, cop("c", by("three")))
    await plane.client.delete(OverridePolicy.gvr, "p", "default")
    await plane.until(lambda: last(part) == "three")
    assert list(part.overrides.namespaced._compiled) == []


async def test_policies_of_documents_are_accepted_and_applied(plane: ControlPlane, part: Part) -> None:
    for policy in load_manifests(POLICIES.read_bytes()):
        await plane.client.create(OverridePolicy.gvr, policy)
    await plane.until(lambda: len(plane.context.informers.of(OverridePolicy.gvr)) == 4)
    await plane.add_cluster("member-cluster-1")
    nginx = deployment({"name": "nginx", "image": "nginx:1.19"}, name="nginx")
    await plane.until(lambda: plane.context.informers.of(Cluster.gvr).get(Key("", "member-cluster-1")))
    made = part.overrides.apply(nginx, "member-cluster-1")
    assert made.manifest["spec"]["replicas"] == 3
    assert [applied.policy.name for applied in made.policies] == ["nginx-override"]


async def test_what_was_applied_is_reported(plane: ControlPlane, part: Part) -> None:
    await plane.client.create(OverridePolicy.gvr, op("p", by("one"), by("two")))
    await plane.client.create(ClusterOverridePolicy.gvr, cop("c", by("zero")))
    await plane.until(lambda: len(part.overrides.apply(deployment(), "m1").policies) == 2)
    made, noted = part.override(deployment(), "m1")
    assert made["metadata"]["annotations"] == {"by": "two"}
    assert set(noted) == {"policy.karmada.io/applied-overrides", "policy.karmada.io/applied-cluster-overrides"}
    assert await plane.events("web") == [
        ("Normal", "ApplyOverridePolicySucceed", "Apply cluster override policy(c) for cluster(m1) succeed."),
        ("Normal", "ApplyOverridePolicySucceed", "Apply override policy(default/p) for cluster(m1) succeed."),
    ]


async def test_what_failed_is_reported_beside_what_went_well(plane: ControlPlane, part: Part) -> None:
    broken = rule(plaintext=[{"path": "/spec/none", "operator": "remove"}])
    await plane.client.create(OverridePolicy.gvr, op("p", by("one"), broken))
    await plane.until(lambda: len(plane.context.informers.of(OverridePolicy.gvr)) == 1)
    with pytest.raises(OverrideError):
        part.override(deployment(), "m2")
    assert sorted(await plane.events("web")) == [
        ("Normal", "ApplyOverridePolicySucceed", "Apply override policy(default/p) for cluster(m2) succeed."),
        ("Warning", "ApplyOverridePolicyFailed", "Apply override policy(default/p) for cluster(m2) failed."),
    ]


async def test_nothing_is_reported_or_annotated_when_nothing_is_applied(plane: ControlPlane, part: Part) -> None:
    obj = deployment()
    made, noted = part.override(obj, "m1")
    assert made is obj
    assert noted == {}
    assert await plane.events("web") == []


async def test_changes_wake_the_bindings_they_concern(plane: ControlPlane, part: Part) -> None:
    for name, clusters in (("web", ["m1"]), ("db", ["m2"])):
        resource = {**DEPLOYMENTS, "namespace": "default", "name": name, "uid": name}
        binding = kube_object(ResourceBinding.gvk.api_version, "ResourceBinding", f"{name}-deployment", "default") | {
            "spec": {"resource": resource, "clusters": [{"name": cluster} for cluster in clusters]}
        }
        await plane.client.create(ResourceBinding.gvr, binding)
    await plane.until(lambda: len(plane.context.informers.of(ResourceBinding.gvr)) == 2)
    web, db = Key("default", "web-deployment"), Key("default", "db-deployment")
    prod = {"labelSelector": {"matchLabels": {"env": "prod"}}}
    await plane.client.create(OverridePolicy.gvr, op("p", {**by("x"), "targetCluster": {"clusterNames": ["m1"]}}))
    await plane.until(lambda: part.bindings.seen == [web])
    await plane.client.create(ClusterOverridePolicy.gvr, cop("c", {**by("x"), "targetCluster": prod}))
    await plane.client.patch(Cluster.gvr, "m2", "", {"metadata": {"labels": {"env": "prod"}}})
    await plane.until(lambda: part.bindings.seen == [web, db])
    await plane.client.delete(OverridePolicy.gvr, "p", "default")
    await plane.until(lambda: part.bindings.seen == [web, db, web])
