"""Bindings are created with their decision, where the scheduler is in the API server's process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes, Plugin
from tests.support.cases import cases
from tests.support.scheduling_cases import deployment, placement
from tests.support.scheduling_plane import BINDINGS, CLUSTER_BINDINGS, MARKED, Scheduling, scheduling, targets

DUPLICATED = {"replicaSchedulingType": "Duplicated"}
DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
GROUPS = {"clusterAffinities": [{"affinityName": "first", "clusterNames": ["m1"]}, {"affinityName": "second"}]}
SCHEDULED = ("True", "Success", "Binding has been scheduled successfully.")


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, as_one=True) as found:
        yield found


def binding(name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "namespace": "default", "labels": MARKED}
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": metadata, "spec": spec}


def _comparable(found: Obj) -> Obj:
    """Without what names the object and counts writes."""
    obj = copy_json(found)
    for key in ("uid", "resourceVersion", "generation"):
        del obj["metadata"][key]
    obj["metadata"]["labels"].pop("resourcebinding.karmada.io/permanent-id", None)
    obj["status"].pop("schedulerObservedGeneration")
    return obj


async def test_the_create_has_the_clusters_and_the_status(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    writes: list[str] = []
    plane.intercept_writes(lambda request: writes.append(request.path))
    made = await plane.client.create(BINDINGS, binding("web", deployment(2, placement(DUPLICATED))))
    await plane.rest()
    assert targets(made) == {"m1": 2, "m2": 2}
    assert made["status"]["schedulerObservedGeneration"] == made["metadata"]["generation"] == 1
    assert await plane.condition("web") == SCHEDULED
    assert await plane.get("web") == made
    assert writes == []


async def test_its_event_and_its_metrics_are_those_of_any_decision(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web", deployment(2, placement(DUPLICATED)))
    text = f"{SCHEDULED[2]} Result: {{m1:2}}"
    assert await plane.events("web") == [("Normal", "ScheduleBindingSucceed", text)] * 2
    decisions = "karmada_scheduler_schedule_attempts_total"
    assert plane.sample(decisions, result="scheduled", schedule_type="ReconcileSchedule") == 1
    assert plane.sample("karmada_scheduler_queue_incoming_bindings_total", event="BindingAdd") == 1


@cases(
    deployment(2, placement(DUPLICATED)),
    deployment(3, placement(DIVIDED)),
    deployment(2, placement(DUPLICATED, **GROUPS)),
    ids=["duplicated", "divided", "groups"],
)
async def test_the_binding_is_what_a_scheduler_of_another_process_makes(spec: Obj, folder: Path) -> None:
    found = []
    for as_one in (True, False):
        async with scheduling(folder, as_one=as_one) as plane:
            await plane.clusters("m1", "m2", pods=9)
            found.append(await plane.bind("web", spec))
    assert [one["metadata"]["generation"] for one in found] == [1, 2]
    assert _comparable(found[0]) == _comparable(found[1])


async def test_a_cluster_wide_binding_is_created_with_its_decision(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web", deployment(2, placement(DUPLICATED)), namespace="")
    made = await plane.client.get(CLUSTER_BINDINGS, "web")
    assert (targets(made), made["metadata"]["generation"]) == ({"m1": 2}, 1)


async def test_what_no_cluster_fits_is_created_and_reported(plane: Scheduling) -> None:
    made = await plane.client.create(BINDINGS, binding("web", deployment(2, placement(DUPLICATED))))
    assert "status" not in made
    await plane.rest()
    status, reason, _ = await plane.condition("web") or ("", "", "")
    assert (status, reason) == ("False", "NoClusterFit")


async def test_a_binding_that_names_its_clusters_is_left_to_a_reconcile(plane: Scheduling) -> None:
    await plane.clusters("m1")
    made = await plane.client.create(
        BINDINGS, binding("web", deployment(2, placement(DUPLICATED), previous={"other": 1}))
    )
    assert (targets(made), "status" in made) == ({"other": 1}, False)
    await plane.rest()
    assert await plane.targets("web") == {"m1": 2}


@cases("FederatedQuotaEnforcement", "SchedulingOvercommitProtection", "WorkloadAffinity")
async def test_decisions_that_others_have_a_say_in_come_after_the_create(gate: str, folder: Path) -> None:
    async with scheduling(folder, gates=f"{gate}=true", as_one=True) as plane:
        await plane.clusters("m1", pods=9)
        made = await plane.client.create(BINDINGS, binding("web", deployment(2, placement(DUPLICATED))))
        assert targets(made) == {}
        await plane.rest()
        assert await plane.targets("web") == {"m1": 2}


async def test_a_scheduler_that_starts_later_has_nothing_to_add(plane: Scheduling) -> None:
    await plane.clusters("m1")
    before = await plane.bind("web", deployment(2, placement(DUPLICATED)))
    async with plane.another():
        assert await plane.get("web") == before


class Between(Plugin):
    """Does something while a binding is being created: after its decision, before it is stored."""

    name = "Between"
    mutates = False

    def __init__(self, do: Callable[[], Awaitable[Any]]) -> None:
        self._do = do

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation == "CREATE" and attributes.group_resource.resource == "resourcebindings"

    async def validate(self, _attributes: Attributes) -> None:
        await self._do()


async def test_a_cluster_that_changes_during_the_create_is_decided_on_anew(plane: Scheduling) -> None:
    await plane.cluster("m1", labels={"tier": "a"})
    await plane.cluster("m2", labels={"tier": "b"})
    plane.plane.server.admission.add(Between(lambda: plane.label("m2", tier="a")))
    selecting = placement(DUPLICATED, clusterAffinity={"labelSelector": {"matchLabels": {"tier": "a"}}})
    made = await plane.client.create(BINDINGS, binding("web", deployment(2, selecting)))
    assert targets(made) == {"m1": 2}
    await plane.rest()
    assert await plane.targets("web") == {"m1": 2, "m2": 2}


async def test_a_refused_binding_leaves_nothing_behind(plane: Scheduling) -> None:
    await plane.clusters("m1")
    wrong = binding("web", deployment(2, placement(DUPLICATED)))
    wrong["spec"]["resource"]["namespace"] = "elsewhere"
    with pytest.raises(Exception, match="must be the namespace of the binding"):
        await plane.client.create(BINDINGS, wrong)
    assert plane.scheduler._at_creation._decided._done == {}
