"""Indexes and traits that several controllers share: users of an informer must have the same function for an index."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.api.well_known import (
    BINDING_ID,
    CLUSTER_BINDING_ID,
    CLUSTER_POLICY_ID,
    INGRESS_NAME,
    INGRESS_NAMESPACE,
    POLICY_ID,
    QUOTA_NAME,
    QUOTA_NAMESPACE,
)
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.keys import Key

BY_CLUSTER = "cluster"
"""Bindings by the clusters in spec.clusters."""


@ignores_status
def target_clusters(binding: Obj) -> Iterable[str]:
    return [target["name"] for target in (binding.get("spec") or {}).get("clusters") or ()]


WORKS_OF = "made-for"
"""Works by what they were made for: a binding of either kind, by its permanent id, or `of_quota`, or `of_ingress`."""


def of_quota(quota: Key) -> str:
    return f"quota/{quota}"


def of_ingress(ingress: Key) -> str:
    return f"ingress/{ingress}"


@ignores_status
def owners_of_work(work: Obj) -> Iterable[str]:
    labels = work["metadata"].get("labels") or {}
    found = [labels[label] for label in (BINDING_ID, CLUSTER_BINDING_ID) if labels.get(label)]
    if labels.get(QUOTA_NAME) and labels.get(QUOTA_NAMESPACE):
        found.append(of_quota(Key(labels[QUOTA_NAMESPACE], labels[QUOTA_NAME])))
    if labels.get(INGRESS_NAME):
        found.append(of_ingress(Key(labels.get(INGRESS_NAMESPACE, ""), labels[INGRESS_NAME])))
    return found


BY_POLICY = "policy-ids"
"""Bindings, or templates, by the permanent ids of the policies, of either kind, that claim them."""


@ignores_status
def policy_ids(claimed: Obj) -> Iterable[str]:
    labels = meta.labels(claimed)
    return [labels[label] for label in (POLICY_ID, CLUSTER_POLICY_ID) if labels.get(label)]


# what few of many objects have, by which a Watch selects them (see Watch.having): no index


def traits_of_work(work: Obj) -> Iterable[str]:
    """Return the kinds of the manifests of a Work, and the keys of its labels and annotations, and its finalizers."""
    metadata = work["metadata"]
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    kinds = [manifest.get("kind") for manifest in manifests if isinstance(manifest, dict)]
    return [
        *(kind for kind in kinds if isinstance(kind, str)),
        *(metadata.get("labels") or ()),
        *(metadata.get("annotations") or ()),
        *(metadata.get("finalizers") or ()),
    ]


def traits_of_binding(binding: Obj) -> Iterable[str]:
    """Return the fields of its spec that a binding has and that are not empty, and the kind of its template."""
    spec = binding.get("spec") or {}
    kind = (spec.get("resource") or {}).get("kind")
    return [*(field for field, value in spec.items() if value), *([kind] if isinstance(kind, str) else ())]
