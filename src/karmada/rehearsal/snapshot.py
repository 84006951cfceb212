"""What a rehearsal begins with: the fleet's present state, read from a control plane.

Everything that decides where resources go is copied as it is: Clusters, policies, bindings with their decisions, and
the templates behind them. What runs in members is not copied; the rehearsal's own controllers put it there again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.config import ReplicaSchedulingPolicy as ClusterReplicaSchedulingPolicy
from karmada.api.policy import (
    ClusterOverridePolicy,
    ClusterPropagationPolicy,
    ClusterTaintPolicy,
    OverridePolicy,
    PropagationPolicy,
    ReplicaSchedulingPolicy,
)
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.types import Obj

NAMESPACES: Final = GVR("", "v1", "namespaces")
DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
POLICIES: Final = (
    PropagationPolicy, ClusterPropagationPolicy, OverridePolicy, ClusterOverridePolicy, ClusterTaintPolicy,
    ReplicaSchedulingPolicy, ClusterReplicaSchedulingPolicy,
)  # fmt: skip
BINDINGS: Final = (ResourceBinding, ClusterResourceBinding)
Progress = Callable[[str], None]


@dataclass(slots=True)
class Snapshot:
    clusters: list[Obj]
    bindings: list[Obj] = field(default_factory=list)
    objects: list[tuple[GroupResource, Obj]] = field(default_factory=list)
    """Everything else and the bindings, in the order in which a control plane would get them."""
    notes: list[str] = field(default_factory=list)
    """What could not be copied."""


async def take(client: Client, progress: Progress = lambda _text: None) -> Snapshot:
    progress("reading clusters, policies and bindings")
    snapshot = Snapshot((await client.list_all(Cluster.gvr)).items)
    for kind in BINDINGS:
        snapshot.bindings += [_unreported(_typed(obj, kind.gvk)) for obj in (await client.list_all(kind.gvr)).items]
    await _copy(client, snapshot, GVK("", "v1", "Namespace"), NAMESPACES)
    for policy in POLICIES:
        await _copy(client, snapshot, policy.gvk, policy.gvr)
    await _copy_templates(client, snapshot, progress)
    by_kind = {kind.gvk.kind: kind.gvr.group_resource for kind in BINDINGS}
    snapshot.objects += [(by_kind[binding["kind"]], binding) for binding in snapshot.bindings]
    return snapshot


async def _copy_templates(client: Client, snapshot: Snapshot, progress: Progress) -> None:
    kinds: dict[GVK, set[tuple[str, str]]] = {}
    for binding in snapshot.bindings:
        resource = binding["spec"]["resource"]
        gvk = GVK.parse(resource["apiVersion"], resource["kind"])
        kinds.setdefault(gvk, set()).add((resource.get("namespace") or "", resource["name"]))
    await _copy_definitions(client, snapshot, kinds)
    for gvk, wanted in kinds.items():
        progress(f"reading {len(wanted)} of kind {gvk.kind}")
        try:
            gvr = await client.resource(gvk)
        except NoMatch:
            snapshot.notes.append(f"{gvk.kind} ({gvk.api_version}) is not served any longer")
            continue
        await _copy(client, snapshot, gvk, gvr, wanted)


async def _copy_definitions(client: Client, snapshot: Snapshot, kinds: Iterable[GVK]) -> None:
    """Those of the kinds that are propagated."""
    wanted = {(gvk.group, gvk.kind) for gvk in kinds}
    for definition in (await client.list_all(DEFINITIONS)).items:
        spec = definition["spec"]
        if (spec["group"], spec["names"]["kind"]) in wanted:
            named = _typed(definition, GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
            snapshot.objects.append((DEFINITIONS.group_resource, named))


async def _copy(
    client: Client, snapshot: Snapshot, gvk: GVK, gvr: GVR, wanted: set[tuple[str, str]] | None = None
) -> None:
    try:
        found = (await client.list_all(gvr)).items
    except ApiError as error:
        snapshot.notes.append(f"{gvk.kind}: {error.message}")
        return
    for obj in found:
        metadata = obj["metadata"]
        if wanted is None or (metadata.get("namespace") or "", metadata["name"]) in wanted:
            snapshot.objects.append((gvr.group_resource, _typed(obj, gvk)))


def _unreported(binding: Obj) -> Obj:
    """Without what real members reported: in a rehearsal others report."""
    status = {name: value for name, value in (binding.get("status") or {}).items() if name != "aggregatedStatus"}
    return {**binding, "status": status}


def _typed(obj: Obj, gvk: GVK) -> Obj:
    """Items of lists do not always say what they are."""
    return {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
