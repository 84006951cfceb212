"""Amounts of resources as plain integers: thousandths of a unit, whatever the resource.

What a pod reserves on its node: its containers and sidecars together, or its greediest init container with the
sidecars started before it, whichever is more; plus the overhead of its runtime. Each pod is computed by itself. Pods
of one workload request the same, so equal amounts are one object in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from karmada.estimator.resources import counts_on_node
from karmada.kube.objects.quantity import Format, Quantity
from karmada.kube.objects.types import Obj

Amounts: TypeAlias = tuple[tuple[str, int], ...]
"""(resource, thousandths), sorted by resource, nothing zero."""

CPU, PODS = "cpu", "pods"
ONE = 1000
_NANO_PER_MILLI = 1_000_000
_BYTES = ("memory", "ephemeral-storage", "storage")
_HUGE_PAGES = "hugepages-"


def pod_amounts(spec: Obj) -> Amounts:
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    starting = spec.get("initContainers")
    if starting:
        _start(total, starting)
    overhead = spec.get("overhead")
    if overhead:
        _add(total, _counted(overhead))
    return _shared(tuple(sorted(item for item in total.items() if item[1])))


def _start(total: dict[str, int], containers: Iterable[Obj]) -> None:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        if container.get("restartPolicy") == "Always":
            _add(total, _requests(container))
            _add(sidecars, _requests(container))
            _raise(peak, sidecars.items())
        else:
            now = dict(sidecars)
            _add(now, _requests(container))
            _raise(peak, now.items())
    _raise(total, peak.items())


def _requests(container: Obj) -> Iterable[tuple[str, int]]:
    return _counted((container.get("resources") or {}).get("requests") or {})


def _counted(amounts: Mapping[str, str]) -> Iterable[tuple[str, int]]:
    return [(name, _rounded(name, value)) for name, value in amounts.items() if counts_on_node(name)]


def _rounded(name: str, value: str) -> int:
    """Return requests in thousandths of a CPU and in whole units of everything else, rounded up."""
    quantity = Quantity.parse(value)
    return quantity.milli() if name == CPU else quantity.value() * ONE


def _add(total: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    for name, amount in more:
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], least: Iterable[tuple[str, int]]) -> None:
    for name, amount in least:
        if amount > total.get(name, 0):
            total[name] = amount


@lru_cache(maxsize=4096)
def _shared(amounts: Amounts) -> Amounts:
    return amounts


def node_amounts(allocatable: Mapping[str, str]) -> dict[str, int]:
    """Return every resource of a node, also those it has none of; shared and read-only."""
    return _node_amounts(tuple(sorted(allocatable.items())))


@lru_cache(maxsize=256)
def _node_amounts(allocatable: tuple[tuple[str, str], ...]) -> dict[str, int]:
    return {name: Quantity.parse(value).milli() for name, value in allocatable}


def quantity_text(name: str, thousandths: int) -> str:
    binary = name in _BYTES or name.startswith(_HUGE_PAGES)
    return str(Quantity(thousandths * _NANO_PER_MILLI, Format.BINARY_SI if binary else Format.DECIMAL_SI))


def texts(amounts: Mapping[str, int]) -> dict[str, str]:
    """As a resource list, sorted by name."""
    return {name: quantity_text(name, amounts[name]) for name in sorted(amounts)}
