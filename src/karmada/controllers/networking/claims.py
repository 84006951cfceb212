"""Claiming a Service for a MultiClusterService: policies leave it alone, and its binding is for these clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from karmada.api import well_known
from karmada.api.work import ResourceBinding
from karmada.controllers.detector.bindings import OtherOwner, resource_of
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import get_if_exists

_CLAIMANT: Final = "MultiClusterService"
_POLICY_LABELS: Final = (well_known.POLICY_ID, well_known.CLUSTER_POLICY_ID)
_POLICY_ANNOTATIONS: Final = (well_known.POLICY_NAME, well_known.POLICY_NAMESPACE, well_known.CLUSTER_POLICY_NAME)
_NAMES: Final = (well_known.MULTICLUSTER_SERVICE_NAME, well_known.MULTICLUSTER_SERVICE_NAMESPACE)
_OTHER: Final = (
    "failed to update binding due to different owner reference UID, will try again later after binding is garbage "
    "collected"
)


Change: TypeAlias = Callable[[Obj | None], Obj]
"""A function from an object as it is to what it should be."""


class Claims:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def claim(self, claimant: Obj, clusters: Sequence[str]) -> bool:
        """Return whether anything was written. NotFound when there is no such Service."""
        key = Key(meta.namespace(claimant), meta.name(claimant))
        service, claimed = await self._write(SERVICES, key, lambda current: _claimed(current, claimant))
        if service is None:
            raise NotFound(f'Service "{key.name}" not found')
        binding = Key(key.namespace, well_known.binding_name("Service", key.name))

        def change(current: Obj | None) -> Obj:
            return _bound(current, binding, service, claimant, clusters)

        _, bound = await self._write(ResourceBinding.gvr, binding, change, create=True)
        return claimed or bound

    async def release(self, claimant: Obj) -> None:
        """Release a Service; it stays, with what clusters have of it."""
        key = Key(meta.namespace(claimant), meta.name(claimant))
        await self._write(SERVICES, key, _released)
        binding = Key(key.namespace, well_known.binding_name("Service", key.name))
        await self._write(ResourceBinding.gvr, binding, _unbound)

    async def _write(self, gvr: GVR, key: Key, change: Change, *, create: bool = False) -> tuple[Obj | None, bool]:
        async def live() -> Obj | None:
            return await get_if_exists(self._client, gvr, key.name, key.namespace)

        async def make(current: Obj | None) -> Obj | None:
            return change(current) if current is not None or create else None

        async def put(current: Obj | None, wanted: Obj) -> Obj:
            return await (self._client.create if current is None else self._client.update)(gvr, wanted)

        written = await converge(make, await live(), put, live)
        return (None, False) if written is None else (written.object, written.outcome != "unchanged")


def _names_of(claimant: Obj) -> dict[str, str]:
    return {
        well_known.MULTICLUSTER_SERVICE_NAME: meta.name(claimant),
        well_known.MULTICLUSTER_SERVICE_NAMESPACE: meta.namespace(claimant),
    }


def _id_of(claimant: Obj) -> dict[str, str]:
    return {well_known.MULTICLUSTER_SERVICE_ID: meta.labels(claimant).get(well_known.MULTICLUSTER_SERVICE_ID, "")}


def _without(found: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {key: value for key, value in found.items() if key not in names}


def _marked(obj: Obj, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "labels": dict(labels), "annotations": dict(annotations)}}


def _claimed(current: Obj | None, claimant: Obj) -> Obj:
    assert current is not None
    labels = {
        **_without(meta.labels(current), _POLICY_LABELS),
        well_known.CLAIMED_BY: _CLAIMANT,
        **_id_of(claimant),
    }
    annotations = {**_without(meta.annotations(current), _POLICY_ANNOTATIONS), **_names_of(claimant)}
    return _marked(current, labels, annotations)


def _released(current: Obj | None) -> Obj:
    """Return the object without the claim; the annotations stay, as a trace."""
    assert current is not None
    labels = _without(meta.labels(current), (well_known.CLAIMED_BY, well_known.MULTICLUSTER_SERVICE_ID))
    return {**current, "metadata": {**current["metadata"], "labels": labels}}


def _bound(current: Obj | None, key: Key, service: Obj, claimant: Obj, clusters: Sequence[str]) -> Obj:
    owner = {
        "apiVersion": service["apiVersion"],
        "kind": service["kind"],
        "name": meta.name(service),
        "uid": meta.uid(service),
    }
    labels = {well_known.BINDING_MANAGED_BY: _CLAIMANT, **_id_of(claimant)}
    ours = {
        "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
        "resource": resource_of(service),
        "conflictResolution": "Overwrite",
    }
    metadata = {"ownerReferences": [owner], "finalizers": [well_known.BINDING_FINALIZER]}
    if current is None:
        named = {"name": key.name, "namespace": key.namespace, "labels": labels, "annotations": _names_of(claimant)}
        head = {"apiVersion": ResourceBinding.gvk.api_version, "kind": ResourceBinding.gvk.kind}
        return {**head, "metadata": {**named, **metadata}, "spec": ours}
    controller = meta.controller_of(current)
    if controller is not None and controller.get("uid") != owner["uid"]:
        raise OtherOwner(_OTHER)
    marked = _marked(current, {**meta.labels(current), **labels}, {**meta.annotations(current), **_names_of(claimant)})
    return {**marked, "metadata": {**marked["metadata"], **metadata}, "spec": {**(current.get("spec") or {}), **ours}}


def _unbound(current: Obj | None) -> Obj:
    assert current is not None
    labels = _without(meta.labels(current), (well_known.BINDING_MANAGED_BY, well_known.MULTICLUSTER_SERVICE_ID))
    return _marked(current, labels, _without(meta.annotations(current), _NAMES))
