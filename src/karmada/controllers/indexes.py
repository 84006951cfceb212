"""Indexes that several controllers share: an index must be the same function for all users of an informer."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.api.well_known import BINDING_ID, CLUSTER_BINDING_ID, CLUSTER_POLICY_ID, POLICY_ID
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status

BY_CLUSTER = "cluster"
"""Bindings by the clusters in spec.clusters."""


@ignores_status
def target_clusters(binding: Obj) -> Iterable[str]:
    return [target["name"] for target in (binding.get("spec") or {}).get("clusters") or ()]


WORKS_OF_BINDING = "binding"
"""Works by the permanent id of the binding, of either kind, that they were made for."""


@ignores_status
def binding_ids(work: Obj) -> Iterable[str]:
    labels = meta.labels(work)
    return [labels[label] for label in (BINDING_ID, CLUSTER_BINDING_ID) if labels.get(label)]


BY_POLICY = "policy-ids"
"""Bindings, or templates, by the permanent ids of the policies, of either kind, that claim them."""


@ignores_status
def policy_ids(claimed: Obj) -> Iterable[str]:
    labels = meta.labels(claimed)
    return [labels[label] for label in (POLICY_ID, CLUSTER_POLICY_ID) if labels.get(label)]
