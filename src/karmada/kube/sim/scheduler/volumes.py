"""Volumes: the nodes that a pod's claims allow, and how its claims are bound before the pod is.

A bound claim ties the pod to the nodes its volume can be reached from. A claim of a class that waits for its first
consumer is bound by the scheduler's choice: to an existing volume that is reachable from the node, which the scheduler
reserves by naming the claim in it, or else to one that the provisioner makes after the node was written into the
claim's annotations. Volumes reserved in the last moments are remembered here, because the informer shows them late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CLAIMS, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.meta import is_deleting, is_owned_by, labels
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.server.admission.storage import class_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.volumes_matching import mismatch, reaches
from karmada.kube.sim.controllers.volumes_model import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    BY_CLAIM,
    BY_CLASS,
    LOST,
    SELECTED_NODE,
    YES,
    claim_ref,
    index_by_claim,
    index_by_class,
    is_for,
    phase_of,
    reference_to_claim,
    requested_size,
    volume_size,
    waits_for_consumer,
)
from karmada.kube.sim.scheduler.messages import (
    NO_VOLUME,
    NO_VOLUME_ZONE,
    UNBOUND_CLAIMS,
    VOLUME_GONE,
    VOLUME_OF_ONE_POD,
    Refusal,
    Texts,
)
from karmada.kube.sim.scheduler.pods import Claim, PodInfo

if TYPE_CHECKING:
    from karmada.kube.sim.scheduler.nodes import Node
    from karmada.kube.sim.scheduler.state import ClusterState

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def is_bound(claim: Obj) -> bool:
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in meta.annotations(claim)


def _as_object(node: Node) -> Obj:
    """Return the part of a node that volume topology needs."""
    return {"metadata": {"name": node.name, "labels": node.labels()}}


class VolumeChoice(NamedTuple):
    """The volumes to reserve and to provision for a pod's claims once its node is chosen."""

    reserve: tuple[tuple[Obj, Obj], ...] = ()
    """Claims with the volumes for them."""
    provision: tuple[Obj, ...] = ()


NO_VOLUMES = VolumeChoice()


class VolumeCheck:
    """The filter for a pod's claims; `choice` is how to bind them on a node that was not refused."""

    def __init__(self, volumes: Volumes, bound: list[Obj], waiting: list[Obj], taken: bool) -> None:
        self._volumes = volumes
        self._bound = [volumes.volume(claim["spec"]["volumeName"]) for claim in bound]
        self._waiting = waiting
        self._taken = taken

    def refuses(self, node: Node) -> Refusal | None:
        if self._taken:
            return VOLUME_OF_ONE_POD
        where = _as_object(node)
        for volume in self._bound:
            if volume is None:
                return VOLUME_GONE
            if not reaches(volume, where):
                return self._volumes.texts.volume_elsewhere
        if self._waiting and self.choice(node) is None:
            return NO_VOLUME
        if any(volume is not None and not _in_zone(volume, labels(where)) for volume in self._bound):
            return NO_VOLUME_ZONE
        return None

    def choice(self, node: Node) -> VolumeChoice | None:
        reserve: list[tuple[Obj, Obj]] = []
        provision: list[Obj] = []
        for claim in sorted(self._waiting, key=requested_size):
            if not self._volumes.may_choose(claim, node):
                return None
            volume = self._volumes.find(claim, node, {volume["metadata"]["name"] for _, volume in reserve})
            if volume is not None:
                reserve.append((claim, volume))
            elif self._volumes.provisionable(claim, node):
                provision.append(claim)
            else:
                return None
        return VolumeChoice(tuple(reserve), tuple(provision))


class Volumes:
    """All claims, volumes and storage classes of the cluster."""

    def __init__(self, context: Context, client: Client, texts: Texts, state: ClusterState) -> None:
        self.texts = texts
        self._client = client
        self._state = state
        self.claims: Informer = context.informers.of(CLAIMS)
        self.volumes: Informer = context.informers.of(
            VOLUMES, indexes={BY_CLASS: index_by_class, BY_CLAIM: index_by_claim}
        )
        self.classes: Informer = context.informers.of(STORAGE_CLASSES)
        self._reserved: dict[str, Key] = {}

    def volume(self, name: str) -> Obj | None:
        return self.volumes.get(Key("", name))

    # for one pod

    def check(self, info: PodInfo) -> VolumeCheck | str:
        """Return a text where no node will do, whichever it is."""
        bound: list[Obj] = []
        waiting: list[Obj] = []
        taken = False
        for wanted in info.claims:
            claim = self.claims.get(Key(info.key.namespace, wanted.name))
            wrong = _wrong_with(claim, wanted, info)
            if wrong or claim is None:
                return wrong
            if is_bound(claim):
                bound.append(claim)
            elif claim["spec"].get("volumeName") or not waits_for_consumer(self._class(claim)):
                return UNBOUND_CLAIMS
            else:
                waiting.append(claim)
            taken = taken or (
                "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())
                and key_of(claim) in self._state.claim_users
            )
        return VolumeCheck(self, bound, waiting, taken)

    def _class(self, claim: Obj) -> Obj | None:
        return self.classes.get(Key("", class_of(claim) or ""))

    def may_choose(self, claim: Obj, node: Node) -> bool:
        """Return whether a claim may get this node: it keeps the one chosen for it, unless that is gone."""
        selected = meta.annotations(claim).get(SELECTED_NODE)
        return not selected or selected == node.name or self._state.nodes.get(selected) is None

    def find(self, claim: Obj, node: Node, taken: set[str]) -> Obj | None:
        """Return the smallest volume that suits the claim and is free; one that was set aside for it comes first."""
        where = _as_object(node)
        reserved = self.volumes.by_index(BY_CLAIM, str(key_of(claim)))
        free = self.volumes.by_index(BY_CLASS, class_of(claim) or "")
        for candidates in (reserved, free):
            fitting = [v for v in candidates if self._may_have(claim, v, taken) and reaches(v, where)]
            if fitting:
                return min(fitting, key=lambda volume: (volume_size(volume), volume["metadata"]["name"]))
        return None

    def _may_have(self, claim: Obj, volume: Obj, taken: Iterable[str]) -> bool:
        name, key = volume["metadata"]["name"], key_of(claim)
        if name in taken or self._reserved.get(name, key) != key or is_deleting(volume):
            return False
        if mismatch(volume, claim) is not None:
            return False
        if claim_ref(volume) is not None:
            return is_for(volume, claim)
        selector = claim["spec"].get("selector")
        return phase_of(volume) == AVAILABLE and (not selector or labels_from(selector).matches(labels(volume)))

    def provisionable(self, claim: Obj, node: Node) -> bool:
        found = self._class(claim)
        if found is None or found.get("provisioner") in (None, "", _NO_PROVISIONER):
            return False
        topologies = found.get("allowedTopologies") or ()
        return not topologies or any(_in_topology(node, topology) for topology in topologies)

    # carrying a choice out

    def reserve(self, choice: VolumeChoice) -> None:
        """At once, so that the next pod does not choose the same volumes."""
        for claim, volume in choice.reserve:
            self._reserved[volume["metadata"]["name"]] = key_of(claim)

    def forget(self, choice: VolumeChoice) -> None:
        for _, volume in choice.reserve:
            self._reserved.pop(volume["metadata"]["name"], None)

    async def carry_out(self, choice: VolumeChoice, node: str) -> dict[Key, int]:
        """Return the claims to be provisioned with their versions, which `given_up` needs."""
        for claim, volume in choice.reserve:
            await self._write_reservation(claim, volume)
        versions = {}
        for claim in choice.provision:
            metadata = claim["metadata"]
            if meta.annotations(claim).get(SELECTED_NODE) != node:
                patch = {"metadata": {"annotations": {SELECTED_NODE: node}, "uid": metadata["uid"]}}
                claim = await self._client.patch(CLAIMS, metadata["name"], metadata["namespace"], patch)
            versions[key_of(claim)] = int(claim["metadata"]["resourceVersion"])
        return versions

    async def _write_reservation(self, claim: Obj, volume: Obj) -> None:
        """Set the claimRef of the volume, with its resourceVersion; the volume controller completes the binding."""
        if (claim_ref(volume) or {}).get("uid") == claim["metadata"]["uid"]:
            return
        patch = {
            "metadata": {
                "annotations": {BOUND_BY_CONTROLLER: YES},
                "resourceVersion": volume["metadata"]["resourceVersion"],
            },
            "spec": {"claimRef": reference_to_claim(claim)},
        }
        await self._client.patch(VOLUMES, volume["metadata"]["name"], "", patch)

    def all_bound(self, info: PodInfo) -> bool:
        found = [self.claims.get(Key(info.key.namespace, claim.name)) for claim in info.claims]
        return all(claim is not None and is_bound(claim) for claim in found)

    def given_up(self, versions: Mapping[Key, int], node: str) -> str:
        """Return the name of a claim that will not be provisioned for this node (any more), if there is one."""
        for key, version in versions.items():
            claim = self.claims.get(key)
            if claim is None:
                return key.name
            seen = int(claim["metadata"]["resourceVersion"]) >= version
            if seen and not is_bound(claim) and meta.annotations(claim).get(SELECTED_NODE) != node:
                return key.name
        return ""


# --- claims, volumes and nodes


def _wrong_with(claim: Obj | None, wanted: Claim, info: PodInfo) -> str:
    if claim is None:
        if wanted.generic:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{wanted.name}"'
        return f'persistentvolumeclaim "{wanted.name}" not found'
    if is_deleting(claim):
        return f'persistentvolumeclaim "{wanted.name}" is being deleted'
    if phase_of(claim) == LOST:
        volume = claim["spec"].get("volumeName") or ""
        return f'persistentvolumeclaim "{wanted.name}" bound to non-existent persistentvolume "{volume}"'
    if wanted.generic and not is_owned_by(claim, {"metadata": {"uid": info.uid}}):
        return (
            f"PVC {claim['metadata']['namespace']}/{wanted.name} was not created for pod {info.key} (pod is not owner)"
        )
    return ""


def _in_zone(volume: Obj, node_labels: Mapping[str, str]) -> bool:
    """Old volumes say in labels where they are; a value may list several zones."""
    for key in _ZONES:
        where = labels(volume).get(key)
        if where is not None and key in node_labels and node_labels[key] not in where.split("__"):
            return False
    return True


def _in_topology(node: Node, topology: Obj) -> bool:
    expressions = topology.get("matchLabelExpressions") or ()
    return all(node.label(e.get("key") or "") in (e.get("values") or ()) for e in expressions)
