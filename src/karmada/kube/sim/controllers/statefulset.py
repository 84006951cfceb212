"""StatefulSets: pods with stable names, order and volumes.

A reconcile compares the set with its pods, decides the next steps (statefulset_plan.py) and takes them; their effect on
the pods triggers the next one. There are two revisions: the update revision of the present template, and the current
one, from which pods below the partition are created; when every pod has the update revision, it becomes the current
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from karmada.kube.objects.errors import AlreadyExists, ApiError, Forbidden
from karmada.kube.objects.gvrs import CLAIMS, PODS, STATEFUL_SETS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import phase
from karmada.kube.objects.selectors import LabelSelector, labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_ending, workload_keys
from karmada.kube.sim.controllers.podcontrol import (
    BY_CONTROLLER,
    PodControl,
    is_namespace_ending,
    owner_key,
    slow_start,
)
from karmada.kube.sim.controllers.revisions import (
    CONTROLLER_REVISIONS,
    REVISION_LABEL,
    Revisions,
    name,
    revision_of,
    template_of,
)
from karmada.kube.sim.controllers.statefulset_claims import Claims
from karmada.kube.sim.controllers.statefulset_identity import (
    claim_name,
    claim_templates,
    identity_labels,
    new_pod,
    ordinal_of,
    pod_name,
)
from karmada.kube.sim.controllers.statefulset_plan import Layout, Plan, layout, plan, takes_newest
from karmada.kube.sim.controllers.statefulset_status import next_available, status_of

COMPONENT = "statefulset-controller"
HASH_LABEL = "controller.kubernetes.io/hash"


@dataclass(frozen=True, slots=True)
class _Revisions:
    current: Obj
    newest: Obj
    collisions: int


def _revision_labels(revision: str, hash_: str) -> dict[str, str]:
    return {HASH_LABEL: hash_, REVISION_LABEL: revision}


class StatefulSets(Reconciler):
    name = "statefulset"
    workers = 5

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder(COMPONENT)
        self._control = PodControl(context, COMPONENT)
        self._revisions = Revisions(context, self._control, _revision_labels)
        self._claims = Claims(context, COMPONENT)
        self._sets = context.informers.of(STATEFUL_SETS)
        self._pods = context.informers.of(PODS, indexes=CLAIM_INDEXES)
        self.watches = [
            Watch(STATEFUL_SETS),
            Watch(PODS, map_to=workload_keys("StatefulSet", self._sets)),
            Watch(CONTROLLER_REVISIONS, on=("DELETED",), map_to=owner_key("StatefulSet")),
            Watch(CLAIMS, on=("DELETED",), map_to=self._users_of),
        ]

    def _users_of(self, claim: Obj) -> Iterable[Key]:
        """Yield the sets that make claims of this name."""
        metadata = claim["metadata"]
        for workload in self._sets.list(metadata["namespace"]):
            for template in claim_templates(workload):
                prefix = claim_name(template, "")
                pod = metadata["name"].removeprefix(prefix)
                if pod != metadata["name"] and ordinal_of(workload, pod) is not None:
                    yield key_of(workload)

    async def reconcile(self, key: Key) -> Result:
        workload = self._sets.get(key)
        if workload is None:
            return Done
        try:
            return await self._sync(workload)
        except Forbidden as error:
            if is_namespace_ending(error):
                return Done
            raise

    async def _sync(self, workload: Obj) -> Result:
        selector = labels_from(workload["spec"]["selector"])
        view = layout(workload, await self._own_pods(workload, selector))
        if is_deleting(workload):
            await self._count_only(workload, view)
            return Done
        known = await self._revisions.of(workload, selector)
        revisions = await self._two_revisions(workload, known)
        failure = await self._act(workload, view, revisions)
        pods = self._pods_now(workload, selector)
        await self._write_status(workload, pods, name(revisions.current), name(revisions.newest), revisions.collisions)
        if failure is not None:
            raise failure
        await self._revisions.trim(workload, known, self._live(revisions, pods))
        wait = next_available(workload, pods, self._context.clock.now())
        return requeue(wait) if wait is not None else Done

    # pods and revisions

    async def _own_pods(self, workload: Obj, selector: LabelSelector) -> list[Obj]:
        found = [
            pod for pod in candidates(self._pods, workload) if ordinal_of(workload, pod["metadata"]["name"]) is not None
        ]
        claimed = await self._control.claim(PODS, workload, selector, found)
        await self._context.until_seen(self._pods, claimed)
        return claimed

    def _pods_now(self, workload: Obj, selector: LabelSelector) -> list[Obj]:
        own = self._pods.by_index(BY_CONTROLLER, workload["metadata"]["uid"])
        return layout(workload, (pod for pod in own if selector.matches(pod["metadata"].get("labels")))).pods

    async def _two_revisions(self, workload: Obj, known: Sequence[Obj]) -> _Revisions:
        status = workload.get("status") or {}
        newest, collisions = await self._revisions.latest(workload, known, status.get("collisionCount") or 0)
        current = next((r for r in known if name(r) == status.get("currentRevision")), newest)
        return _Revisions(newest if name(current) == name(newest) else current, newest, collisions)

    @staticmethod
    def _live(revisions: _Revisions, pods: Iterable[Obj]) -> set[str]:
        return {name(revisions.current), name(revisions.newest), *map(revision_of, pods)}

    # status

    async def _count_only(self, workload: Obj, view: Layout) -> None:
        """Update the status of a set that is being deleted, which makes and removes nothing any more."""
        status = workload.get("status") or {}
        current, newest = status.get("currentRevision"), status.get("updateRevision")
        if current and newest:
            await self._write_status(workload, view.pods, current, newest, status.get("collisionCount") or 0)

    async def _write_status(self, workload: Obj, pods: list[Obj], current: str, newest: str, collisions: int) -> None:
        status = status_of(workload, pods, current, newest, collisions, self._context.clock.now())
        await self._context.put_status(STATEFUL_SETS, workload, status)

    # steps

    async def _act(self, workload: Obj, view: Layout, revisions: _Revisions) -> ApiError | None:
        """Take the next steps; the failure that ended them, if one did."""
        try:
            await self._repair(workload, view)
            todo = plan(workload, view, name(revisions.newest), self._context.clock.now())
            return await self._execute(workload, todo, revisions)
        except ApiError as error:
            return error

    async def _repair(self, workload: Obj, view: Layout) -> None:
        """Restore the identity labels of pods, and the owners of their claims."""
        for slot, pod in enumerate(view.replicas):
            if pod is None or is_deleting(pod):
                continue
            await self._repair_labels(workload, pod, view.start + slot)
            if claim_templates(workload):
                if phase(pod) == "Pending":
                    await self._claims.provide(workload, pod["metadata"]["name"])
                await self._claims.settle_owners(workload, pod, surplus=False)

    async def _repair_labels(self, workload: Obj, pod: Obj, ordinal: int) -> None:
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        missing = {
            label: value
            for label, value in identity_labels(metadata["name"], ordinal, self._context.profile.minor).items()
            if labels.get(label) != value
        }
        if missing:
            patch = {"metadata": {"labels": missing, "uid": metadata["uid"]}}
            try:
                made = await self._client.patch(PODS, metadata["name"], metadata["namespace"], patch)
            except ApiError as error:
                self._failed(workload, "Update", metadata["name"], error)
                raise
            self._succeeded(workload, "Update", metadata["name"])
            await self._context.until_seen(self._pods, [made])

    async def _execute(self, workload: Obj, todo: Plan, revisions: _Revisions) -> ApiError | None:
        for pod in todo.replace:
            self._emit_replacement(workload, pod)
        for pod in todo.remove:
            await self._claims.settle_owners(workload, pod, surplus=True)
        removed = todo.replace + todo.remove + todo.update
        for pod in removed:
            await self._delete(workload, pod)
        ordinals = iter(todo.create)
        made, failure = await slow_start(len(todo.create), lambda: self._create(workload, next(ordinals), revisions))
        await self._context.until_seen(self._pods, [pod for pod in made if pod])
        await until_ending(self._context, self._pods, removed)
        return failure

    async def _create(self, workload: Obj, ordinal: int, revisions: _Revisions) -> Obj:
        """Return the pod made; an empty one while it must wait for old claims to go."""
        called = pod_name(workload, ordinal)
        if not await self._claims.provide(workload, called):
            return {}
        revision = revisions.newest if takes_newest(workload, ordinal) else revisions.current
        pod = new_pod(workload, template_of(revision), ordinal, name(revision), self._context.profile.minor)
        try:
            made = await self._client.create(PODS, pod)
        except ApiError as error:
            if not isinstance(error, AlreadyExists):  # a foreign pod of that name may be terminating
                self._failed(workload, "Create", called, error)
            raise
        self._succeeded(workload, "Create", called)
        return made

    async def _delete(self, workload: Obj, pod: Obj) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        try:
            if await delete_if_exists(self._client, PODS, name, pod["metadata"]["namespace"], uid=uid):
                self._succeeded(workload, "Delete", name)
        except ApiError as error:
            self._failed(workload, "Delete", name, error)
            raise

    # events

    def _emit_replacement(self, workload: Obj, pod: Obj) -> None:
        failed = phase(pod) == "Failed"
        kind, reason = (WARNING, "RecreatingFailedPod") if failed else (NORMAL, "RecreatingTerminatedPod")
        which = f"{'failed' if failed else 'terminated'} Pod {pod['metadata']['name']}"
        self._recorder.event(workload, kind, reason, f"StatefulSet {key_of(workload)} is recreating {which}")

    def _succeeded(self, workload: Obj, verb: str, pod: str) -> None:
        message = f"{verb.lower()} Pod {pod} in StatefulSet {workload['metadata']['name']} successful"
        self._recorder.event(workload, NORMAL, f"Successful{verb}", message)

    def _failed(self, workload: Obj, verb: str, pod: str, error: ApiError) -> None:
        if not is_namespace_ending(error):
            called = workload["metadata"]["name"]
            message = f"{verb.lower()} Pod {pod} in StatefulSet {called} failed error: {error.message}"
            self._recorder.event(workload, WARNING, f"Failed{verb}", message)
