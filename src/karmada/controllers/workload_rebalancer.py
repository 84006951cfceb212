"""Workload rebalancer: has the bindings of the workloads in a WorkloadRebalancer scheduled afresh, once.

The trigger is spec.rescheduleTriggeredAt of a binding, set to the time at which the rebalancer was created: the
scheduler divides anew what it scheduled last before that time. A result says that the trigger is written, not that
scheduling has happened, and is final. After a crash between a trigger and its result the trigger is found in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from karmada.api import well_known
from karmada.api.apps import WorkloadRebalancer
from karmada.controllers.binding.kinds import CLUSTER_WIDE, KINDS, NAMESPACED
from karmada.controllers.concurrently import for_each
from karmada.controllers.context import Context
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.writes import delete_if_exists, patch_if_changed

SUCCESSFUL, FAILED = "Successful", "Failed"
BINDING_NOT_FOUND: Final = "ReferencedBindingNotFound"
_FINAL: Final = frozenset({SUCCESSFUL, FAILED})

Identity: TypeAlias = tuple[str, str, str, str]
log = get_logger("workload-rebalancer")


class WorkloadRebalancers(Reconciler):
    name = "workload-rebalancer"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._rebalancers = context.informers.of(WorkloadRebalancer.gvr)
        self._bindings = {
            kind: ResourceWriter(context.client, kind.gvr, context.informers.of(kind.gvr)) for kind in KINDS
        }
        self.watches = (Watch(WorkloadRebalancer.gvr, on=("ADDED", "MODIFIED"), changed=("spec",)),)

    async def reconcile(self, key: Key) -> Result:
        rebalancer = self._rebalancers.get(key)
        if rebalancer is None:
            return Done
        entries = observed(rebalancer["spec"]["workloads"], (rebalancer.get("status") or {}).get("observedWorkloads"))
        failures = await self._trigger(entries, rebalancer["metadata"]["creationTimestamp"])
        rebalancer = await self._report(rebalancer, entries, finished=not failures)
        if failures:
            raise ApiError(f"{failures} resource reschedule triggered failed and need retry")
        return await self._expire(rebalancer)

    async def _trigger(self, entries: list[Obj], created: str) -> int:
        """Give the entries without a result theirs, in place; how many have to be retried."""
        failures = 0

        async def one(place: int) -> None:
            nonlocal failures
            try:
                entries[place] = await self._triggered(entries[place], created)
            except (ApiError, ConnectionFailed, TimeoutError) as error:
                failures += 1
                log.error("Rescheduling could not be triggered", error, workload=_sorted_by(entries[place]))

        await for_each([place for place, entry in enumerate(entries) if entry.get("result") not in _FINAL], one)
        return failures

    async def _triggered(self, entry: Obj, created: str) -> Obj:
        """Return the entry with its result."""
        workload = entry["workload"]
        namespace = workload.get("namespace", "")
        bindings = self._bindings[NAMESPACED if namespace else CLUSTER_WIDE]
        key = Key(namespace, well_known.binding_name(workload["kind"], workload["name"]))
        if await bindings.change(key, lambda binding: rescheduled(binding, created)) is None:
            return {"workload": workload, "result": FAILED, "reason": BINDING_NOT_FOUND}
        return {"workload": workload, "result": SUCCESSFUL}

    async def _report(self, rebalancer: Obj, entries: list[Obj], *, finished: bool) -> Obj:
        """Return the rebalancer with its new status.

        It is locked: nothing may be deleted later that was not handled here.
        """
        old: Obj = rebalancer.get("status") or {}
        status: Obj = {"observedWorkloads": entries, "observedGeneration": meta.generation(rebalancer)}
        if old.get("finishTime"):
            status["finishTime"] = old["finishTime"]
        if finished and (status != old or "finishTime" not in status):
            status["finishTime"] = rfc3339(self._clock.now())
        wanted = {**rebalancer, "status": status}
        written = await patch_if_changed(
            self._client, WorkloadRebalancer.gvr, rebalancer, wanted, subresource="status", locked=True
        )
        if written.outcome == "updated":
            self._rebalancers.wrote(written.object)
        return written.object

    async def _expire(self, rebalancer: Obj) -> Result:
        """Delete it when its time is over, unless it has changed since."""
        seconds = rebalancer["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return Done
        left = parse_time(rebalancer["status"]["finishTime"]) + seconds - self._clock.now()
        if left > 0:
            return requeue(left)
        await delete_if_exists(
            self._client,
            WorkloadRebalancer.gvr,
            meta.name(rebalancer),
            uid=meta.uid(rebalancer),
            resource_version=meta.resource_version(rebalancer),
        )
        return Done


def observed(workloads: Iterable[Obj], before: Iterable[Obj] | None) -> list[Obj]:
    """Return an entry for each workload, sorted: with the result it has had, or none yet.

    Of workloads that are no longer listed only successes are kept.
    """
    wanted = {_identity(workload): _reference(workload) for workload in workloads}
    entries = [
        entry
        for entry in before or ()
        if wanted.pop(_identity(entry["workload"]), None) is not None or entry.get("result") == SUCCESSFUL
    ]
    entries += [{"workload": workload} for workload in wanted.values()]
    return sorted(entries, key=_sorted_by)


def rescheduled(binding: Obj, created: str) -> Obj:
    """Return the binding with a trigger of this time, unless it has one of it or a later one."""
    triggered = binding["spec"].get("rescheduleTriggeredAt")
    if triggered and parse_time(triggered) >= parse_time(created):
        return binding
    return {**binding, "spec": {**binding["spec"], "rescheduleTriggeredAt": created}}


def _identity(workload: Obj) -> Identity:
    return workload["apiVersion"], workload["kind"], workload.get("namespace") or "", workload["name"]


def _reference(workload: Obj) -> Obj:
    api_version, kind, namespace, name = _identity(workload)
    reference = {"apiVersion": api_version, "kind": kind, "name": name}
    return {**reference, "namespace": namespace} if namespace else reference


def _sorted_by(entry: Obj) -> str:
    return " ".join(_identity(entry["workload"]))
