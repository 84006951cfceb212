"""The start of a rehearsal: a world of its own, copied from that of a control plane.

Everything that decides where resources go is copied as it is: Clusters, policies, bindings with their decisions, the
templates behind them, definitions of their kinds and how these are interpreted. What runs in members is not copied; the
rehearsal's own controllers put it there again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.config import ReplicaSchedulingPolicy as ClusterReplicaSchedulingPolicy
from karmada.api.config import ResourceInterpreterCustomization
from karmada.api.policy import (
    ClusterOverridePolicy,
    ClusterPropagationPolicy,
    ClusterTaintPolicy,
    OverridePolicy,
    PropagationPolicy,
    ReplicaSchedulingPolicy,
)
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CRDS, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.prediction.world import World

RULES: Final = (
    PropagationPolicy, ClusterPropagationPolicy, OverridePolicy, ClusterOverridePolicy, ClusterTaintPolicy,
    ReplicaSchedulingPolicy, ClusterReplicaSchedulingPolicy,
)  # fmt: skip
BINDINGS: Final = (ResourceBinding, ClusterResourceBinding)
_DEFINITION: Final = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
Progress = Callable[[str], None]


async def copy_of(world: World, progress: Progress = lambda _text: None) -> World:
    """Return a world without a control plane beneath; its notes say what could not be copied."""
    progress("reading clusters, policies and bindings")
    copy = World()
    copy.gates, copy.settings = world.gates, world.settings
    for cluster in await world.clusters():
        copy.put(Cluster.gvr, cluster)
    bindings = [
        (kind.gvr, _unreported(_typed(obj, kind.gvk))) for kind in BINDINGS for obj in await world.objects(kind.gvr)
    ]
    await _copy(world, copy, GVK("", "v1", "Namespace"), NAMESPACES)
    for rule in RULES:
        await _copy(world, copy, rule.gvk, rule.gvr)
    await _copy_interpretation(world, copy)
    await _copy_templates(world, copy, [binding["spec"]["resource"] for _, binding in bindings], progress)
    for kind, binding in bindings:
        copy.put(kind, binding)
    return copy


async def _copy_interpretation(world: World, copy: World) -> None:
    """Copy what is customized, without the health of custom resources: nobody works on those in a rehearsal."""
    kind = ResourceInterpreterCustomization
    custom = {spec["group"] for spec in (one["spec"] for one in await world.objects(CRDS))}
    await _copy(world, copy, kind.gvk, kind.gvr)
    for one in copy.given(kind.gvr):
        rules = one["spec"]["customizations"]
        if GVK.parse(one["spec"]["target"]["apiVersion"], "").group in custom:
            rules = {field: rule for field, rule in rules.items() if field != "healthInterpretation"}
        if rules:
            copy.put(kind.gvr, {**one, "spec": {**one["spec"], "customizations": rules}})


def bindings_of(world: World) -> list[Obj]:
    return [binding for kind in BINDINGS for binding in world.given(kind.gvr)]


async def _copy_templates(world: World, copy: World, resources: Iterable[Obj], progress: Progress) -> None:
    kinds: dict[GVK, set[tuple[str, str]]] = {}
    for resource in resources:
        gvk = GVK.parse(resource["apiVersion"], resource["kind"])
        kinds.setdefault(gvk, set()).add((resource.get("namespace") or "", resource["name"]))
    await _copy_definitions(world, copy, kinds)
    for gvk, wanted in kinds.items():
        progress(f"reading {len(wanted)} of kind {gvk.kind}")
        try:
            gvr = (await world.mapping(gvk)).gvr
        except NoMatch:
            copy.notes.append(f"{gvk.kind} ({gvk.api_version}) is not served any longer")
            continue
        await _copy(world, copy, gvk, gvr, wanted)


async def _copy_definitions(world: World, copy: World, kinds: Iterable[GVK]) -> None:
    """Copy those of the kinds that are propagated."""
    wanted = {(gvk.group, gvk.kind) for gvk in kinds}
    for definition in await world.objects(CRDS):
        if _defined(definition) in wanted:
            copy.put(CRDS, _typed(definition, _DEFINITION))


def _defined(definition: Obj) -> tuple[str, str]:
    return definition["spec"]["group"], definition["spec"]["names"]["kind"]


async def _copy(world: World, copy: World, gvk: GVK, gvr: GVR, wanted: set[tuple[str, str]] | None = None) -> None:
    try:
        found = await world.objects(gvr)
    except ApiError as error:
        copy.notes.append(f"{gvk.kind}: {error.message}")
        return
    for obj in found:
        if wanted is None or meta.key(obj) in wanted:
            copy.put(gvr, _typed(obj, gvk))


def _unreported(binding: Obj) -> Obj:
    """Return a binding without what real members reported: in a rehearsal others report."""
    status = {name: value for name, value in (binding.get("status") or {}).items() if name != "aggregatedStatus"}
    return {**binding, "status": status}


def _typed(obj: Obj, gvk: GVK) -> Obj:
    """Return an item of a list, which does not always say what it is, with its kind."""
    return {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}


def definitions_in(world: World, cluster: Obj) -> list[Obj]:
    """Return the definitions that a cluster has by itself: it serves their kinds, and they are not propagated to it."""
    enabled = (cluster.get("status") or {}).get("apiEnablements") or ()
    served = {
        (entry["groupVersion"].partition("/")[0], one["kind"])
        for entry in enabled
        for one in entry.get("resources") or ()
    }
    propagated = {
        binding["spec"]["resource"]["name"]
        for binding in world.given(ClusterResourceBinding.gvr)
        if binding["spec"]["resource"]["kind"] == _DEFINITION.kind
        and any(target["name"] == meta.name(cluster) for target in binding["spec"].get("clusters") or ())
    }
    return [
        _bare(definition)
        for definition in world.given(CRDS)
        if _defined(definition) in served and meta.name(definition) not in propagated
    ]


def _bare(definition: Obj) -> Obj:
    """Return a definition as it is created anew; a webhook that converts objects is not there."""
    spec = {field: value for field, value in definition["spec"].items() if field != "conversion"}
    head = {"apiVersion": _DEFINITION.api_version, "kind": _DEFINITION.kind}
    return {**head, "metadata": {"name": meta.name(definition)}, "spec": spec}
