"""What is cached: which resources of which clusters, by all ResourceRegistries together.

A pure function of the registries, the clusters and the kinds that selectors name. A resource of a cluster is cached
once, for all registries that select it: with the union of their namespaces, or all of them where one registry wants
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from karmada.api.matching import api_enablement, cluster_matches
from karmada.controllers.cluster_state import is_ready
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, GVR, gvk_of
from karmada.kube.objects.types import Obj
from karmada.members.access import secret_key

Namespaces: TypeAlias = frozenset[str]
NOT_READY: Final = "it is not Ready"
ALL: Final[Namespaces] = frozenset({""})
"""Every namespace; also those of resources that live in none."""


class Upstream(NamedTuple):
    """The limits of a read of a member: one namespace, or "" for all but those that are left out."""

    namespace: str
    filtered: bool


@dataclass(frozen=True, slots=True)
class Coverage:
    """The clusters that one registry caches, and why others that it selects are left out."""

    cached: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[GVK, ...] = ()
    """Kinds that neither the control plane nor a cluster serves, or that cannot be watched."""


@dataclass(frozen=True, slots=True)
class Wanted:
    kinds: Mapping[GVR, Kind] = field(default_factory=dict)
    """Kinds that registries name, whether or not a cluster has them."""
    by_cluster: Mapping[str, Mapping[GVR, Namespaces]] = field(default_factory=dict)
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    """Coverage by the name of the registry."""

    @property
    def registered(self) -> frozenset[GVR]:
        return frozenset(self.kinds)


def what(registries: Iterable[Obj], clusters: Iterable[Obj], kinds: Mapping[GVK, Kind]) -> Wanted:
    """`kinds` has those of all selectors, except for the ones that nobody serves."""
    usable = [(cluster, why_not(cluster)) for cluster in clusters if not meta.is_deleting(cluster)]
    named: dict[GVR, Kind] = {}
    by_cluster: dict[str, dict[GVR, Namespaces]] = {}
    coverage: dict[str, Coverage] = {}
    for registry in registries:
        selected = _selected(registry, kinds)
        named.update((kind.gvr, kind) for kind in selected)
        spec = registry.get("spec") or {}
        matching = [(c, why) for c, why in usable if cluster_matches(spec.get("targetCluster") or {}, c)]
        left_out = {meta.name(cluster): why for cluster, why in matching if why}
        cached = []
        for cluster, why in matching:
            if not why:
                _add(by_cluster.setdefault(meta.name(cluster), {}), cluster, selected)
                cached.append(meta.name(cluster))
        unknown = tuple(gvk for gvk in named_kinds([registry]) if gvk not in kinds)
        coverage[meta.name(registry)] = Coverage(tuple(sorted(cached)), left_out, unknown)
    return Wanted(named, by_cluster, coverage)


def why_not(cluster: Obj) -> str:
    """Why nothing of a cluster is cached; empty for one that can be."""
    if secret_key(cluster) is None:
        return "it has no spec.secretRef, so nothing in it can be read (a cluster in mode Pull may come without one)"
    return "" if is_ready(cluster) else NOT_READY


def named_kinds(registries: Iterable[Obj]) -> list[GVK]:
    """Return the kinds of all selectors, each once."""
    return list(dict.fromkeys(gvk_of(s) for registry in registries for s in _selectors(registry)))


def covers(namespaces: Namespaces, namespace: str) -> bool:
    """Return whether objects of a namespace are cached."""
    return "" in namespaces or namespace in namespaces


def upstream(namespaces: Namespaces) -> Upstream:
    """Return how a member is listed and watched for these: several namespaces are read as all, and filtered."""
    return Upstream(next(iter(namespaces)), False) if len(namespaces) == 1 else Upstream("", True)


def _selectors(registry: Obj) -> Iterable[Obj]:
    return (registry.get("spec") or {}).get("resourceSelectors") or ()


def _selected(registry: Obj, kinds: Mapping[GVK, Kind]) -> dict[Kind, Namespaces]:
    selected: dict[Kind, Namespaces] = {}
    for selector in _selectors(registry):
        kind = kinds.get(gvk_of(selector))
        if kind is not None:
            namespace = (selector.get("namespace") or "") if kind.namespaced else ""
            selected[kind] = _union(selected.get(kind), frozenset({namespace}))
    return selected


def _add(wanted: dict[GVR, Namespaces], cluster: Obj, selected: Mapping[Kind, Namespaces]) -> None:
    for kind, namespaces in selected.items():
        if api_enablement(cluster, kind.gvk) != "APIDisabled":
            wanted[kind.gvr] = _union(wanted.get(kind.gvr), namespaces)


def _union(one: Namespaces | None, other: Namespaces) -> Namespaces:
    both = other if one is None else one | other
    return ALL if "" in both else both
