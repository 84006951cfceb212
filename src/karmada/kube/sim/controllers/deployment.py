"""Deployments: one ReplicaSet per version of the template, and rollouts from one to the next.

A reconcile claims the ReplicaSets, takes the next step (create the new set, scale it up, scale old ones down, scale
all proportionally), and writes the status. The following step is taken when the status of a ReplicaSet changes, so a
rollout needs no state of its own. A reconcile waits until the informer has its writes to ReplicaSets, so no step is
taken twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects import meta
from karmada.kube.objects.errors import AlreadyExists, ApiError, NotFound
from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS, REPLICA_SETS
from karmada.kube.objects.podstate import is_terminal
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers import deployment_revisions as revisions
from karmada.kube.sim.controllers import deployment_status as statuses
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_ending, workload_keys
from karmada.kube.sim.controllers.podcontrol import BY_CONTROLLER, PodControl, is_namespace_ending, selector_of
from karmada.kube.sim.controllers.replicaset import TERMINATING_SINCE
from karmada.kube.sim.controllers.rollout import new_size, old_steps, proportional

_SLACK = 1.0
"""Times in a status have whole seconds, so a deadline is checked a little later."""


class _Gone(Exception):
    """The object to change was deleted. Its event will requeue the Deployment."""


class Deployments(Reconciler):
    name = "deployment-controller"
    workers = 4

    def __init__(self, context: Context) -> None:
        self.context = context
        self.clock = context.clock
        self.client = context.client()
        self.recorder = context.recorder(self.name)
        self.control = PodControl(context, self.name)
        self.deployments = context.informers.of(DEPLOYMENTS)
        self.replica_sets = context.informers.of(REPLICA_SETS, indexes=CLAIM_INDEXES)
        self.pods = context.informers.of(PODS, indexes=CLAIM_INDEXES)
        self.counts_terminating = context.profile.minor >= TERMINATING_SINCE
        self.watches = (
            Watch(DEPLOYMENTS),
            Watch(REPLICA_SETS, map_to=workload_keys("Deployment", self.deployments)),
            Watch(PODS, on=("DELETED",), map_to=self._waiting_for),
        )

    def _waiting_for(self, pod: Obj) -> Iterable[Key]:
        """Return the Deployment of a deleted pod, if its strategy Recreate waits until the old pods are gone."""
        owner = meta.controller_of(pod)
        if owner is None or owner["kind"] != "ReplicaSet":
            return ()
        replica_set = self.replica_sets.get(Key(meta.namespace(pod), owner["name"]))
        above = meta.controller_of(replica_set) if replica_set is not None else None
        if above is None or above["kind"] != "Deployment":
            return ()
        key = Key(meta.namespace(pod), above["name"])
        deployment = self.deployments.get(key)
        return (key,) if deployment is not None and not revisions.is_rolling(deployment) else ()

    async def reconcile(self, key: Key) -> Result:
        deployment = self.deployments.get(key)
        if deployment is None:
            return Done
        found = candidates(self.replica_sets, deployment)
        claimed = await self.control.claim(REPLICA_SETS, deployment, selector_of(deployment), found)
        await self.context.until_seen(self.replica_sets, claimed)
        try:
            return await _Sync(self, deployment, claimed).take()
        except _Gone:
            return Done


class _Sync:
    """One reconcile of one Deployment: `deployment`, `sets` (oldest first) and `new` are as of the last write."""

    def __init__(self, parent: Deployments, deployment: Obj, replica_sets: list[Obj]) -> None:
        self._parent = parent
        self._client = parent.client
        self.deployment = deployment
        self.sets = revisions.oldest_first(replica_sets)
        self.new = revisions.find_new(deployment, self.sets)

    @property
    def old(self) -> list[Obj]:
        return [rs for rs in self.sets if rs is not self.new]

    @property
    def active(self) -> list[Obj]:
        return [rs for rs in self.sets if revisions.size(rs) > 0]

    async def take(self) -> Result:
        if meta.is_deleting(self.deployment):
            await self._update_new()
            await self._write(self._counted())
            return Done
        await self._write(statuses.with_pause(self.deployment, self._now()))
        if self.deployment["spec"].get("paused"):
            await self._resize()
            await self._clean_up()
            return Done
        if any(revisions.was_resized(self.deployment, rs) for rs in self.sets):
            await self._resize()
        else:
            await self._roll_out()
        return self._until_deadline()

    def _until_deadline(self) -> Result:
        left = statuses.deadline_in(self.deployment, self.deployment.get("status") or {}, self._now())
        return Done if left is None else requeue(max(left, 0.0) + _SLACK)

    # rollouts

    async def _roll_out(self) -> None:
        ready = await (self._roll() if revisions.is_rolling(self.deployment) else self._recreate())
        if not ready:
            return
        status = statuses.with_progress(self.deployment, self._counted(), self.new, self._now())
        await self._write(statuses.with_failures(status, self.sets, self.new))
        if statuses.is_complete(self.deployment, self.deployment.get("status") or {}):
            await self._clean_up()

    async def _roll(self) -> bool:
        """Return one step of a rolling update: the new set up, or else the old ones down.

        False if there is no new set.
        """
        new = await self._ensure_new()
        if new is None:
            return False
        goal, room = revisions.wanted(self.deployment), revisions.bounds(self.deployment)
        before = revisions.size(new)
        grown = new_size(goal, room.surge, before, revisions.total(self.sets))
        if grown != before:
            await self._scale(new, grown)
            return True
        by_name = {meta.name(rs): rs for rs in self.sets}
        for name, replicas in old_steps(
            goal, room.unavailable, revisions.part(new), list(map(revisions.part, self.old))
        ):
            by_name[name] = await self._scale(by_name[name], replicas)
        return True

    async def _recreate(self) -> bool:
        """Scale down all old sets first, then create the new one."""
        await self._update_new()
        shrinking = [rs for rs in self.old if revisions.size(rs) > 0]
        for replica_set in shrinking:
            await self._scale(replica_set, 0)
        if shrinking or self._old_pods_left():
            return True
        new = await self._ensure_new()
        if new is None:
            return False
        await self._scale(new, revisions.wanted(self.deployment))
        return True

    def _old_pods_left(self) -> bool:
        if any(revisions.count(rs, "replicas") for rs in self.old):
            return True
        pods = (pod for rs in self.old for pod in self._parent.pods.by_index(BY_CONTROLLER, meta.uid(rs)))
        return any(not is_terminal(pod) for pod in pods)

    # scaling

    async def _resize(self) -> None:
        await self._update_new()
        await self._scale_proportionally()
        await self._write(self._counted())

    async def _scale_proportionally(self) -> None:
        goal, active = revisions.wanted(self.deployment), self.active
        if len(active) <= 1:
            only = active[0] if active else self.new or (self.sets[-1] if self.sets else None)
            if only is not None:
                await self._scale(only, goal)
        elif self._is_saturated() or not revisions.is_rolling(self.deployment):
            for replica_set in self.old:
                await self._scale(replica_set, 0)
        else:
            by_name = {meta.name(rs): rs for rs in active}
            known = int((self.deployment.get("status") or {}).get("replicas") or 0)
            surge = revisions.bounds(self.deployment).surge
            for name, replicas in proportional(goal, surge, list(map(revisions.part, active)), known):
                await self._scale(by_name[name], replicas)

    def _is_saturated(self) -> bool:
        """Return whether the new set has all the pods that are wanted, and they are available."""
        new, goal = self.new, revisions.wanted(self.deployment)
        if new is None or revisions.was_resized(self.deployment, new):
            return False
        return revisions.size(new) == goal == revisions.count(new, "availableReplicas")

    # ReplicaSets

    async def _update_new(self) -> Obj | None:
        """Update the annotations of the new set, if there is one, and the revision on the Deployment."""
        new = self.new
        if new is None:
            return None
        notes = revisions.new_set_annotations(self.deployment, new, revisions.next_revision(self.old))
        patch: Obj = {}
        if notes != meta.annotations(new):
            patch["metadata"] = {"annotations": notes}
        least = self.deployment["spec"].get("minReadySeconds") or 0
        if least != (new["spec"].get("minReadySeconds") or 0):
            patch["spec"] = {"minReadySeconds": least}
        if patch:
            new = await self._patch(new, patch)
        status: Obj = self.deployment.get("status") or {}
        if statuses.deadline(self.deployment) is not None and statuses.progressing(status) is None:
            status = self._progress(status, "True", statuses.FOUND, f'Found new replica set "{meta.name(new)}"')
        await self._write(status, revision=notes[revisions.REVISION])
        return new

    async def _ensure_new(self) -> Obj | None:
        """Return the new set, created if necessary; None if that failed."""
        if self.new is not None:
            return await self._update_new()
        number = revisions.next_revision(self.sets)
        replicas = revisions.wanted(self.deployment)
        if revisions.is_rolling(self.deployment):
            surge = revisions.bounds(self.deployment).surge
            replicas = new_size(replicas, surge, 0, revisions.total(self.sets))
        wanted = revisions.make_replica_set(self.deployment, replicas, number)
        try:
            made = await self._client.create(REPLICA_SETS, wanted)
        except AlreadyExists:
            return await self._on_collision(wanted)
        except ApiError as error:
            if is_namespace_ending(error):
                return None
            await self._report_create_error(meta.name(wanted), error)
            raise
        await self._parent.context.until_seen(self._parent.replica_sets, [made])
        self.new = made
        self.sets.append(made)
        if replicas > 0:
            self._emit_scaled(made, 0, replicas)
        status: Obj = self.deployment.get("status") or {}
        if statuses.deadline(self.deployment) is not None:
            status = self._progress(status, "True", statuses.CREATED, f'Created new replica set "{meta.name(made)}"')
        await self._write(status, revision=str(number))
        return made

    async def _on_collision(self, wanted: Obj) -> Obj | None:
        """Return our own set of that name, not yet in the informer; None after a hash collision changed the name."""
        live = await self._client.get(REPLICA_SETS, meta.name(wanted), meta.namespace(wanted))
        owner = meta.controller_of(live)
        ours = owner is not None and owner["uid"] == meta.uid(self.deployment)
        if ours and revisions.same_template(self.deployment, live):
            await self._parent.context.until_seen(self._parent.replica_sets, [live])
            self.new = live
            self.sets.append(live)
            return await self._update_new()
        status: Obj = self.deployment.get("status") or {}
        await self._write({**status, "collisionCount": int(status.get("collisionCount") or 0) + 1})
        return None

    async def _scale(self, replica_set: Obj, replicas: int) -> Obj:
        """Scale a set, and annotate it with the replicas of the Deployment at this time."""
        notes, before = revisions.size_annotations(self.deployment), revisions.size(replica_set)
        have = meta.annotations(replica_set)
        if before == replicas and (replicas == 0 or all(have.get(key) == value for key, value in notes.items())):
            return replica_set
        scaled = await self._patch(replica_set, {"metadata": {"annotations": notes}, "spec": {"replicas": replicas}})
        if before != replicas:
            self._emit_scaled(scaled, before, replicas)
        return scaled

    async def _patch(self, replica_set: Obj, patch: Obj) -> Obj:
        """Change a set, provided it is still the same one; its counts may have changed meanwhile."""
        key = key_of(replica_set)
        patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": meta.uid(replica_set)}}
        try:
            patched = await self._client.patch(REPLICA_SETS, key.name, key.namespace, patch, type="merge")
        except NotFound as error:
            raise _Gone from error
        await self._parent.context.until_seen(self._parent.replica_sets, [patched])
        self.sets = [patched if rs is replica_set else rs for rs in self.sets]
        self.new = patched if self.new is replica_set else self.new
        return patched

    async def _clean_up(self) -> None:
        gone = revisions.superfluous(self.deployment, self.old)
        for replica_set in gone:
            name, namespace = meta.name(replica_set), meta.namespace(replica_set)
            await delete_if_exists(self._client, REPLICA_SETS, name, namespace, uid=meta.uid(replica_set))
        await until_ending(self._parent.context, self._parent.replica_sets, gone)

    # events

    def _now(self) -> float:
        return self._parent.clock.now()

    def _counted(self) -> Obj:
        return statuses.counted(
            self.deployment, self.sets, self.new, self._now(), terminating=self._parent.counts_terminating
        )

    def _progress(self, status: Obj, truth: str, reason: str, message: str) -> Obj:
        return statuses.with_condition(status, statuses.PROGRESSING, truth, reason, message, self._now())

    async def _write(self, status: Obj, *, revision: str = "") -> None:
        """Write the status, and the revision if given, unless they are unchanged."""
        deployment, metadata = self.deployment, self.deployment["metadata"]
        notes = {**meta.annotations(deployment), **({revisions.REVISION: revision} if revision else {})}
        if status == (deployment.get("status") or {}) and notes == meta.annotations(deployment):
            return
        changed = {**deployment, "metadata": {**metadata, "annotations": notes}, "status": status}
        try:
            self.deployment = await self._client.update_status(DEPLOYMENTS, changed)
        except NotFound as error:
            raise _Gone from error
        await self._parent.context.until_seen(self._parent.deployments, [self.deployment])

    def _emit_scaled(self, replica_set: Obj, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        message = f"Scaled {way} replica set {meta.name(replica_set)} from {before} to {after}"
        self._parent.recorder.event(self.deployment, NORMAL, "ScalingReplicaSet", message)

    async def _report_create_error(self, name: str, error: ApiError) -> None:
        message = f'Failed to create new replica set "{name}": {error.message}'
        self._parent.recorder.event(self.deployment, WARNING, statuses.CREATE_ERROR, message)
        if statuses.deadline(self.deployment) is not None:
            status: Obj = self.deployment.get("status") or {}
            await self._write(self._progress(status, "False", statuses.CREATE_ERROR, message))
