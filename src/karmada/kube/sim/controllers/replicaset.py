"""ReplicaSets and ReplicationControllers: the desired number of pods, made from one template.

One reconciler for both kinds. It claims the active pods its selector matches, creates or deletes the difference, and
writes the counts into the status. A failure is shown as the condition ReplicaFailure and retried with back-off. A
reconcile waits until the informer has its creations and deletions, so the next one counts right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import PODS, REPLICA_SETS
from karmada.kube.objects.meta import controller_of, generation, get_condition, is_deleting, set_condition, uid
from karmada.kube.objects.podstate import available_in, is_active, is_ready, is_terminal, ready_since
from karmada.kube.objects.selectors import labels_from_map
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_ending, workload_keys
from karmada.kube.sim.controllers.podcontrol import (
    BURST,
    BY_CONTROLLER,
    PodControl,
    index_by_controller,
    is_namespace_ending,
    pod_from,
    selector_of,
    slow_start,
)
from karmada.kube.sim.controllers.replicaset_victims import victims
from karmada.kube.sim.controllers.resting import Resting

REPLICATION_CONTROLLERS = GVR("", "v1", "replicationcontrollers")
REPLICA_FAILURE = "ReplicaFailure"
TERMINATING_SINCE = 35
"""The minor version from which terminatingReplicas is counted."""


class Failure(NamedTuple):
    reason: str
    message: str


class Managed(NamedTuple):
    """The pods after a reconcile, the failure, and whether another burst is needed."""

    pods: list[Obj]
    failure: Failure | None = None
    unfinished: bool = False


def pod_matters(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a change of a pod can change its controller's counts."""
    return old is None or new is None or _counted(old) != _counted(new)


def _counted(pod: Obj) -> tuple[object, ...]:
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences")
    return is_deleting(pod), is_terminal(pod), ready_since(pod), metadata.get("labels"), owners


class _Replicas(Reconciler):
    """The mechanism; the kinds differ in their names only."""

    component: ClassVar[str]
    resource: ClassVar[GVR]
    kind: ClassVar[str]
    counts_terminating: ClassVar[bool]
    workers = 4

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.clock
        self._client = context.client()
        self._control = PodControl(context, self.component)
        self._owners = context.informers.of(self.resource, indexes={BY_CONTROLLER: index_by_controller})
        self._pods = context.informers.of(PODS, indexes=CLAIM_INDEXES)
        self._terminating = self.counts_terminating and context.profile.minor >= TERMINATING_SINCE
        self._resting = Resting(context.clock)
        self.watches = (
            Watch(self.resource),
            Watch(PODS, when=pod_matters, map_to=workload_keys(self.kind, self._owners)),
        )

    async def reconcile(self, key: Key) -> Result:
        owner = self._owners.get(key)
        if owner is None:
            self._resting.forget(key)
            return Done
        rest = self._resting.left(owner)
        if rest > 0:
            return requeue(rest)
        active = [pod for pod in candidates(self._pods, owner) if is_active(pod)]
        pods = await self._control.claim(PODS, owner, selector_of(owner), active)
        managed = await self._manage(owner, pods) if not is_deleting(owner) else Managed(pods)
        await self._context.put_status(self.resource, owner, self._status(owner, managed))
        if managed.failure is not None:
            return Retry
        if not managed.unfinished:
            self._resting.counted(owner, len(managed.pods))
        return self._when_available(owner, managed.pods)

    # pods

    async def _manage(self, owner: Obj, pods: list[Obj]) -> Managed:
        missing = _wanted(owner) - len(pods)
        if missing > 0:
            return await self._create(owner, pods, missing)
        if missing < 0:
            return await self._delete(owner, pods, -missing)
        return Managed(pods)

    async def _create(self, owner: Obj, pods: list[Obj], count: int) -> Managed:
        template = owner["spec"].get("template") or {}
        prefix = f"{owner['metadata']['name']}-"
        made, error = await slow_start(
            count, lambda: self._control.create(owner, pod_from(template, owner, generate_name=prefix))
        )
        await self._context.until_seen(self._pods, made)
        return Managed([*pods, *made], _failure("FailedCreate", error), count > BURST)

    async def _delete(self, owner: Obj, pods: list[Obj], count: int) -> Managed:
        chosen = victims(pods, min(count, BURST), self._related(owner, pods), self._clock.now())
        results = await asyncio.gather(*(self._control.delete(owner, pod) for pod in chosen), return_exceptions=True)
        gone = [pod for pod, result in zip(chosen, results, strict=True) if result is None]
        errors = [result for result in results if result is not None]
        for failure in errors:
            if not isinstance(failure, ApiError):
                raise failure
        await until_ending(self._context, self._pods, gone)
        away = {uid(pod) for pod in gone}
        left = [pod for pod in pods if uid(pod) not in away]
        first = next((error for error in errors if isinstance(error, ApiError)), None)
        return Managed(left, _failure("FailedDelete", first), count > BURST)

    def _related(self, owner: Obj, pods: list[Obj]) -> Iterable[Obj]:
        """Return the active pods of all sets that one Deployment controls."""
        above = controller_of(owner)
        if above is None:
            return pods
        return (
            pod
            for sibling in self._owners.by_index(BY_CONTROLLER, above["uid"])
            for pod in self._pods.by_index(BY_CONTROLLER, uid(sibling))
            if is_active(pod)
        )

    # status

    def _status(self, owner: Obj, managed: Managed) -> Obj:
        now, least = self._clock.now(), _min_ready(owner)
        labels = labels_from_map(((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels"))
        pods = managed.pods
        counts = {
            "fullyLabeledReplicas": sum(labels.matches(pod["metadata"].get("labels")) for pod in pods),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
            "availableReplicas": sum(available_in(pod, least, now) == 0 for pod in pods),
            "observedGeneration": generation(owner),
        }
        status: Obj = {"replicas": len(pods)} | {name: count for name, count in counts.items() if count}
        if self._terminating:
            own = self._pods.by_index(BY_CONTROLLER, uid(owner))
            status["terminatingReplicas"] = sum(is_deleting(pod) and not is_terminal(pod) for pod in own)
        conditions = _conditions((owner.get("status") or {}).get("conditions"), managed.failure, now)
        return status | ({"conditions": conditions} if conditions else {})

    def _when_available(self, owner: Obj, pods: Iterable[Obj]) -> Result:
        """Requeue when the next ready pod becomes available."""
        least = _min_ready(owner)
        if not least:
            return Done
        now = self._clock.now()
        waits = [wait for pod in pods if (wait := available_in(pod, least, now))]
        return requeue(min(waits)) if waits else Done


class ReplicaSets(_Replicas):
    name = "replicaset-controller"
    component = "replicaset-controller"
    resource = REPLICA_SETS
    kind = "ReplicaSet"
    counts_terminating = True


class ReplicationControllers(_Replicas):
    name = "replicationcontroller-controller"
    component = "replication-controller"
    resource = REPLICATION_CONTROLLERS
    kind = "ReplicationController"
    counts_terminating = False


def _wanted(owner: Obj) -> int:
    return int(owner["spec"].get("replicas", 1))


def _min_ready(owner: Obj) -> int:
    return int(owner["spec"].get("minReadySeconds") or 0)


def _failure(reason: str, error: ApiError | None) -> Failure | None:
    if error is None or is_namespace_ending(error):
        return None
    return Failure(reason, error.message)


def _conditions(old: Sequence[Obj] | None, failure: Failure | None, now: float) -> list[Obj]:
    """Return the conditions; the first failure stays until there is none, later ones do not replace it."""
    if failure is None:
        return [condition for condition in old or () if condition.get("type") != REPLICA_FAILURE]
    if get_condition(old, REPLICA_FAILURE) is not None:
        return list(old or ())
    shown = {"type": REPLICA_FAILURE, "status": "True", "reason": failure.reason, "message": failure.message}
    return set_condition(old, shown, now)
