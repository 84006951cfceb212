"""DaemonSets: one pod on every eligible node.

A reconcile compares nodes and pods, creates and deletes pods so that every node has the right ones
(daemonset_plan.py), and, when nothing of that is left to do, takes the next step of a rolling update. Pods get a node
affinity and are bound by the scheduler. Pods bound to a missing node are left to pod garbage collection: no kubelet
reports their end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.gvrs import DAEMON_SETS, NODES, PODS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.node_selection import selection_of
from karmada.kube.objects.podstate import node_name, phase
from karmada.kube.objects.selectors import LabelSelector, labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.daemonset_plan import (
    OnNode,
    Plan,
    Rules,
    by_node,
    keep,
    next_available,
    rollout,
    rules_of,
    status_of,
)
from karmada.kube.sim.controllers.daemonset_pods import new_pod, target_node, tolerations
from karmada.kube.sim.controllers.daemonset_replacements import Replacements
from karmada.kube.sim.controllers.nodefit import fit
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_ending, workload_keys
from karmada.kube.sim.controllers.podcontrol import (
    BURST,
    BY_CONTROLLER,
    PodControl,
    is_namespace_ending,
    owner_key,
    slow_start,
)
from karmada.kube.sim.controllers.resting import Resting
from karmada.kube.sim.controllers.revisions import CONTROLLER_REVISIONS, REVISION_LABEL, Revisions, name, revision_of

COMPONENT = "daemonset-controller"


def _revision_labels(revision: str, hash_: str) -> dict[str, str]:  # noqa: ARG001 - the shape of revisions.Labels
    return {REVISION_LABEL: hash_}


class DaemonSets(Reconciler):
    name = "daemonset"
    workers = 2

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder(COMPONENT)
        self._control = PodControl(context, COMPONENT)
        self._revisions = Revisions(context, self._control, _revision_labels)
        self._replacements = Replacements()
        self._resting = Resting(context.clock)
        self._sets: Informer = context.informers.of(DAEMON_SETS)
        self._nodes: Informer = context.informers.of(NODES)
        self._pods: Informer = context.informers.of(PODS, indexes=CLAIM_INDEXES)
        self.watches = [
            Watch(DAEMON_SETS),
            Watch(PODS, map_to=workload_keys("DaemonSet", self._sets)),
            Watch(CONTROLLER_REVISIONS, on=("DELETED",), map_to=owner_key("DaemonSet")),
            Watch(NODES, changed=("metadata.labels", "spec.taints"), map_to=self._all_sets),
        ]

    def _all_sets(self, node: Obj) -> list[Key]:  # noqa: ARG002 - the shape of a mapper
        return [key_of(workload) for workload in self._sets.list()]

    async def reconcile(self, key: Key) -> Result:
        workload = self._sets.get(key)
        if workload is None:
            self._replacements.forget(key)
            self._resting.forget(key)
            return Done
        if is_deleting(workload):
            return Done
        if rest := self._resting.left(workload):
            return requeue(rest)
        try:
            return await self._sync(workload)
        except Forbidden as error:
            if is_namespace_ending(error):
                return Done
            raise

    async def _sync(self, workload: Obj) -> Result:
        selector = labels_from(workload["spec"]["selector"])
        found = candidates(self._pods, workload)
        pods = await self._control.claim(PODS, workload, selector, found)
        await self._context.until_seen(self._pods, pods)
        known = await self._revisions.of(workload, selector)
        newest, collisions = await self._revisions.latest(
            workload, known, (workload.get("status") or {}).get("collisionCount") or 0
        )
        hash_ = newest["metadata"]["labels"][REVISION_LABEL]
        nodes, rules = self._look(workload, pods, hash_)
        todo, again = self._plan(workload, pods, nodes, rules)
        failure = None
        if todo:
            failure = await self._execute(workload, todo, hash_)
            nodes, rules = self._look(workload, self._pods_now(workload, selector), hash_)
        await self._context.put_status(DAEMON_SETS, workload, status_of(workload, nodes, rules, collisions))
        if failure is not None:
            raise failure
        await self._revisions.trim(workload, known, self._live(known, newest, nodes))
        if not todo:
            self._resting.counted(workload, len(nodes))
        waits = [wait for wait in (again, next_available(nodes, rules)) if wait is not None]
        return requeue(min(waits)) if waits else Done

    # nodes and pods

    def _pods_now(self, workload: Obj, selector: LabelSelector) -> list[Obj]:
        own = self._pods.by_index(BY_CONTROLLER, workload["metadata"]["uid"])
        return [pod for pod in own if selector.matches(pod["metadata"].get("labels"))]

    def _look(self, workload: Obj, pods: Sequence[Obj], hash_: str) -> tuple[list[OnNode], Rules]:
        spec = workload["spec"]["template"]["spec"]
        selection, tolerated = selection_of(spec), tolerations(spec)
        there = by_node(pods)
        nodes = []
        for node in self._nodes.list():
            called = node["metadata"]["name"]
            nodes.append(OnNode(called, fit(spec, selection, tolerated, node), there.get(called, [])))
        wanted = sum(node.fit.run for node in nodes)
        return nodes, rules_of(workload, hash_, wanted, self._context.clock.now())

    @staticmethod
    def _live(known: Sequence[Obj], newest: Obj, nodes: Sequence[OnNode]) -> set[str]:
        """Return the names of revisions that some pod is made from, and of the newest."""
        hashes = {revision_of(pod) for node in nodes for pod in node.pods}
        used = {name(revision) for revision in known if revision["metadata"]["labels"].get(REVISION_LABEL) in hashes}
        return used | {name(newest)}

    # steps

    def _plan(
        self, workload: Obj, pods: Sequence[Obj], nodes: Sequence[OnNode], rules: Rules
    ) -> tuple[Plan, float | None]:
        """Return the next steps, and the seconds until the next reconcile, if some depend on time."""
        todo = keep(nodes, rules)
        todo.delete += self._without_node(pods)
        again = self._end_finished(workload, todo)
        if not todo and (workload["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            todo = rollout(nodes, rules)
        return todo, again

    def _without_node(self, pods: Sequence[Obj]) -> list[Obj]:
        """Pending pods whose node no longer exists."""
        return [
            pod
            for pod in pods
            if not node_name(pod)
            and not is_deleting(pod)
            and (target := target_node(pod))
            and self._nodes.get(Key("", target)) is None
        ]

    def _end_finished(self, workload: Obj, todo: Plan) -> float | None:
        """Delete finished pods; return the seconds until the next one whose back-off ends."""
        now, key = self._context.clock.now(), key_of(workload)
        waits = []
        for pod in todo.finished:
            where, failed = target_node(pod), phase(pod) == "Failed"
            if failed and (wait := self._replacements.wait(key, where, now)):
                waits.append(wait)
                continue
            if failed:
                self._replacements.replaced(key, where, now)
            self._emit_finished(workload, pod, where, failed=failed)
            todo.delete.append(pod)
        return min(waits, default=None)

    def _emit_finished(self, workload: Obj, pod: Obj, node: str, *, failed: bool) -> None:
        kind, reason = (WARNING, "FailedDaemonPod") if failed else (NORMAL, "SucceededDaemonPod")
        found = f"Found {'failed' if failed else 'succeeded'} daemon pod {key_of(pod)} on node {node}"
        verb = "kill" if failed else "delete"
        self._recorder.event(workload, kind, reason, f"{found}, will try to {verb} it")

    async def _execute(self, workload: Obj, todo: Plan, hash_: str) -> ApiError | None:
        nodes = iter(todo.create)

        async def create() -> Obj:
            return await self._control.create(workload, new_pod(workload, next(nodes), hash_))

        made, failure = await slow_start(len(todo.create), create)
        unwanted = todo.delete[:BURST]
        outcomes = await asyncio.gather(
            *(self._control.delete(workload, pod) for pod in unwanted), return_exceptions=True
        )
        await self._context.until_seen(self._pods, made)
        gone = []
        for pod, outcome in zip(unwanted, outcomes, strict=True):
            if isinstance(outcome, ApiError):
                failure = failure or outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                gone.append(pod)
        await until_ending(self._context, self._pods, gone)
        return failure
