"""How clusters look to `kubectl get`: ten columns, five of them wide."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds.tables.columns import AGE, NAME, NONE, Column, Printer, dig, field, of
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj


def _ready(cluster: Obj) -> str:
    condition = meta.get_condition(dig(cluster, "status", "conditions"), "Ready")
    return "Unknown" if condition is None else str(condition.get("status") or "")


def _or_none(name: str) -> Callable[[Obj], str]:
    return lambda cluster: dig(cluster, "spec", name) or NONE


def _zones(cluster: Obj) -> str:
    return ",".join(dig(cluster, "spec", "zones") or ()) or NONE


CLUSTERS = Printer(
    [
        NAME,
        Column("Version", field("status.kubernetesVersion"), "The version of Kubernetes that the cluster runs"),
        Column("Mode", field("spec.syncMode"), "Who brings resources to the cluster"),
        Column("Ready", of(_ready), "Whether the cluster is reached and works"),
        AGE,
        Column("Zones", of(_zones), "The zones the cluster is in", wide=True),
        Column("Region", of(_or_none("region")), "The region the cluster is in", wide=True),
        Column("Provider", of(_or_none("provider")), "Who runs the machines of the cluster", wide=True),
        Column("API-Endpoint", field("spec.apiEndpoint"), "Where the cluster's API server is", wide=True),
        Column("Proxy-URL", of(_or_none("proxyURL")), "The proxy in front of the cluster", wide=True),
    ]
)
