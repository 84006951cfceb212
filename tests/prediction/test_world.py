"""A World: what is given over what a control plane has, read once, and never written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import FederatedResourceQuota, PropagationPolicy
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import Call, Transport
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError
from karmada.prediction.explanation import Aim, explain
from karmada.prediction.simulation import Given, simulate
from karmada.prediction.trials import Trial
from karmada.prediction.world import World
from karmada.rehearsal.copying import bindings_of, copy_of
from tests.interpreter.workloads import WORKLOADS, workload_kind
from tests.support.propagation import policy
from tests.support.scheduling_cases import DUPLICATED, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling

POLICIES = PropagationPolicy.gvr


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(tmp_path) as found:
        await found.clusters("m1", "m2", pods=10)
        yield found


def names(objects: list[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


async def test_what_is_put_here_takes_the_place_of_its_namesake(plane: Scheduling) -> None:
    for name in ("a", "b"):
        await plane.client.create(POLICIES, policy(name))
    world = await World().over(plane.client)
    given = policy("b", priority=7)
    world.put(POLICIES, given)
    world.put(POLICIES, policy("c"))
    world.put(POLICIES, policy("d", namespace="other"))
    assert names(await world.objects(POLICIES, "default")) == ["a", "b", "c"]
    assert names(await world.objects(POLICIES)) == ["a", "b", "c", "d"]
    assert await world.get(POLICIES, "b", "default") == given
    assert (await plane.client.get(POLICIES, "b", "default"))["spec"].get("priority") != 7
    assert names((await plane.client.list_all(POLICIES)).items) == ["a", "b"], "nothing is written"


async def test_a_list_is_read_once(plane: Scheduling) -> None:
    world = await World().over(plane.client)
    assert names(await world.objects(POLICIES)) == []
    await plane.client.create(POLICIES, policy("late"))
    assert names(await world.objects(POLICIES)) == names(await world.objects(POLICIES, "default")) == []


async def test_without_a_control_plane_there_is_what_is_given() -> None:
    world = World()
    world.put(POLICIES, policy("a"))
    assert names(await world.objects(POLICIES)) == ["a"]
    assert await world.objects(FederatedResourceQuota.gvr) == []
    with pytest.raises(NotFound):
        await world.get(POLICIES, "b", "default")


async def test_a_kind_may_be_defined_here(plane: Scheduling) -> None:
    world, kind = await World().over(plane.client), GVK.parse("workload.example.io/v1alpha1", "Workload")
    with pytest.raises(NoMatch):
        await world.mapping(kind)
    world.define(workload_kind())
    found = await world.mapping(kind)
    assert (found.gvr, found.namespaced) == (WORKLOADS, True)
    assert await world.objects(WORKLOADS) == []
    await world.enable("m1", workload_kind())
    [m1, m2] = await world.clusters()
    assert "workload.example.io/v1alpha1" in str(m1["status"]["apiEnablements"])
    assert "workload.example.io/v1alpha1" not in str(m2["status"]["apiEnablements"])


async def test_a_cluster_that_changes_here_counts_in_decisions(plane: Scheduling) -> None:
    world = await World().over(plane.client)
    spec = deployment(2, placement(DUPLICATED))
    before = await world.situation(spec)
    assert [target["name"] for target in world.decide(before).targets] == ["m1", "m2"]
    cluster = await world.get(Cluster.gvr, "m1")
    world.put(Cluster.gvr, {**cluster, "spec": {**cluster["spec"], "taints": [{"key": "k", "effect": "NoSchedule"}]}})
    assert [target["name"] for target in world.decide(await world.situation(spec)).targets] == ["m2"]
    assert [target["name"] for target in world.decide(before).targets] == ["m1", "m2"], "a situation stays as it was"


async def test_a_copy_needs_no_control_plane(plane: Scheduling) -> None:
    await plane.client.create(POLICIES, policy("a"))
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    copy = await copy_of(await World().over(plane.client))
    assert names(await copy.objects(POLICIES)) == ["a"]
    assert names(bindings_of(copy)) == ["web-deployment"]
    situation = await copy.situation(bindings_of(copy)[0]["spec"])
    assert [target["name"] for target in copy.decide(situation).targets] == ["m1", "m2"]


class Requests:
    """A transport that notes the methods of requests."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.methods: set[str] = set()

    async def call(self, call: Call) -> Any:
        self.methods.add(call.method)
        return await self._inner.call(call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def test_predictions_only_read(plane: Scheduling) -> None:
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    requests = Requests(plane.client.transport)
    client = Client(cast(Transport, requests))
    found = await simulate(await World().over(client), Given([], [], []), Trial(failing=frozenset({"m1"})), "default")
    assert len(found.outcomes) == 1
    await explain(await World().over(client), Aim("resourcebinding", "web-deployment", "default", "m2"))
    await copy_of(await World().over(client))
    assert requests.methods == {"GET"}


async def test_unknown_names_are_refused(plane: Scheduling) -> None:
    with pytest.raises(PredictionError, match="unrecognized feature gate"):
        World(feature_gates="No=true")
    with pytest.raises(PredictionError, match=r'cluster "m9" is not joined \(known: m1, m2\)'):
        await (await World().over(plane.client)).clusters("m9")
