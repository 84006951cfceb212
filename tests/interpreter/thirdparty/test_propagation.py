"""Objects of all third-party kinds on their whole way: to two members, and their statuses back to the templates.

One fleet has all of them at once: what takes time is the fleet, not the objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.interpreter.thirdparty.layer import KINDS
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from tests.interpreter.thirdparty.samples import SAMPLES, is_cluster_wide, template
from tests.support.custom_kinds import definition, version
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import cluster_policy, policy

MEMBERS = ("m1", "m2")
APPROVED = "api-approved.kubernetes.io"
"""Groups under k8s.io, such as Spark's, need it."""
TIMES = ("lastProbeTime", "lastTransitionTime")


def resource(gvk: GVK) -> GVR:
    singular = gvk.kind.lower()
    return GVR(gvk.group, gvk.version, f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s")


def crd(gvk: GVK) -> Obj:
    """As little as a definition can say: anything goes, and the status is written by itself."""
    gvr = resource(gvk)
    served = version(gvk.version, subresources={"status": {}})
    scope = "Cluster" if is_cluster_wide(gvk) else "Namespaced"
    made = definition(gvk.group, gvk.kind, served, plural=gvr.resource, scope=scope)
    made["metadata"]["annotations"] = {APPROVED: "unapproved, a sample"}
    return made


class Run(PlayedFleet):
    """All samples, propagated."""

    async def start(self) -> None:
        await self.begin(seconds=0)
        for gvk in SAMPLES:
            await self.client.create(CRDS, crd(gvk))
        for name in MEMBERS:
            await self.add(name, objects=[crd(gvk) for gvk in SAMPLES])
        await self.fleet.run(45)
        await self.propagate()
        await self.operate()

    async def propagate(self) -> None:
        everything = [{"apiVersion": gvk.api_version, "kind": gvk.kind} for gvk in SAMPLES]
        where: Obj = {"clusterAffinity": {"clusterNames": list(MEMBERS)}}
        await self.fleet.client.create(PropagationPolicy.gvr, policy("all", *everything, placement=where))
        await self.fleet.client.create(
            ClusterPropagationPolicy.gvr, cluster_policy("all", *everything, placement=where)
        )
        for gvk in SAMPLES:
            await self.fleet.client.create(resource(gvk), template(gvk))
        await self.fleet.run(20)

    async def operate(self) -> None:
        """What the operators in the members do."""
        for name in MEMBERS:
            client = self.fleet.members[name].client
            for gvk, sample in SAMPLES.items():
                found = self.in_member(gvk, name)
                if found is not None:
                    await client.update_status(resource(gvk), {**found, "status": sample["members"][name]})
        await self.fleet.run(20)

    def in_member(self, gvk: GVK, member: str) -> Obj | None:
        return self._get(self.fleet.members[member].sim.server, resource(gvk), "sample")

    def template(self, gvk: GVK) -> Obj:
        found = self._get(self.fleet.server, resource(gvk), "sample")
        assert found is not None
        return found

    def binding(self, gvk: GVK) -> Obj:
        kind = ClusterResourceBinding if is_cluster_wide(gvk) else ResourceBinding
        found = self._get(self.fleet.server, kind.gvr, f"sample-{gvk.kind.lower()}", is_cluster_wide(gvk))
        assert found is not None
        return found

    def _get(self, server: Any, gvr: GVR, name: str, cluster_wide: bool | None = None) -> Obj | None:
        if cluster_wide is None:
            cluster_wide = any(resource(gvk) == gvr and is_cluster_wide(gvk) for gvk in SAMPLES)
        found: Obj | None = server.cache.get(gvr.group_resource, "" if cluster_wide else "default", name)
        return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("third-party"))
    run.play(run.start())
    yield run
    run.stop()


def shown(status: Obj | None) -> Obj | None:
    """Times of the aggregation are not compared."""
    if not status or "conditions" not in status:
        return status
    return {**status, "conditions": [_timeless(condition) for condition in status["conditions"]]}


def _timeless(condition: Obj) -> Obj:
    made_now = "lastProbeTime" in condition
    return {field: value for field, value in condition.items() if not (made_now and field in TIMES)}


def test_there_is_a_sample_of_every_kind() -> None:
    assert set(SAMPLES) == {kind.gvk for kind in KINDS}
    assert len(SAMPLES) == 27


@pytest.mark.parametrize("gvk", SAMPLES, ids=lambda gvk: f"{gvk.group}/{gvk.kind}")
def test_the_statuses_of_members_come_back_to_the_template(done: Run, gvk: GVK) -> None:
    sample = SAMPLES[gvk]
    for member in MEMBERS:
        found = done.in_member(gvk, member)
        assert found is not None, f"it is not in {member}"
        assert found["spec"] == sample["object"]["spec"]
    health = {item["clusterName"]: item.get("health") for item in done.binding(gvk)["status"]["aggregatedStatus"]}
    assert health == sample.get("health", dict.fromkeys(MEMBERS, "Healthy"))
    assert shown(done.template(gvk).get("status")) == shown(sample.get("aggregated"))
    assert done.template(gvk)["spec"] == sample["object"]["spec"]
