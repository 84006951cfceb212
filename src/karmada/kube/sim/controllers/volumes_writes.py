"""The writes that bind a claim and a volume, each of them idempotent: the next reconcile completes an interrupted one.

The order is what makes it safe: first the volume names the claim, which reserves it; then the claim names the volume.
"""

from __future__ import annotations

from karmada.kube.objects.gvrs import CLAIMS, VOLUMES
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.writes import patch_if_changed, set_status
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.volumes_model import (
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    YES,
    claim_ref,
    phase_of,
    reference_to_claim,
    spec_of,
)


def annotated(obj: Obj, marks: dict[str, str | None]) -> Obj:
    """Return a copy of the object with these annotations; None takes one away."""
    kept = {**annotations_of(obj), **marks}
    kept = {key: value for key, value in kept.items() if value is not None}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


class VolumeWrites:
    def __init__(self, context: Context, claims: Informer, volumes: Informer) -> None:
        self._context = context
        self._client = context.client()
        self._claims = claims
        self._volumes = volumes

    async def bind(self, volume: Obj, claim: Obj) -> None:
        volume = await self._reserve(volume, claim)
        volume = await self.set_volume_phase(volume, BOUND)
        await self._context.until_seen(self._volumes, [volume])
        claim = await self._name(claim, volume)
        claim = await self._settle(claim, volume)
        await self._context.until_seen(self._claims, [claim])

    async def _reserve(self, volume: Obj, claim: Obj) -> Obj:
        reference = claim_ref(volume)
        if reference is not None and reference.get("uid") == claim["metadata"]["uid"]:
            return volume
        wanted = {**volume, "spec": {**spec_of(volume), "claimRef": reference_to_claim(claim)}}
        if reference is None:
            wanted = annotated(wanted, {BOUND_BY_CONTROLLER: YES})
        return (await patch_if_changed(self._client, VOLUMES, volume, wanted, locked=True)).object

    async def _name(self, claim: Obj, volume: Obj) -> Obj:
        name = volume["metadata"]["name"]
        marks: dict[str, str | None] = {BIND_COMPLETED: YES}
        wanted = claim
        if spec_of(claim).get("volumeName") != name:
            wanted = {**claim, "spec": {**spec_of(claim), "volumeName": name}}
            marks[BOUND_BY_CONTROLLER] = YES
        return (await patch_if_changed(self._client, CLAIMS, claim, annotated(wanted, marks), locked=True)).object

    async def _settle(self, claim: Obj, volume: Obj) -> Obj:
        """Return the claim as bound with what its volume offers.

        Later its capacity belongs to the expansion controller.
        """
        if phase_of(claim) == BOUND:
            return claim
        spec = spec_of(volume)
        status = {
            **(claim.get("status") or {}),
            "phase": BOUND,
            "accessModes": spec.get("accessModes") or [],
            "capacity": spec.get("capacity") or {},
        }
        return (await set_status(self._client, CLAIMS, claim, status)).object

    async def set_volume_phase(self, volume: Obj, phase: str, reason: str = "", message: str = "") -> Obj:
        if phase_of(volume) == phase and volume.get("status"):
            return volume
        status: Obj = {"phase": phase}
        if reason:
            status |= {"reason": reason, "message": message}
        return (await set_status(self._client, VOLUMES, volume, status)).object

    async def set_claim_phase(self, claim: Obj, phase: str) -> Obj:
        """Set the phase of a claim that is not bound: nothing else is known of it."""
        if phase_of(claim) == phase and claim.get("status"):
            return claim
        return (await set_status(self._client, CLAIMS, claim, {"phase": phase})).object

    async def unbind(self, volume: Obj) -> None:
        """Give up a reservation of ours; one that the volume's maker made stays, without the claim's uid."""
        if BOUND_BY_CONTROLLER in annotations_of(volume):
            spec = {key: value for key, value in spec_of(volume).items() if key != "claimRef"}
            wanted = annotated({**volume, "spec": spec}, {BOUND_BY_CONTROLLER: None})
        else:
            kept = {k: v for k, v in (claim_ref(volume) or {}).items() if k not in ("uid", "resourceVersion")}
            wanted = {**volume, "spec": {**spec_of(volume), "claimRef": kept}}
        written = (await patch_if_changed(self._client, VOLUMES, volume, wanted, locked=True)).object
        await self._context.until_seen(self._volumes, [written])
