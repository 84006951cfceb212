"""Which nodes are simulated: those created for a pool, and those annotated as fake."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import FAKE_NODE_LABEL, FAKE_NODE_VALUE

POOL = "sim.io/pool"
"""Annotation of the nodes made here: the name of their pool."""
KWOK, KWOK_VALUE = "kwok.x-k8s.io/node", "fake"


def pool_of(node: Obj) -> str:
    return str((node["metadata"].get("annotations") or {}).get(POOL) or "")


def is_managed(node: Obj) -> bool:
    metadata = node["metadata"]
    annotations = metadata.get("annotations") or {}
    if POOL in annotations or annotations.get(KWOK) == KWOK_VALUE:
        return True
    return bool((metadata.get("labels") or {}).get(FAKE_NODE_LABEL) == FAKE_NODE_VALUE)


def internal_ip(node: Obj) -> str:
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return ""
