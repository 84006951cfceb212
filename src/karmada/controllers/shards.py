"""How the keys of controllers are divided among replicas that share the work (see kube/runtime/sharing).

Everything that works on one member is one shard, so that a replica connects to, and watches, only the members it has.
What works on templates and bindings is divided by namespace; what is in no namespace is one shard. Controllers that say
nothing have all their keys on one replica, chosen by the controller's name.
"""

from __future__ import annotations

from karmada.api.well_known import cluster_of_namespace
from karmada.kube.runtime.keys import Key


def of_cluster(name: str) -> str:
    return f"cluster/{name}"


def by_cluster(key: Key) -> str:
    """For keys of Clusters."""
    return of_cluster(key.name)


def by_execution_namespace(key: Key) -> str:
    """For keys of Works."""
    return of_cluster(cluster_of_namespace(key.namespace) or "")


def by_cluster_first(key: Key) -> str:
    """For keys that have the name of a cluster in place of a namespace."""
    return of_cluster(key.namespace)
