"""What the scheduler reports about pods: conditions in their status, and events.

The condition is written only when it says something new, and keeps the moment of the first failure: others measure by
it how long a pod has been waiting.
"""

from __future__ import annotations

from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.sim.context import SCHEDULER, Context
from karmada.kube.sim.scheduler import messages
from karmada.kube.sim.scheduler.pods import PodInfo

UNSCHEDULABLE, GATED, ERROR = "Unschedulable", "SchedulingGated", "SchedulerError"
_GENERATIONS_SINCE = 34
_DISRUPTIONS_SINCE = 26


def reference(info: PodInfo) -> Obj:
    """As much of a pod as an event about it needs."""
    metadata = {"namespace": info.key.namespace, "name": info.key.name, "uid": info.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


class Reporter:
    def __init__(self, context: Context) -> None:
        self._client = context.client(SCHEDULER)
        self._recorder = context.recorder("default-scheduler")
        self._clock = context.clock
        self._minor = context.profile.minor

    def scheduled(self, info: PodInfo) -> None:
        text = messages.assigned(info.key.namespace, info.key.name, info.node)
        self._recorder.event(reference(info), NORMAL, "Scheduled", text)

    async def failed(self, info: PodInfo, message: str, *, reason: str = UNSCHEDULABLE) -> None:
        """Report that a pod has no node for now. `info.nominated` is where room is being made, if anywhere."""
        self._recorder.event(reference(info), WARNING, "FailedScheduling", message)
        await self._write(info, reason, message)

    async def gated(self, info: PodInfo) -> None:
        await self._write(info, GATED, messages.GATED_MESSAGE)

    async def _write(self, info: PodInfo, reason: str, message: str) -> None:
        old = info.condition or {}
        condition: Obj = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        nothing_new = all(old.get(name) == value for name, value in condition.items())
        if nothing_new and info.nominated == info.stored_nominated:
            return
        since = old.get("lastTransitionTime") if old.get("status") == "False" else None
        condition["lastTransitionTime"] = since or rfc3339(self._clock.now())
        if self._minor >= _GENERATIONS_SINCE and info.generation:
            condition["observedGeneration"] = info.generation
        status: Obj = {"conditions": [condition]}
        if info.nominated != info.stored_nominated:
            status["nominatedNodeName"] = info.nominated or None
        written = await self._patch(info, status)
        if written is not None:
            info.condition = get_condition(written["status"].get("conditions"), "PodScheduled")
            info.stored_nominated = info.nominated

    async def forget_nomination(self, info: PodInfo) -> None:
        """Clear the nomination: a pod of higher priority takes the reserved resources."""
        await self._patch(info, {"nominatedNodeName": None})
        info.stored_nominated = ""

    async def preempt(self, victim: PodInfo, preemptor: PodInfo) -> None:
        if self._minor >= _DISRUPTIONS_SINCE:
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": messages.PREEMPTING,
                "lastTransitionTime": rfc3339(self._clock.now()),
            }
            await self._patch(victim, {"conditions": [condition]})
        try:
            await self._client.delete(PODS, victim.key.name, victim.key.namespace, uid=victim.uid)
        except (NotFound, Conflict):
            return  # gone, or another pod of that name by now
        text = messages.preempted_by(preemptor.uid, victim.node)
        self._recorder.event(reference(victim), NORMAL, "Preempted", text)

    async def _patch(self, info: PodInfo, status: Obj) -> Obj | None:
        """Return None when the pod is gone."""
        patch = {"metadata": {"uid": info.uid}, "status": status}
        try:
            return await self._client.patch(
                PODS, info.key.name, info.key.namespace, patch, type="strategic", subresource="status"
            )
        except (NotFound, Conflict):
            return None
