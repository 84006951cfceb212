"""Which resources of which clusters go to which OpenSearch: a pure function of registries and clusters.

Readiness does not count: the documents of a cluster that does not respond for a while stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from karmada.api.matching import cluster_matches
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.search.pending import Source
from karmada.search.registries import ALL, Namespaces


class Destination(NamedTuple):
    """An OpenSearch cluster, and the Secret to log in with; its name is empty for none."""

    addresses: tuple[str, ...]
    secret_namespace: str
    secret_name: str

    def __str__(self) -> str:
        """For logs: without what a URL may have before the host."""
        return ",".join(f"{urlsplit(a).scheme}://{urlsplit(a).netloc.rpartition('@')[2]}" for a in self.addresses)


class Route(NamedTuple):
    kind: str
    namespaces: Namespaces


Routes = Mapping[Destination, Mapping[Source, Route]]


def routes(registries: Iterable[Obj], clusters: Iterable[Obj], kinds: Mapping[GVK, Kind]) -> Routes:
    """`kinds` may lack some that are not cached yet."""
    present = [cluster for cluster in clusters if not meta.is_deleting(cluster)]
    found: dict[Destination, dict[Source, Route]] = {}
    for registry in registries:
        spec = registry.get("spec") or {}
        destination = _destination(spec)
        if destination is None:
            continue
        matching = [meta.name(c) for c in present if cluster_matches(spec.get("targetCluster") or {}, c)]
        for selector in spec.get("resourceSelectors") or ():
            kind = kinds.get(gvk_of(selector))
            if kind is not None and matching:
                namespace = (selector.get("namespace") or "") if kind.namespaced else ""
                _add(found.setdefault(destination, {}), kind, namespace, matching)
    return found


def _destination(spec: Obj) -> Destination | None:
    store = (spec.get("backendStore") or {}).get("openSearch") or {}
    addresses = tuple(store.get("addresses") or ())
    secret = store.get("secretRef") or {}
    return Destination(addresses, secret.get("namespace") or "", secret.get("name") or "") if addresses else None


def _add(found: dict[Source, Route], kind: Kind, namespace: str, clusters: Iterable[str]) -> None:
    for cluster in clusters:
        source = Source(cluster, kind.gvr)
        before = found[source].namespaces if source in found else frozenset()
        both = before | {namespace}
        found[source] = Route(kind.gvk.kind, ALL if "" in both else both)
