"""Indexes that several controllers share: an index must be the same function wherever an informer is asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.types import Obj

BY_CLUSTER = "cluster"
"""Bindings by the clusters in spec.clusters."""


def target_clusters(binding: Obj) -> Iterable[str]:
    return [target["name"] for target in (binding.get("spec") or {}).get("clusters") or ()]
