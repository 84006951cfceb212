"""Storage in use is not deleted: finalizers hold a claim while a pod uses it, and a volume while it is bound.

A pod uses its claims from the moment it has a node until it has ended; one that waits for a node will not be started
with a claim that is going away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.kube.objects.meta import finalizers, is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.predicates import Predicate
from karmada.kube.runtime.writes import add_finalizer, remove_finalizer
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import PODS
from karmada.kube.sim.controllers.podstate import is_terminal, node_name
from karmada.kube.sim.controllers.volumes_model import BOUND, CLAIMS, VOLUMES, phase_of

CLAIM_FINALIZER, VOLUME_FINALIZER = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
BY_MOUNTED_CLAIM = "mounted claim"


def claims_of(pod: Obj) -> Iterator[Key]:
    metadata = pod["metadata"]
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield Key(metadata["namespace"], volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            yield Key(metadata["namespace"], f"{metadata['name']}-{volume['name']}")


def index_by_mounted_claim(pod: Obj) -> Iterable[str]:
    return [str(key) for key in claims_of(pod)]


def holds_claims(pod: Obj) -> bool:
    return bool(node_name(pod)) and not is_terminal(pod)


def _releases_claims(old: Obj | None, new: Obj | None) -> bool:
    return old is not None and holds_claims(old) and (new is None or not holds_claims(new))


def _needs_finalizer_change(finalizer: str) -> Predicate:
    """An object that is being deleted, or that lacks the finalizer."""

    def concerns(_old: Obj | None, new: Obj | None) -> bool:
        return new is not None and is_deleting(new) == (finalizer in finalizers(new))

    return concerns


class VolumeProtection(Reconciler):
    """Claims and volumes alike; a volume's key has no namespace."""

    name = "volume-protection"

    def __init__(self, context: Context) -> None:
        self._client = context.client()
        self._claims = context.informers.of(CLAIMS)
        self._volumes = context.informers.of(VOLUMES)
        self._pods = context.informers.of(PODS, indexes={BY_MOUNTED_CLAIM: index_by_mounted_claim})
        self.watches = (
            Watch(CLAIMS, when=_needs_finalizer_change(CLAIM_FINALIZER)),
            Watch(VOLUMES, when=_needs_finalizer_change(VOLUME_FINALIZER)),
            Watch(PODS, when=_releases_claims, map_to=claims_of),
        )

    async def reconcile(self, key: Key) -> Result:
        if key.namespace:
            resource, finalizer, obj = CLAIMS, CLAIM_FINALIZER, self._claims.get(key)
        else:
            resource, finalizer, obj = VOLUMES, VOLUME_FINALIZER, self._volumes.get(key)
        if obj is None:
            return Done
        if not is_deleting(obj):
            await add_finalizer(self._client, resource, obj, finalizer)
        elif not (self._mounted(key) if key.namespace else phase_of(obj) == BOUND):
            await remove_finalizer(self._client, resource, obj, finalizer)
        return Done

    def _mounted(self, claim: Key) -> bool:
        return any(map(holds_claims, self._pods.by_index(BY_MOUNTED_CLAIM, str(claim))))
