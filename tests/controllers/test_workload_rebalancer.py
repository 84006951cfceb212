"""WorkloadRebalancers: which bindings are triggered and with which result, and what the scheduler makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.api.apps import WorkloadRebalancer
from karmada.controllers.workload_rebalancer import WorkloadRebalancers, observed, rescheduled
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import InternalError, NotFound
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.control_plane import assemble
from tests.support.scheduling_cases import AGGREGATED, DYNAMIC, deployment, placement, spread, static
from tests.support.scheduling_plane import Scheduling, scheduling

REBALANCERS = WorkloadRebalancer.gvr
A, B, C = "A", "B", "C"


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, more=lambda context: [WorkloadRebalancers(context)]) as found:
        yield found


def workload(name: str, *, kind: str = "Deployment", api_version: str = "apps/v1", namespace: str = "default") -> Obj:
    reference = {"apiVersion": api_version, "kind": kind, "name": name}
    return {**reference, "namespace": namespace} if namespace else reference


def entry(name: str, result: str = "", reason: str = "") -> Obj:
    found = {"workload": workload(name), "result": result, "reason": reason}
    return {field: value for field, value in found.items() if value}


async def rebalance(plane: Scheduling, *workloads: Obj, name: str = "again", ttl: int | None = None) -> Obj:
    """Create one a second after everything that happened before, and wait until it is handled."""
    await plane.wait(1)
    spec: Obj = {"workloads": list(workloads)}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    head = {"apiVersion": WorkloadRebalancer.gvk.api_version, "kind": "WorkloadRebalancer", "metadata": {"name": name}}
    made = await plane.client.create(REBALANCERS, {**head, "spec": spec})
    await plane.rest()
    return made


async def found(plane: Scheduling, name: str = "again") -> Obj | None:
    try:
        return await plane.client.get(REBALANCERS, name)
    except NotFound:
        return None


async def results(plane: Scheduling, name: str = "again") -> dict[str, str]:
    status: Obj = (await found(plane, name))["status"]
    return {one["workload"]["name"]: one.get("result", "") for one in status["observedWorkloads"]}


# the rules


@cases(
    ("BA", None, [entry(A), entry(B)]),
    ("AAA", [], [entry(A)]),
    ("A", [entry(A, "Successful")], [entry(A, "Successful")]),
    ("A", [entry(A, "Failed", "ReferencedBindingNotFound")], [entry(A, "Failed", "ReferencedBindingNotFound")]),
    ("A", [entry(A)], [entry(A)]),
    ("A", [entry(C, "Successful")], [entry(A), entry(C, "Successful")]),
    ("A", [entry(C, "Failed"), entry(B)], [entry(A)]),
    ids=[
        "sorted",
        "once each",
        "successful stays",
        "failed stays",
        "pending stays",
        "old success kept",
        "rest dropped",
    ],
)
def test_what_is_observed_follows_the_spec(wanted: str, before: list[Obj] | None, after: list[Obj]) -> None:
    assert observed([workload(name) for name in wanted], before) == after


def test_entries_are_sorted_by_version_kind_namespace_and_name() -> None:
    given = [
        workload("z", namespace="a"),
        workload("a", namespace="b"),
        workload("y", kind="DaemonSet", namespace="z"),
        workload("reader", kind="ClusterRole", api_version="rbac.authorization.k8s.io/v1", namespace=""),
        workload("job", kind="Job", api_version="batch/v1"),
    ]
    names = [one["workload"]["name"] for one in observed(given, None)]
    assert names == ["y", "z", "a", "job", "reader"]


EARLIER, CREATED, LATER = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z"


@cases((None, CREATED), (EARLIER, CREATED), (CREATED, CREATED), (LATER, LATER))
def test_a_trigger_never_goes_back_in_time(before: str | None, after: str) -> None:
    spec = {} if before is None else {"rescheduleTriggeredAt": before}
    assert rescheduled({"spec": {"replicas": 1, **spec}}, CREATED) == {
        "spec": {"replicas": 1, "rescheduleTriggeredAt": after}
    }


# together with the scheduler


async def test_divided_replicas_are_divided_anew_over_all_clusters_that_match_now(plane: Scheduling) -> None:
    for name in ("m1", "m2"):
        await plane.cluster(name, pods=10, labels={"env": "prod"})
    await plane.cluster("m3", pods=16)
    where = placement(DYNAMIC, clusterAffinity={"labelSelector": {"matchLabels": {"env": "prod"}}})
    await plane.bind("web-deployment", deployment(4, where))
    await plane.label("m3", env="prod")
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2}
    made = await rebalance(plane, workload("web"))
    binding = await plane.get("web-deployment")
    assert binding["spec"]["rescheduleTriggeredAt"] == made["metadata"]["creationTimestamp"]
    assert await plane.targets("web-deployment") == {"m1": 1, "m2": 1, "m3": 2}
    assert (await found(plane))["status"] == {
        "observedWorkloads": [{"workload": workload("web"), "result": "Successful"}],
        "observedGeneration": 1,
        "finishTime": made["metadata"]["creationTimestamp"],
    }
    assert binding["status"]["lastScheduledTime"] >= binding["spec"]["rescheduleTriggeredAt"]


async def test_it_happens_once(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.bind("web-deployment", deployment(4, placement(DYNAMIC)))
    await rebalance(plane, workload("web"))
    before = await plane.version("web-deployment")
    await plane.report("m1", 0)
    await plane.label("m1", changed="yes")
    await plane.client.patch(REBALANCERS, "again", "", {"spec": {"ttlSecondsAfterFinished": 600}})
    await plane.rest()
    assert await plane.version("web-deployment") == before


async def test_replicas_that_are_aggregated_move_to_where_all_fit(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=3)
    await plane.bind("web-deployment", deployment(4, placement(AGGREGATED)))
    assert set(await plane.targets("web-deployment")) == {"m1", "m2"}
    await plane.report("m1", 20)
    await rebalance(plane, workload("web"))
    assert await plane.targets("web-deployment") == {"m1": 4}


async def test_groups_of_clusters_begin_with_the_one_that_was_taken(plane: Scheduling) -> None:
    terms = [{"affinityName": "g1", "clusterNames": ["m1"]}, {"affinityName": "g2", "clusterNames": ["m2", "m3"]}]
    await plane.clusters("m1", pods=0)
    await plane.clusters("m2", "m3", pods=10)
    await plane.bind("web-deployment", deployment(4, placement(DYNAMIC, clusterAffinities=terms)))
    assert await plane.targets("web-deployment") == {"m2": 2, "m3": 2}
    await plane.report("m1", 50)
    await plane.report("m3", 0)
    await rebalance(plane, workload("web"))
    assert await plane.targets("web-deployment") == {"m2": 3, "m3": 1}
    assert (await plane.get("web-deployment"))["status"]["schedulerObservingAffinityName"] == "g2"


async def test_the_cluster_that_has_the_replicas_is_still_preferred(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=5)
    one = spread("cluster", 1, 1)
    await plane.bind("web-deployment", deployment(4, placement(DYNAMIC, one)))
    await plane.clusters("m2", pods=50)
    await rebalance(plane, workload("web"))
    assert await plane.targets("web-deployment") == {"m1": 4}


async def test_static_weights_come_out_as_ever(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.bind("web-deployment", deployment(3, placement(static(("m1", 2), ("m2", 1)))))
    await plane.change("web-deployment", {"clusters": [{"name": "m2", "replicas": 3}]})
    assert await plane.targets("web-deployment") == {"m2": 3}
    await rebalance(plane, workload("web"))
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 1}


async def test_what_was_scheduled_in_the_same_second_stays(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.wait(1)
    await plane.bind("web-deployment", deployment(4, placement(DYNAMIC)))
    await plane.report("m1", 0)
    await plane.client.create(
        REBALANCERS,
        {
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "again"},
            "spec": {"workloads": [workload("web")]},
        },
    )  # fmt: skip
    await plane.rest()
    assert await results(plane) == {"web": "Successful"}
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2}


# results


async def test_cluster_wide_workloads_have_cluster_wide_bindings(plane: Scheduling) -> None:
    role = workload("reader", kind="ClusterRole", api_version="rbac.authorization.k8s.io/v1", namespace="")
    reference = {key: role[key] for key in ("apiVersion", "kind", "name")}
    await plane.bind("reader-clusterrole", {"resource": reference, "placement": {}}, namespace="")
    made = await rebalance(plane, role, {**role, "namespace": "default"})
    binding = await plane.get("reader-clusterrole", "")
    assert binding["spec"]["rescheduleTriggeredAt"] == made["metadata"]["creationTimestamp"]
    assert (await found(plane))["status"]["observedWorkloads"] == [
        {"workload": role, "result": "Successful"},
        {"workload": {**role, "namespace": "default"}, "result": "Failed", "reason": "ReferencedBindingNotFound"},
    ]


async def test_a_failed_workload_is_tried_again_only_after_it_has_been_removed(plane: Scheduling) -> None:
    await rebalance(plane, workload("web"), workload("other"))
    assert await results(plane) == {"other": "Failed", "web": "Failed"}
    finished = (await found(plane))["status"]["finishTime"]
    await plane.wait(5)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert await results(plane) == {"other": "Failed", "web": "Failed"}
    await plane.client.patch(REBALANCERS, "again", "", {"spec": {"workloads": [workload("other")]}})
    await plane.rest()
    assert await results(plane) == {"other": "Failed"}
    await plane.client.patch(REBALANCERS, "again", "", {"spec": {"workloads": [workload("web"), workload("other")]}})
    await plane.rest()
    assert await results(plane) == {"other": "Failed", "web": "Successful"}
    status = (await found(plane))["status"]
    assert status["observedGeneration"] == 3
    assert status["finishTime"] > finished


async def test_a_workload_that_is_added_later_gets_the_time_of_the_creation(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.bind("web-deployment", deployment(4, placement(DYNAMIC)))
    made = await rebalance(plane, workload("web"))
    await plane.wait(5)
    await plane.bind("new-deployment", deployment(4, placement(DYNAMIC)))
    await plane.report("m1", 0)
    await plane.client.patch(REBALANCERS, "again", "", {"spec": {"workloads": [workload("new")]}})
    await plane.rest()
    assert await results(plane) == {"new": "Successful", "web": "Successful"}
    binding = await plane.get("new-deployment")
    assert binding["spec"]["rescheduleTriggeredAt"] == made["metadata"]["creationTimestamp"]
    assert await plane.targets("new-deployment") == {"m1": 2, "m2": 2}


def failing(plane: Scheduling, error: Callable[[Any], Exception | None]) -> None:
    """Let writes of the controllers fail."""
    transport: Any = plane.plane.context.client.transport
    call = transport.call

    async def checked(request: Any) -> Any:
        wrong = error(request) if request.method != "GET" else None
        if wrong is not None:
            raise wrong
        return await call(request)

    transport.call = checked


async def test_what_cannot_be_written_is_tried_again_and_finishes_then(plane: Scheduling) -> None:
    for name in ("a", "b"):
        await plane.bind(f"{name}-deployment", deployment(1, placement(DYNAMIC)))
    refusals = 1

    def error(request: Any) -> Exception | None:
        nonlocal refusals
        if not request.path.endswith("/b-deployment") or not refusals:
            return None
        refusals -= 1
        return InternalError("full")

    failing(plane, error)
    await rebalance(plane, workload("a"), workload("b"))
    assert await results(plane) == {"a": "Successful", "b": ""}
    assert "finishTime" not in (await found(plane))["status"]
    await plane.wait(1)
    assert await results(plane) == {"a": "Successful", "b": "Successful"}
    assert "finishTime" in (await found(plane))["status"]


# its end


async def test_it_is_deleted_when_its_time_after_the_end_is_over(plane: Scheduling) -> None:
    await rebalance(plane, workload("web"), ttl=30)
    await plane.wait(29)
    assert await found(plane) is not None
    await plane.wait(1)
    assert await found(plane) is None


async def test_it_is_deleted_at_once_or_never(plane: Scheduling) -> None:
    await rebalance(plane, workload("web"), name="at-once", ttl=0)
    await rebalance(plane, workload("web"), name="never")
    assert await found(plane, "at-once") is None
    await plane.wait(3600)
    assert await found(plane, "never") is not None


async def test_a_longer_time_holds_as_soon_as_it_is_written(plane: Scheduling) -> None:
    await rebalance(plane, workload("web"), ttl=30)
    await plane.wait(20)
    await plane.client.patch(REBALANCERS, "again", "", {"spec": {"ttlSecondsAfterFinished": 60}})
    await plane.wait(59)
    assert await found(plane) is not None
    await plane.wait(1)
    assert await found(plane) is None


async def test_what_was_changed_meanwhile_is_not_deleted(plane: Scheduling) -> None:
    await rebalance(plane, workload("web"), ttl=30)
    transport: Any = plane.plane.context.client.transport
    call = transport.call

    async def changed_first(request: Any) -> Any:
        if request.method == "DELETE":
            transport.call = call
            await plane.client.patch(REBALANCERS, "again", "", {"spec": {"ttlSecondsAfterFinished": None}})
        return await call(request)

    transport.call = changed_first
    await plane.wait(31)
    await plane.wait(100)
    assert await found(plane) is not None


# crashes


@asynccontextmanager
async def rebalancing(plane: Scheduling, writes: int | None = None) -> AsyncIterator[None]:
    """A process with the controller; after so many writes it has lost the server."""
    assembly = assemble(plane.plane.server, lambda context: [WorkloadRebalancers(context)])
    transport: Any = assembly.context.client.transport
    call = transport.call
    left = writes

    async def counted(request: Any) -> Any:
        nonlocal left
        if left is not None and request.method != "GET":
            if left == 0:
                raise ConnectionFailed("the process has ended")
            left -= 1
        return await call(request)

    transport.call = counted
    async with assembly.manager:
        await plane.rest()
        yield


@pytest.mark.parametrize("writes", range(4))
async def test_after_a_crash_between_two_writes_the_next_process_completes_the_rest(folder: Path, writes: int) -> None:
    async with scheduling(folder) as plane:
        await plane.clusters("m1", pods=10)
        for name in ("a", "b"):
            await plane.bind(f"{name}-deployment", deployment(2, placement(DYNAMIC)))
        await plane.clusters("m2", pods=10)
        await plane.wait(1)
        made = await rebalance(plane, workload("a"), workload("b"), workload("c"), ttl=10)
        async with rebalancing(plane, writes):
            pass
        async with rebalancing(plane):
            assert await results(plane) == {"a": "Successful", "b": "Successful", "c": "Failed"}
            for name in ("a", "b"):
                binding = await plane.get(f"{name}-deployment")
                assert binding["spec"]["rescheduleTriggeredAt"] == made["metadata"]["creationTimestamp"]
                assert await plane.targets(f"{name}-deployment") == {"m1": 1, "m2": 1}
            await plane.wait(11)
            assert await found(plane) is None
