"""Storage in use is not deleted: a finalizer holds it while something refers to it.

A claim is held by the pods that use it, from the moment they have a node until they have ended (one that waits for a
node will not be started with a claim that is going away); a volume is held while it is bound; a class of attributes by
the claims and volumes that have it, had it last or are to get it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLAIMS, PODS, VOLUMES
from karmada.kube.objects.meta import finalizers, is_deleting
from karmada.kube.objects.podstate import is_terminal, node_name
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import Predicate
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import add_finalizer, remove_finalizer
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.volumes_model import ATTRIBUTES_CLASSES, BOUND, phase_of, spec_of

CLAIM_FINALIZER, VOLUME_FINALIZER = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
CLASS_FINALIZER = "kubernetes.io/vac-protection"
BY_MOUNTED_CLAIM, BY_ATTRIBUTES_CLASS = "mounted claim", "attributes class"
CLASSES_SINCE = 34
"""The minor version from which on classes of attributes are served."""


class Protection(Reconciler):
    """Gives a finalizer to every object of a resource, and takes it from a deleted one that is not in use."""

    def __init__(
        self,
        context: Context,
        name: str,
        resource: GVR,
        finalizer: str,
        in_use: Callable[[Obj], bool],
        *releases: Watch,
    ) -> None:
        self.name = name
        self._client = context.client()
        self._resource, self._finalizer, self._in_use = resource, finalizer, in_use
        self._objects = context.informers.of(resource)
        self.watches = (Watch(resource, when=_needs_finalizer_change(finalizer)), *releases)

    async def reconcile(self, key: Key) -> Result:
        obj = self._objects.get(key)
        if obj is None:
            return Done
        if not is_deleting(obj):
            await add_finalizer(self._client, self._resource, obj, self._finalizer)
        elif not self._in_use(obj):
            await remove_finalizer(self._client, self._resource, obj, self._finalizer)
        return Done


def _needs_finalizer_change(finalizer: str) -> Predicate:
    """Return whether an object is being deleted, or lacks the finalizer."""

    def concerns(_old: Obj | None, new: Obj | None) -> bool:
        return new is not None and is_deleting(new) == (finalizer in finalizers(new))

    return concerns


def protections(context: Context) -> list[Reconciler]:
    found: list[Reconciler] = [claim_protection(context), volume_protection(context)]
    return [*found, class_protection(context)] if context.profile.minor >= CLASSES_SINCE else found


# --- claims, held by pods


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


def claim_protection(context: Context) -> Protection:
    pods = context.informers.of(PODS, indexes={BY_MOUNTED_CLAIM: index_by_mounted_claim})

    def mounted(claim: Obj) -> bool:
        return any(map(holds_claims, pods.by_index(BY_MOUNTED_CLAIM, str(key_of(claim)))))

    released = Watch(PODS, when=_releases_claims, map_to=claims_of)
    return Protection(context, "claim-protection", CLAIMS, CLAIM_FINALIZER, mounted, released)


def volume_protection(context: Context) -> Protection:
    def bound(volume: Obj) -> bool:
        return phase_of(volume) == BOUND

    return Protection(context, "volume-protection", VOLUMES, VOLUME_FINALIZER, bound)


# --- classes of attributes, held by claims and volumes


def attributes_classes_of(holder: Obj) -> set[str]:
    """Return the attributes classes in use: of a claim the wanted, present and next one; of a volume its own."""
    status = holder.get("status") or {}
    modify = status.get("modifyVolumeStatus") or {}
    names = (
        spec_of(holder).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modify.get("targetVolumeAttributesClassName"),
    )
    return {found for found in names if found}


def _releases_classes(old: Obj | None, new: Obj | None) -> bool:
    return old is not None and bool(attributes_classes_of(old) - (attributes_classes_of(new) if new else set()))


def _class_keys(holder: Obj) -> Iterator[Key]:
    for found in attributes_classes_of(holder):
        yield Key("", found)


def class_protection(context: Context) -> Protection:
    holders = [
        context.informers.of(resource, indexes={BY_ATTRIBUTES_CLASS: attributes_classes_of})
        for resource in (CLAIMS, VOLUMES)
    ]

    def referred(found: Obj) -> bool:
        return any(informer.by_index(BY_ATTRIBUTES_CLASS, found["metadata"]["name"]) for informer in holders)

    released = [Watch(resource, when=_releases_classes, map_to=_class_keys) for resource in (CLAIMS, VOLUMES)]
    return Protection(context, "class-protection", ATTRIBUTES_CLASSES, CLASS_FINALIZER, referred, *released)
