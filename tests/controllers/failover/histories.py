"""Random histories of a fleet, and what must hold at every moment of them.

A history is a list of steps over three simulated members and a few workloads. At every moment an observer compares what
really serves in the members with what eviction decides; at the end all faults are repaired, and the fleet must come to
rest with every workload complete and no task left.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy, PropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.behaviours import Outcome, Rule
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from karmada.rehearsal.fleet import RehearsalFleet
from karmada.rehearsal.network import State
from tests.support.propagation import deployment, policy

MEMBERS = ("m1", "m2", "m3")
NOT_READY = "cluster.karmada.io/not-ready"
SETTINGS = Settings(enable_no_execute_taint_eviction=True, resource_eviction_rate=10.0)
DETECTION = 60.0
"""Seconds in which a failure may be unknown to the control plane: probes, threshold, status."""
ONE_CLUSTER = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
DIVIDED = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
TOLERATION = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
WORKLOADS: dict[str, dict[str, Any]] = {
    "single": {"placement": {"spreadConstraints": ONE_CLUSTER}},
    "divided": {"placement": {"replicaScheduling": DIVIDED}},
    "duplicated": {"placement": {"clusterTolerations": [TOLERATION]}},
    "pinned": {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}},
    "watched": {
        "placement": {"spreadConstraints": ONE_CLUSTER},
        "propagateDeps": True,
        "failover": {
            "application": {"decisionConditions": {"tolerationSeconds": 30}, "purgeMode": "Gracefully"},
        },
    },
}
DEAD = {
    "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}],
    "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
    "taints": [{"key": NOT_READY, "effect": "NoExecute"}],
}


class Step(NamedTuple):
    """`what` is a method of History; `where` a member or a workload."""

    what: str
    where: str = ""
    value: Any = None


class Copy(NamedTuple):
    """What a workload has in a member: whether it is there, whether it really serves."""

    exists: bool
    serves: bool


class History:
    """One fleet, for one history after the other."""

    def __init__(self, folder: Path) -> None:
        gates = default_gates()
        gates.set("Failover=true")
        self.fleet = RehearsalFleet(folder, SETTINGS, gates)
        self._served: dict[tuple[str, str], float] = {}
        """When a copy was last seen to serve."""
        self._tasks: dict[str, set[str]] = {}
        self._known: dict[str, bool] = {}
        """Members that the control plane held for ready a moment ago."""
        self._sick: set[str] = set()
        self.violations: list[str] = []

    async def start(self) -> None:
        await self.fleet.start()
        for name in MEMBERS:
            profile = Profile(name, latencies=INSTANT, pools=(NodePool(count=1),), system_pods=False)
            await self.fleet.add_member(profile)
            await self.fleet.join(name)
        await self.fleet.start_controllers()
        head = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
        await self.fleet.client.create(ClusterTaintPolicy.gvr, {**head, "metadata": {"name": "dead"}, "spec": DEAD})
        await self.fleet.run(45)

    async def begin(self) -> None:
        """Every workload anew."""
        self._served, self._tasks, self.violations = {}, {}, []
        for name, spec in WORKLOADS.items():
            placement = {"clusterAffinity": {"clusterNames": list(MEMBERS)}, **spec["placement"]}
            selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            await self.fleet.client.create(
                PropagationPolicy.gvr, policy(name, selector, **{**spec, "placement": placement})
            )
            await self.fleet.client.create(DEPLOYMENTS, deployment(name, replicas=2))
        await self.fleet.run(20, each=self._observe)

    async def end(self) -> None:
        """Repair everything, come to rest, and check the result; then remove it."""
        for name in MEMBERS:
            await self.up(name)
            await self.untaint(name)
            await self.cure(name)
        await self.fleet.run(100, each=self._observe)  # what failed a moment ago is detected, and recovers
        await self.fleet.run(1500, until=lambda: not self._unfinished(), each=self._observe)
        await self.fleet.run(20, each=self._observe)
        self.violations += [f"at rest: {text}" for text in self._unfinished()]
        for name in WORKLOADS:
            await self.fleet.client.delete(PropagationPolicy.gvr, name, "default")
            await self.fleet.client.delete(DEPLOYMENTS, name, "default")
        await self.fleet.run(30)

    async def play(self, steps: list[Step]) -> None:
        await self.begin()
        for step in steps:
            await getattr(self, step.what)(*(given for given in (step.where, step.value) if given not in ("", None)))
            await self.fleet.run(1, each=self._observe)
        await self.end()
        assert not self.violations, "\n".join(self.violations)

    # steps

    async def wait(self, seconds: float) -> None:
        await self.fleet.run(seconds, each=self._observe)

    async def fail(self, member: str, state: State) -> None:
        self.fleet.change_network(member, state)

    async def up(self, member: str) -> None:
        self.fleet.change_network(member, State.UP)

    async def flap(self, member: str) -> None:
        for state in (State.DOWN, State.UP, State.DOWN, State.UP):
            self.fleet.change_network(member, state)
            await self.fleet.run(35, each=self._observe)

    async def taint(self, member: str) -> None:
        await self._set_taint(member, {"key": "work", "effect": "NoExecute", "timeAdded": self._now()})

    async def untaint(self, member: str) -> None:
        await self._set_taint(member, None)

    async def _set_taint(self, member: str, taint: Obj | None) -> None:
        cluster = await self.fleet.client.get(Cluster.gvr, member)
        kept = [found for found in cluster["spec"].get("taints") or () if found["key"] != "work"]
        patch = {"spec": {"taints": [*kept, *([taint] if taint else [])] or None}}
        await self.fleet.client.patch(Cluster.gvr, member, "", patch)

    async def sicken(self, member: str) -> None:
        """Pods that start there from now on never become ready."""
        if member not in self._sick:
            self._sick.add(member)
            self.fleet.members[member].sim.add_rule("sick", Rule(Outcome("never-ready"), namespace="default"))

    async def cure(self, member: str) -> None:
        if member in self._sick:
            self._sick.discard(member)
            self.fleet.members[member].sim.remove_rule("sick")

    async def scale(self, workload: str, replicas: int) -> None:
        await self.fleet.client.patch(DEPLOYMENTS, workload, "default", {"spec": {"replicas": replicas}})

    async def change(self, workload: str, image: str) -> None:
        containers = [{"name": "web", "image": image}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        await self.fleet.client.patch(DEPLOYMENTS, workload, "default", patch)

    async def tolerate(self, workload: str, seconds: int) -> None:
        tolerations = [{**TOLERATION, "tolerationSeconds": seconds}]
        patch = {"spec": {"placement": {"clusterTolerations": tolerations}}}
        await self.fleet.client.patch(PropagationPolicy.gvr, workload, "default", patch)

    async def restart(self) -> None:
        await self.fleet.stop_controllers()
        await self.fleet.start_controllers()

    def _now(self) -> str:
        return rfc3339(self.fleet.clock.now())

    # what must hold

    def _copy(self, member: str, workload: str) -> Copy:
        found = self.fleet.members[member]
        obj = found.sim.context.informers.of(DEPLOYMENTS).get(Key("default", workload))
        ready = ((obj or {}).get("status") or {}).get("readyReplicas") or 0
        return Copy(obj is not None, ready > 0 and found.network.state is State.UP)

    def _observe(self) -> None:
        now = self.fleet.clock.now()
        for workload in WORKLOADS:
            for member in MEMBERS:
                if self._copy(member, workload).serves:
                    self._served[workload, member] = now
            self._observe_tasks(workload, now)
        self._known = {member: self._is_known_ready(member) for member in MEMBERS}

    def _observe_tasks(self, workload: str, now: float) -> None:
        binding = self._stored(ResourceBinding.gvr, f"{workload}-deployment", "default")
        spec = (binding or {}).get("spec") or {}
        tasks = {task["fromCluster"] for task in spec.get("gracefulEvictionTasks") or ()}
        targets = {target["name"] for target in spec.get("clusters") or ()}
        if binding is not None:
            self._count(workload, binding)
        for member in self._tasks.get(workload, set()) - tasks - targets:
            if binding is not None:
                self._judge(workload, member, targets, now)
        self._tasks[workload] = tasks

    def _count(self, workload: str, binding: Obj) -> None:
        """What the scheduler has decided of the present spec adds up to what the binding wants."""
        spec, status = binding["spec"], binding.get("status") or {}
        shares = {target["name"]: target.get("replicas") or 0 for target in spec.get("clusters") or ()}
        decided = status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
        if decided and shares and not _complete(workload, shares, spec.get("replicas") or 0):
            self.violations.append(f"{self._now()}: {workload} has {shares} of {spec.get('replicas')} replicas")

    def _judge(self, workload: str, member: str, targets: set[str], now: float) -> None:
        """An eviction ended: either another copy serves, or this one was known not to."""
        if any(now - self._served.get((workload, other), 0.0) <= DETECTION for other in MEMBERS if other != member):
            return
        served_here = now - self._served.get((workload, member), 0.0) <= DETECTION
        if targets and not (served_here and self._known.get(member, True)):
            return
        text = f"{workload} lost its last copy, in {member} (targets: {sorted(targets)})"
        self.violations.append(f"{self._now()}: {text}")

    def _is_known_ready(self, member: str) -> bool:
        cluster = self._stored(Cluster.gvr, member)
        return cluster is not None and is_ready(cluster)

    def _stored(self, gvr: GVR, name: str, namespace: str = "") -> Obj | None:
        return self.fleet.server.cache.get(gvr.group_resource, namespace, name)

    def _unfinished(self) -> list[str]:
        """What is not as it should be once nothing fails any longer."""
        return [f"{workload}: {text}" for workload in WORKLOADS for text in self._unfinished_of(workload)]

    def _unfinished_of(self, workload: str) -> list[str]:
        binding = self._stored(ResourceBinding.gvr, f"{workload}-deployment", "default")
        template = self._stored(DEPLOYMENTS, workload, "default")
        if binding is None or template is None:
            return ["it is gone"]
        spec, replicas = binding["spec"], template["spec"]["replicas"]
        shares = {target["name"]: target.get("replicas") or 0 for target in spec.get("clusters") or ()}
        copies = {member: self._copy(member, workload) for member in MEMBERS}
        expect = [
            (not spec.get("gracefulEvictionTasks"), "a task is left"),
            (bool(shares), "it is nowhere"),
            (_complete(workload, shares, replicas), "replicas are missing or too many"),
            (all(copy.exists == (member in shares) for member, copy in copies.items()), "copies differ"),
            (all(copies[member].serves for member in shares), "a copy does not serve"),
        ]
        return [f"{text}: {shares}" for holds, text in expect if not holds]


def _complete(workload: str, shares: dict[str, int], replicas: int) -> bool:
    if workload == "duplicated":
        return all(share == replicas for share in shares.values())
    return sum(shares.values()) == replicas


Play = Callable[[list[Step]], None]
