"""Samples of pods of all clusters, and which pod each belongs to.

An annotation names the cluster of a sample. Where none does (custom metrics, other adapters), the values for a name are
added up and shared evenly by the pods of that name. Only pods that are listed count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from karmada.api import well_known
from karmada.controllers.federated_hpa.pods import PodKey
from karmada.kube.autoscaling.metrics import PodMetric
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

Samples: TypeAlias = Mapping[PodKey, list[Obj]]


def by_pod(items: Iterable[Obj]) -> Samples:
    """PodMetrics by the pod they are of, without their labels and annotations."""
    found: dict[PodKey, list[Obj]] = {}
    for item in items:
        cluster = meta.annotations(item).get(well_known.QUERY_FROM_CLUSTER) or ""
        name = meta.name(item)
        identity = {"name": name, "namespace": meta.namespace(item)}
        found.setdefault(PodKey(cluster, name), []).append({**item, "metadata": identity})
    return found


def by_name(items: Iterable[Obj]) -> Samples:
    """MetricValues by the pod they are of, of an unknown cluster."""
    found: dict[PodKey, list[Obj]] = {}
    for item in items:
        found.setdefault(PodKey("", item["describedObject"]["name"]), []).append(item)
    return found


def attributed(
    pods: Iterable[PodKey], samples: Samples, read: Callable[[Obj], PodMetric | None]
) -> dict[PodKey, PodMetric | None]:
    """Return the sample of each pod that has one; None if it has no usable value."""
    pods = list(pods)
    anywhere = Counter(key.name for key in pods if key not in samples)
    found: dict[PodKey, PodMetric | None] = {}
    for key in pods:
        items, sharing = samples.get(key), 1
        if items is None:
            items, sharing = samples.get(PodKey("", key.name)), anywhere[key.name]
        if items is not None:
            found[key] = _shared(items, read, sharing)
    return found


def _shared(items: list[Obj], read: Callable[[Obj], PodMetric | None], pods: int) -> PodMetric | None:
    values = [value for value in map(read, items) if value is not None]
    if len(values) < len(items):
        return None
    if len(values) == 1 and pods == 1:
        return values[0]
    total = sum(value.value for value in values)
    return PodMetric(total // pods, max(value.timestamp for value in values), values[0].window)
