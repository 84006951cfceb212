"""Requests of resources in the units they are counted in, and which of them count on a node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import orjson

from karmada.estimator.amounts import amount, quantity
from karmada.kube.objects import names
from karmada.kube.objects.types import Obj

_BASIC = ("cpu", "memory", "ephemeral-storage")
_NATIVE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

Demand = Mapping[str, int]
"""The need of one replica by resource; nothing that is not positive."""


def demand_of(requirements: Obj | None) -> Demand:
    """Return what one replica needs of each resource."""
    request = (requirements or {}).get("resourceRequest")
    return read_demand(orjson.dumps(request)) if request else {}


def on_node(demand: Demand) -> Demand:
    """Return what of a demand a node has to have."""
    return {name: need for name, need in demand.items() if counts_on_node(name)}


def demand_key(requirements: Obj | None) -> bytes | None:
    """Equal for equal demands; None for no requirements at all, which is another thing than empty ones."""
    return None if requirements is None else orjson.dumps(requirements.get("resourceRequest"))


@lru_cache(maxsize=4096)
def read_demand(request: bytes) -> Demand:
    parsed = {name: quantity(value) for name, value in (orjson.loads(request) or {}).items()}
    return {name: amount(name, value) for name, value in parsed.items() if value.value() > 0}


@lru_cache(maxsize=1024)
def counts_on_node(name: str) -> bool:
    """Return whether a node has to have it: basic resources, and those of devices, volumes and huge pages."""
    return (
        name in _BASIC or name.startswith(("hugepages-", "attachable-volumes-")) or _NATIVE in name or is_extended(name)
    )


def is_extended(name: str) -> bool:
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not names.qualified_name(_QUOTA_PREFIX + name)
