"""Persistent volume controller: binds claims to volumes, and releases volumes whose claim is deleted.

A claim without a volume takes the best free one; if there is none, the provisioner of its class is requested.
With delayed binding all of that waits until the scheduler has written the chosen node on the claim. A volume whose
claim is gone is released, and removed if its policy says so.

Claims and volumes share one worker (a volume's key has no namespace), so that a volume is never bound twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.objects.gvrs import CLAIMS, NODES, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists, patch_if_changed
from karmada.kube.server.admission.storage import BETA_IS_DEFAULT, IS_DEFAULT, class_of, newest_default
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.volumes_matching import best_match, mismatch
from karmada.kube.sim.controllers.volumes_model import (
    AVAILABLE,
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND,
    BY_CLAIM,
    BY_CLASS,
    BY_VOLUME,
    FAILED,
    LOST,
    NO_CLASS,
    PENDING,
    PROVISIONED_BY,
    RELEASED,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAITING,
    claim_key,
    claim_ref,
    index_by_claim,
    index_by_class,
    index_by_volume,
    index_waiting,
    is_for,
    phase_of,
    spec_of,
    volume_class,
    waits_for_consumer,
)
from karmada.kube.sim.controllers.volumes_writes import VolumeWrites, annotated

_BUILT_IN = "kubernetes.io/"
_NOTHING_THERE = "no persistent volumes available for this claim and no storage class is set"
_NO_CONSUMER = "waiting for first consumer to be created before binding"


def _waiting_for(provisioner: str) -> str:
    return (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )


class VolumeBinder(Reconciler):
    name = "persistentvolume-binder"

    def __init__(self, context: Context) -> None:
        informers = context.informers
        self._client = context.client()
        self._claims = informers.of(CLAIMS, indexes={BY_VOLUME: index_by_volume, WAITING: index_waiting})
        self._volumes = informers.of(VOLUMES, indexes={BY_CLAIM: index_by_claim, BY_CLASS: index_by_class})
        self._classes = informers.of(STORAGE_CLASSES)
        self._nodes = informers.of(NODES)
        self._writes = VolumeWrites(context, self._claims, self._volumes)
        self._recorder = context.recorder("persistentvolume-controller")
        self.watches = (
            Watch(CLAIMS, map_to=self._around_claim),
            Watch(VOLUMES, map_to=self._around_volume),
            Watch(STORAGE_CLASSES, map_to=self._waiting_for_class),
        )

    # from changes to keys

    def _around_claim(self, claim: Obj) -> Iterator[Key]:
        key = key_of(claim)
        yield key
        if spec_of(claim).get("volumeName"):
            yield Key("", spec_of(claim)["volumeName"])
        yield from map(key_of, self._volumes.by_index(BY_CLAIM, str(key)))

    def _around_volume(self, volume: Obj) -> Iterator[Key]:
        yield key_of(volume)
        yield from map(key_of, self._claims.by_index(BY_VOLUME, volume["metadata"]["name"]))
        claim = claim_key(volume)
        if claim is not None:
            yield claim
        elif phase_of(volume) == AVAILABLE:
            yield from map(key_of, self._claims.by_index(WAITING, volume_class(volume)))
            if not volume_class(volume):
                yield from map(key_of, self._claims.by_index(WAITING, NO_CLASS))

    def _waiting_for_class(self, storage_class: Obj) -> Iterator[Key]:
        for name in (storage_class["metadata"]["name"], NO_CLASS):
            yield from map(key_of, self._claims.by_index(WAITING, name))

    async def reconcile(self, key: Key) -> Result:
        if key.namespace:
            claim = self._claims.get(key)
            if claim is not None:
                await self._sync_claim(claim)
        else:
            volume = self._volumes.get(key)
            if volume is not None:
                await self._sync_volume(volume)
        return Done

    # claims

    async def _sync_claim(self, claim: Obj) -> None:
        name = spec_of(claim).get("volumeName")
        volume = self._volumes.get(Key("", name)) if name else None
        if BIND_COMPLETED in annotations_of(claim):
            await self._keep_bound(claim, volume)
        elif is_deleting(claim):
            return
        elif name:
            await self._bind_requested(claim, name, volume)
        else:
            await self._find_volume(claim)

    async def _keep_bound(self, claim: Obj, volume: Obj | None) -> None:
        if volume is None:
            lost = "its PersistentVolume" if spec_of(claim).get("volumeName") else "reference to PersistentVolume"
            await self._lose(claim, "ClaimLost", f"Bound claim has lost {lost}. Data on the volume is lost!")
        elif claim_ref(volume) is None or is_for(volume, claim):
            await self._writes.bind(volume, claim)
        else:
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(claim, "ClaimMisbound", message)

    async def _lose(self, claim: Obj, reason: str, message: str) -> None:
        if phase_of(claim) != LOST:
            await self._writes.set_claim_phase(claim, LOST)
            self._recorder.event(claim, WARNING, reason, message)

    async def _bind_requested(self, claim: Obj, name: str, volume: Obj | None) -> None:
        if volume is None:
            await self._writes.set_claim_phase(claim, PENDING)
        elif claim_ref(volume) is not None and not is_for(volume, claim):
            self._recorder.event(
                claim, WARNING, "FailedBinding", f'volume "{name}" already bound to a different claim.'
            )
            await self._writes.set_claim_phase(claim, PENDING)
        elif claim_ref(volume) is None and (wrong := mismatch(volume, claim)) is not None:
            message = f'Cannot bind to requested volume "{name}": {wrong}'
            self._recorder.event(claim, WARNING, "VolumeMismatch", message)
            await self._writes.set_claim_phase(claim, PENDING)
        else:
            await self._writes.bind(volume, claim)

    async def _find_volume(self, claim: Obj) -> None:
        claim = await self._with_default_class(claim)
        storage_class = self._classes.get(Key("", class_of(claim) or ""))
        node = annotations_of(claim).get(SELECTED_NODE)
        waits = waits_for_consumer(storage_class) and not node
        reserved = self._volumes.by_index(BY_CLAIM, str(key_of(claim)))
        candidates = reserved + self._volumes.by_index(BY_CLASS, class_of(claim) or "")
        where = self._nodes.get(Key("", node)) if node else None
        volume = best_match(claim, candidates, node=where, reserved_only=waits)
        if volume is not None:
            await self._writes.bind(volume, claim)
            return
        if waits:
            self._recorder.event(claim, NORMAL, "WaitForFirstConsumer", _NO_CONSUMER)
        elif class_of(claim):
            claim = await self._request_provisioning(claim, storage_class)
        else:
            self._recorder.event(claim, NORMAL, "FailedBinding", _NOTHING_THERE)
        await self._writes.set_claim_phase(claim, PENDING)

    async def _with_default_class(self, claim: Obj) -> Obj:
        """Return the claim with the default class, if it was made before there was one."""
        default = newest_default(self._classes.list(), IS_DEFAULT, BETA_IS_DEFAULT) if class_of(claim) is None else None
        if default is None:
            return claim
        wanted = {**claim, "spec": {**spec_of(claim), "storageClassName": default["metadata"]["name"]}}
        return (await patch_if_changed(self._client, CLAIMS, claim, wanted, locked=True)).object

    async def _request_provisioning(self, claim: Obj, storage_class: Obj | None) -> Obj:
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._recorder.event(claim, WARNING, "ProvisioningFailed", message)
            return claim
        provisioner = storage_class["provisioner"]
        if provisioner.startswith(_BUILT_IN):
            message = f"no volume plugin matched name: {provisioner}"
            self._recorder.event(claim, WARNING, "ProvisioningFailed", message)
            return claim
        marks: dict[str, str | None] = {BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
        patched = await patch_if_changed(self._client, CLAIMS, claim, annotated(claim, marks), locked=True)
        if patched.outcome == "updated":
            self._recorder.event(claim, NORMAL, "ExternalProvisioning", _waiting_for(provisioner))
        return patched.object

    # volumes

    async def _sync_volume(self, volume: Obj) -> None:
        reference, key = claim_ref(volume), claim_key(volume)
        if reference is None or key is None or not reference.get("uid"):
            await self._writes.set_volume_phase(volume, AVAILABLE)
            return
        claim = self._claims.get(key)
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            await self._release(volume)
        elif spec_of(claim).get("volumeName") == volume["metadata"]["name"]:
            await self._writes.set_volume_phase(volume, BOUND)
        elif spec_of(claim).get("volumeName"):
            await self._unbind(volume)

    async def _unbind(self, volume: Obj) -> None:
        """Release a volume whose claim has another one: delete it if it was made for that claim, else free it."""
        if PROVISIONED_BY in annotations_of(volume) and spec_of(volume)["persistentVolumeReclaimPolicy"] == "Delete":
            await self._release(volume)
        else:
            await self._writes.unbind(volume)

    async def _release(self, volume: Obj) -> None:
        if phase_of(volume) not in (RELEASED, FAILED):
            volume = await self._writes.set_volume_phase(volume, RELEASED)
        policy = spec_of(volume)["persistentVolumeReclaimPolicy"]
        if policy == "Delete" and not is_deleting(volume):
            await delete_if_exists(self._client, VOLUMES, volume["metadata"]["name"], uid=volume["metadata"]["uid"])
        elif policy == "Recycle" and phase_of(volume) != FAILED:
            message = "No recycler plugin found for the volume!"
            await self._writes.set_volume_phase(volume, FAILED, "VolumeFailedRecycle", message)
            self._recorder.event(volume, WARNING, "VolumeFailedRecycle", message)
