"""The scheduler against a real API server, on a clock that the test turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import InternalError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import BUDGETS, NODES, PODS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import SCHEDULER
from karmada.kube.sim.profile import INSTANT, Delay, Latencies, Profile
from karmada.kube.sim.scheduler.scheduler import Scheduler
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.scheduling_objects import anti_affinity, node, node_affinity, pod, term

CLASSES = GVR("scheduling.k8s.io", "v1", "priorityclasses")
FIRST = "2023-11-14T22:13:20Z"
TOO_LARGE = (
    "0/1 nodes are available: 1 Insufficient cpu. "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
NO_ROOM = (
    "0/1 nodes are available: 1 Insufficient cpu. "
    "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
)


class Cluster:
    def __init__(self, harness: Harness, scheduler: Scheduler) -> None:
        self.harness = harness
        self.client = harness.client
        self.clock = harness.clock
        self.scheduler = scheduler
        self.pods = harness.context.informers.of(PODS)

    async def add_node(self, obj: Obj) -> Obj:
        """As its kubelet would: first the node, then what it has to offer, then it is ready."""
        made = await self.client.create(NODES, {**obj, "spec": {}})
        name = made["metadata"]["name"]
        await self.client.patch(NODES, name, "", {"status": obj["status"]}, subresource="status")
        return await self.client.patch(NODES, name, "", {"spec": {**obj["spec"]}})

    async def create(self, *wanted: Obj) -> None:
        for obj in wanted:
            await self.client.create(PODS, obj)

    async def get(self, name: str) -> Obj:
        return await self.client.get(PODS, name, "default")

    async def until(self, condition: Callable[[], Any]) -> None:
        for _ in range(20000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("did not come to rest")

    async def placed(self, name: str) -> str:
        """The node it is on once that is so."""
        key = Key("default", name)
        await self.until(lambda: ((self.pods.get(key) or {}).get("spec") or {}).get("nodeName"))
        found = self.pods.get(key)
        assert found is not None
        return str(found["spec"]["nodeName"])

    async def refused(self, name: str) -> Obj:
        """The condition that says why it has no node, once there is one."""
        key = Key("default", name)

        def condition() -> Obj | None:
            found = get_condition(((self.pods.get(key) or {}).get("status") or {}).get("conditions"), "PodScheduled")
            return found if found is not None and found["status"] == "False" else None

        await self.until(condition)
        await self.until(lambda: self.scheduler.idle)
        found = condition()
        assert found is not None
        return found


@asynccontextmanager
async def cluster(folder: Path, *nodes: Obj, profile: Profile | None = None) -> AsyncIterator[Cluster]:
    made: list[Scheduler] = []

    def parts(context: Any) -> list[Scheduler]:
        made.append(Scheduler(context))
        return made

    async with running(folder, parts, profile=profile) as harness:
        started = Cluster(harness, made[0])
        for obj in nodes:
            await started.add_node(obj)
        await started.until(lambda: made[0].state.nodes.count == len(nodes))
        yield started


async def test_a_pod_gets_a_node_a_condition_and_an_event(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1")) as it:
        await it.create(pod("p", cpu="1"))
        assert await it.placed("p") == "n1"
        made = await it.get("p")
        assert made["status"]["phase"] == "Pending"
        bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": FIRST}
        assert made["status"]["conditions"] == [bound]
        assert await it.harness.events("p") == [("Normal", "Scheduled", "Successfully assigned default/p to n1")]
        event = (await it.client.list_all(GVR("", "v1", "events"), "default")).items[0]
        assert event["source"] == {"component": "default-scheduler"}
        assert event["reportingComponent"] == "default-scheduler"
        assert event["involvedObject"]["uid"] == made["metadata"]["uid"]


async def test_an_impossible_request_waits_and_a_larger_node_fixes_it(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("small")) as it:
        await it.create(pod("p", cpu="1000"))
        condition = await it.refused("p")
        assert condition == {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": TOO_LARGE,
            "lastProbeTime": None,
            "lastTransitionTime": FIRST,
            "observedGeneration": 1,
        }
        written = await it.get("p")
        assert written["status"]["phase"] == "Pending"
        managers = {entry["manager"] for entry in written["metadata"]["managedFields"]}
        assert "kube-scheduler" in managers
        assert await it.harness.events("p") == [("Warning", "FailedScheduling", TOO_LARGE)]
        await it.add_node(node("large", cpu="2000"))
        await it.clock.advance(1)
        assert await it.placed("p") == "large"


async def test_the_condition_keeps_the_moment_of_the_first_failure_and_is_written_only_when_it_changes(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, node("n1")) as it:
        await it.create(pod("p", cpu="1000"))
        await it.refused("p")
        before = await it.get("p")
        await it.clock.advance(301)
        await it.until(lambda: it.scheduler.idle)
        events = await it.harness.events("p")
        assert await it.get("p") == before
        assert len(events) == 1
        stored = (await it.client.list_all(GVR("", "v1", "events"), "default")).items[0]
        assert stored["count"] == 2
        await it.add_node(node("n2"))
        await it.clock.advance(700)
        await it.until(lambda: it.scheduler.idle)
        condition = await it.refused("p")
        assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert condition["lastTransitionTime"] == FIRST


async def test_without_nodes_pods_wait_for_the_first_one(tmp_path: Path) -> None:
    async with cluster(tmp_path) as it:
        await it.create(pod("p"))
        assert (await it.refused("p"))["message"] == "no nodes available to schedule pods"
        await it.add_node(node("n1"))
        await it.clock.advance(1)
        assert await it.placed("p") == "n1"


async def test_a_finished_or_deleted_pod_makes_room_for_one_that_waits(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="2")) as it:
        await it.create(pod("a", cpu="1"), pod("b", cpu="1"))
        await it.placed("a")
        await it.placed("b")
        await it.create(pod("c", cpu="1"), pod("d", cpu="1"))
        assert (await it.refused("c"))["message"] == NO_ROOM
        await it.refused("d")
        await it.harness.set_pod_status(await it.get("a"), {"phase": "Succeeded"})
        await it.clock.advance(10)
        assert await it.placed("c") == "n1"
        await it.client.delete(PODS, "b", "default", grace_period=0)
        await it.clock.advance(10)
        assert await it.placed("d") == "n1"


async def test_a_change_that_cannot_help_a_pod_does_not_wake_it(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="2")) as it:
        await it.create(pod("a", cpu="100m"), pod("big", cpu="1000"))
        await it.placed("a")
        await it.refused("big")
        await it.client.delete(PODS, "a", "default", grace_period=0)
        await it.client.patch(NODES, "n1", "", {"metadata": {"labels": {"new": "label"}}})
        await it.add_node(node("n2"))
        await it.clock.advance(60)
        assert (await it.refused("big"))["message"] == TOO_LARGE
        emitted = (await it.client.list_all(GVR("", "v1", "events"), "default")).items
        assert [event["count"] for event in emitted if event["reason"] == "FailedScheduling"] == [1]


async def test_taking_a_taint_away_or_uncordoning_lets_pods_in(tmp_path: Path) -> None:
    tainted = node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    async with cluster(tmp_path, tainted) as it:
        await it.until(lambda: it.scheduler.state.nodes.get("n1").kind.hard_taints)
        await it.create(pod("p"))
        assert (await it.refused("p"))["message"].startswith(
            "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption:"
        )
        await it.client.patch(NODES, "n1", "", {"spec": {"taints": None, "unschedulable": True}})
        await it.clock.advance(1)
        await it.until(lambda: it.scheduler.idle)
        await it.client.patch(NODES, "n1", "", {"spec": {"unschedulable": None}})
        await it.clock.advance(10)
        assert await it.placed("p") == "n1"


async def test_up_to_1_34_conditions_name_the_taint(tmp_path: Path) -> None:
    tainted = node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    profile = Profile("old", version="1.30", latencies=INSTANT)
    async with cluster(tmp_path, tainted, profile=profile) as it:
        await it.until(lambda: len(it.scheduler.state.nodes.get("n1").kind.hard_taints) == 1)
        await it.create(pod("p"))
        await it.refused("p")
        await it.clock.advance(600)
        condition = await it.refused("p")
        assert condition["message"].startswith("0/1 nodes are available: 1 node(s) had untolerated taint {k: v}. ")
        assert "observedGeneration" not in condition


async def test_a_gated_pod_says_so_and_goes_when_the_gate_opens(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1")) as it:
        await it.create(pod("p", schedulingGates=[{"name": "example.com/wait"}]))
        condition = await it.refused("p")
        assert (condition["reason"], condition["message"]) == (
            "SchedulingGated",
            "Scheduling is blocked due to non-empty scheduling gates",
        )
        assert await it.harness.events("p") == []
        await it.client.patch(PODS, "p", "default", {"spec": {"schedulingGates": None}})
        assert await it.placed("p") == "n1"


async def test_pods_of_other_schedulers_are_left_alone_but_count_once_placed(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="2")) as it:
        await it.create(pod("theirs", cpu="2", schedulerName="other"), pod("preset", cpu="1500m", nodeName="n1"))
        await it.until(lambda: it.scheduler.state.nodes.get("n1").usage.cpu == 1500)
        await it.create(pod("p", cpu="1"))
        await it.refused("p")
        assert "conditions" not in (await it.get("theirs"))["status"]


async def test_bindings_take_their_time_without_holding_up_one_another(tmp_path: Path) -> None:
    latencies = Latencies(schedule=Delay(5.0))
    async with cluster(tmp_path, node("n1"), profile=Profile("slow", latencies=latencies)) as it:
        await it.create(*(pod(f"p{number}", cpu="100m") for number in range(20)))
        await it.until(lambda: it.scheduler.state.nodes.get("n1").usage.pods == 20)
        await it.clock.advance(4.9)
        assert not any(obj["spec"].get("nodeName") for obj in it.pods.list())
        await it.clock.advance(0.2)
        assert {await it.placed(f"p{number}") for number in range(20)} == {"n1"}


async def test_important_pods_go_first(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="1")) as it:
        await it.client.create(CLASSES, _priority_class("high", 1000))
        await it.scheduler.stop()
        await it.create(pod("low", cpu="1"), pod("high", cpu="1", priorityClassName="high"))
        await it.scheduler.start()
        assert await it.placed("high") == "n1"
        assert (await it.refused("low"))["message"] == NO_ROOM


def _priority_class(name: str, value: int, **more: Any) -> Obj:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value, **more}


async def test_a_restarted_scheduler_knows_what_is_taken(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="2"), node("n2", cpu="2")) as it:
        await it.create(pod("a", cpu="2"))
        first = await it.placed("a")
        await it.scheduler.stop()
        await it.create(pod("b", cpu="2"), pod("c", cpu="2"))
        await it.clock.advance(60)
        assert not (await it.get("b"))["spec"].get("nodeName")
        await it.scheduler.start()
        await it.until(lambda: it.scheduler.idle)
        taken = {(await it.get(name))["spec"].get("nodeName") for name in "bc"}
        assert taken == {None, "n2" if first == "n1" else "n1"}


async def test_a_pod_deleted_before_it_was_bound_frees_its_place(tmp_path: Path) -> None:
    latencies = Latencies(schedule=Delay(5.0))
    async with cluster(tmp_path, node("n1", cpu="1"), profile=Profile("slow", latencies=latencies)) as it:
        await it.create(pod("a", cpu="1"))
        await it.until(lambda: it.scheduler.state.nodes.get("n1").usage.pods == 1)
        await it.client.delete(PODS, "a", "default", grace_period=0)
        await it.until(lambda: it.scheduler.state.nodes.get("n1").usage.pods == 0)
        await it.create(pod("b", cpu="1"))
        await it.clock.advance(6)
        assert await it.placed("b") == "n1"


async def test_a_pod_that_somebody_else_placed_stays_there(tmp_path: Path) -> None:
    latencies = Latencies(schedule=Delay(5.0))
    nodes = (node("n1", cpu="1"), node("n2", cpu="1"))
    async with cluster(tmp_path, *nodes, profile=Profile("slow", latencies=latencies)) as it:
        await it.create(pod("a", cpu="1"))
        await it.until(lambda: it.scheduler.state.priorities)
        (chosen,) = [each.name for each in it.scheduler.state.nodes if each.usage.pods]
        other = "n2" if chosen == "n1" else "n1"
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": other}}
        await it.client.create_subresource(
            PODS, "a", "default", "binding", {"apiVersion": "v1", "kind": "Binding", **binding}
        )
        await it.clock.advance(6)
        await it.until(lambda: it.scheduler.idle)
        assert {each.name: each.usage.pods for each in it.scheduler.state.nodes} == {chosen: 0, other: 1}


async def test_a_binding_that_fails_is_reported_and_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, node("n1", cpu="1")) as it:
        client = it.harness.context.client(SCHEDULER)
        bind, failures = client.create_subresource, [InternalError("the disk is full")]

        async def failing(*args: Any, **kwargs: Any) -> Obj:
            if failures:
                raise failures.pop()
            return await bind(*args, **kwargs)

        monkeypatch.setattr(client, "create_subresource", failing)
        await it.create(pod("p", cpu="1"))
        condition = await it.refused("p")
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith('binding rejected: running Bind plugin "DefaultBinder": ')
        assert "the disk is full" in condition["message"]
        await it.clock.advance(1)
        assert await it.placed("p") == "n1"
        assert [event[1] for event in await it.harness.events("p")] == ["FailedScheduling", "Scheduled"]


async def test_a_status_that_cannot_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, node("n1", cpu="1")) as it:
        client = it.harness.context.client(SCHEDULER)
        patch, failures = client.patch, [ConnectionFailed("refused")]

        async def failing(*args: Any, **kwargs: Any) -> Obj:
            if failures and args[0] == PODS:
                raise failures.pop()
            return await patch(*args, **kwargs)

        monkeypatch.setattr(client, "patch", failing)
        await it.create(pod("p", cpu="1000"))
        await it.until(lambda: not failures and it.scheduler.idle)
        await it.clock.advance(1)
        assert (await it.refused("p"))["message"] == TOO_LARGE


async def test_a_pod_made_anew_under_the_same_name_starts_afresh(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="1")) as it:
        await it.create(pod("p", cpu="1000"))
        await it.refused("p")
        await it.client.delete(PODS, "p", "default", grace_period=0)
        await it.create(pod("p", cpu="1"))
        assert await it.placed("p") == "n1"


async def test_a_pod_whose_owner_changed_it_is_tried_again(tmp_path: Path) -> None:
    tainted = node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])
    async with cluster(tmp_path, tainted) as it:
        await it.create(pod("p"))
        await it.refused("p")
        tolerations = [*(await it.get("p"))["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]
        await it.client.patch(PODS, "p", "default", {"spec": {"tolerations": tolerations}})
        await it.clock.advance(1)
        assert await it.placed("p") == "n1"


async def test_daemon_pods_go_to_the_node_they_name(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1"), node("n2"), node("n3", cpu="1")) as it:
        for name in ("n1", "n2", "n3"):
            fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
            await it.create(pod(f"on-{name}", cpu="2", affinity=node_affinity({"matchFields": fields})))
        assert (await it.placed("on-n1"), await it.placed("on-n2")) == ("n1", "n2")
        assert (await it.refused("on-n3"))["message"] == (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )


async def test_a_pod_waiting_for_company_goes_when_it_comes(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1")) as it:
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app="db")]}}
        await it.create(pod("p", affinity=near))
        assert "didn't match pod affinity rules" in (await it.refused("p"))["message"]
        await it.create(pod("db", labels={"app": "db"}))
        await it.clock.advance(1)
        assert await it.placed("p") == "n1"


# --- preemption


async def test_a_more_important_pod_takes_the_place_of_a_lesser_one(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="2")) as it:
        await it.client.create(CLASSES, _priority_class("high", 1000))
        await it.create(pod("low", cpu="1"), pod("other", cpu="1", labels={"app": "db"}))
        await it.placed("low")
        await it.placed("other")
        await it.client.create(BUDGETS, _budget())
        await it.create(pod("vip", cpu="1", priorityClassName="high"))
        condition = await it.refused("vip")
        assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        vip = await it.get("vip")
        assert vip["status"]["nominatedNodeName"] == "n1"
        victim = await it.get("low")
        assert victim["metadata"]["deletionTimestamp"]
        disruption = get_condition(victim["status"]["conditions"], "DisruptionTarget")
        assert disruption == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": FIRST,
        }
        assert ("Normal", "Preempted", f"Preempted by pod {vip['metadata']['uid']} on node n1") in (
            await it.harness.events("low")
        )
        await it.create(pod("late", cpu="1"))
        await it.client.delete(PODS, "low", "default", grace_period=0)
        await it.clock.advance(1)
        assert await it.placed("vip") == "n1"
        assert not (await it.get("late"))["spec"].get("nodeName")


def _budget() -> Obj:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}}
    return {**head, "spec": spec}


async def test_a_pod_that_never_preempts_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="1")) as it:
        await it.client.create(CLASSES, _priority_class("polite", 1000, preemptionPolicy="Never"))
        await it.create(pod("low", cpu="1"))
        await it.placed("low")
        await it.create(pod("p", cpu="1", priorityClassName="polite"))
        assert (await it.refused("p"))["message"] == (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        )
        assert "deletionTimestamp" not in (await it.get("low"))["metadata"]


async def test_while_its_victims_end_a_pod_takes_no_others(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1", cpu="1"), node("n2", cpu="1")) as it:
        await it.client.create(CLASSES, _priority_class("high", 1000))
        await it.create(pod("a", cpu="1"), pod("b", cpu="1"))
        await it.placed("a")
        await it.placed("b")
        await it.create(pod("vip", cpu="1", priorityClassName="high"))
        await it.refused("vip")
        await it.clock.advance(400)
        await it.until(lambda: it.scheduler.idle)
        ending = [name for name in "ab" if "deletionTimestamp" in (await it.get(name))["metadata"]]
        assert len(ending) == 1
        assert (await it.refused("vip"))["message"] == (
            "0/2 nodes are available: 2 Insufficient cpu. "
            "preemption: not eligible due to a terminating pod on the nominated node."
        )


async def test_keeping_apart_can_be_reason_enough_to_preempt(tmp_path: Path) -> None:
    async with cluster(tmp_path, node("n1")) as it:
        await it.client.create(CLASSES, _priority_class("high", 1000))
        await it.create(pod("web", labels={"app": "web"}), pod("other"))
        await it.placed("web")
        await it.placed("other")
        await it.create(pod("vip", priorityClassName="high", affinity=anti_affinity(term(app="web"))))
        await it.refused("vip")
        assert "deletionTimestamp" in (await it.get("web"))["metadata"]
        assert "deletionTimestamp" not in (await it.get("other"))["metadata"]
