"""What controllers read from a Cluster: its mode, and whether it is ready."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key


def is_push(cluster: Obj) -> bool:
    """Return whether a namespace is one that the control plane works in."""
    return (cluster.get("spec") or {}).get("syncMode") == "Push"


def is_pull(cluster: Obj) -> bool:
    """Return whether the cluster's agent applies its Works."""
    return (cluster.get("spec") or {}).get("syncMode") == "Pull"


def ready_condition(cluster: Obj) -> Obj | None:
    return meta.get_condition((cluster.get("status") or {}).get("conditions"), "Ready")


def is_ready(cluster: Obj) -> bool:
    return meta.has_condition((cluster.get("status") or {}).get("conditions"), "Ready")


def cluster_of_execution_namespace(namespace: Obj) -> Iterable[Key]:
    """For a Watch of namespaces: the Cluster whose Works are in it."""
    name = well_known.cluster_of_namespace(namespace["metadata"]["name"])
    return () if name is None else (Key("", name),)
