"""Works that carry the ResourceQuota of a FederatedResourceQuota to a cluster, found by their labels."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key


def quotas_of(work: Obj) -> Iterable[Key]:
    """Return the quota that a Work belongs to, if it belongs to one."""
    labels = meta.labels(work)
    name = labels.get(well_known.QUOTA_NAME)
    namespace = labels.get(well_known.QUOTA_NAMESPACE) if name else None
    return (Key(namespace, name),) if namespace and name else ()


def cluster_of(work: Obj) -> str:
    return well_known.cluster_of_namespace(meta.namespace(work)) or ""
