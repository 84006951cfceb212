"""What a cluster may be called."""

from __future__ import annotations

from karmada.kube.objects import names

CLUSTER_NAME_LIMIT = 48


def cluster_name_errors(name: str) -> list[str]:
    """What is wrong with the name of a cluster, which becomes part of the names of namespaces and labels."""
    if not name:
        return ["must be not empty"]
    if len(name) > CLUSTER_NAME_LIMIT:
        return [f"must be no more than {CLUSTER_NAME_LIMIT} characters"]
    return names.dns1123_label(name)
