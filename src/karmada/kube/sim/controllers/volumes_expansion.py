"""Growing volumes: a bound claim that requests more than its capacity is resized after a while.

Its class must allow expansion.
The claim says that it is being resized until its volume and then the claim itself have the new size.
"""

from __future__ import annotations

from karmada.kube.objects.gvrs import CLAIMS, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.meta import get_condition, is_deleting, set_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.events import NORMAL
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import patch_if_changed, set_status
from karmada.kube.server.admission.storage import class_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.timers import Timers
from karmada.kube.sim.controllers.volumes_model import BOUND, phase_of, requested_size, size_of, spec_of, volume_size

RESIZING = "Resizing"


def wants_more(claim: Obj) -> bool:
    if phase_of(claim) != BOUND or is_deleting(claim):
        return False
    return requested_size(claim) > size_of((claim.get("status") or {}).get("capacity"))


class VolumeExpansion(Reconciler):
    name = "volume-expand"
    watches = (Watch(CLAIMS, when=matching(wants_more)),)

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._client = context.client()
        self._claims = context.informers.of(CLAIMS)
        self._volumes = context.informers.of(VOLUMES)
        self._classes = context.informers.of(STORAGE_CLASSES)
        self._recorder = context.recorder("volume_expand")
        self._timers = Timers(context, context.profile.latencies.provision)

    async def reconcile(self, key: Key) -> Result:
        claim = self._claims.get(key)
        volume = self._volumes.get(Key("", spec_of(claim).get("volumeName") or "")) if claim is not None else None
        if claim is None or volume is None or not wants_more(claim) or not self._may_grow(claim):
            self._timers.forget(key)
            return Done
        if not self._timers.running(key):
            message = f"External resizer is resizing volume {volume['metadata']['name']}"
            self._recorder.event(claim, NORMAL, "Resizing", message)
        wait = self._timers.left(key)
        claim = await self._announce(claim)
        if wait > 0:
            return requeue(wait)
        await self._grow(claim, volume)
        self._timers.forget(key)
        return Done

    def _may_grow(self, claim: Obj) -> bool:
        storage_class = self._classes.get(Key("", class_of(claim) or ""))
        return storage_class is not None and bool(storage_class.get("allowVolumeExpansion"))

    async def _announce(self, claim: Obj) -> Obj:
        status = claim.get("status") or {}
        if get_condition(status.get("conditions"), RESIZING) is not None:
            return claim
        conditions = set_condition(status.get("conditions"), {"type": RESIZING, "status": "True"}, self._clock.now())
        return (await set_status(self._client, CLAIMS, claim, {**status, "conditions": conditions})).object

    async def _grow(self, claim: Obj, volume: Obj) -> None:
        size = requested_size(claim)
        if volume_size(volume) < size:
            grown = {**volume, "spec": {**spec_of(volume), "capacity": {"storage": str(size)}}}
            await patch_if_changed(self._client, VOLUMES, volume, grown, locked=True)
        before = claim.get("status") or {}
        left = [entry for entry in before.get("conditions") or () if entry.get("type") != RESIZING]
        status = {key: value for key, value in before.items() if key != "conditions"}
        status["capacity"] = {**(before.get("capacity") or {}), "storage": str(size)}
        await set_status(self._client, CLAIMS, claim, {**status, "conditions": left} if left else status)
        self._recorder.event(claim, NORMAL, "VolumeResizeSuccessful", "Resize volume succeeded")
