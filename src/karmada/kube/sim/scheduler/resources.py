"""Amounts of resources as plain integers: cpu in thousandths, bytes, whole units of everything else.

A pod's `Request` and a node's `Usage` are tuples, so that nodes with equal usage can be found by hashing. The two
`*_score` amounts are those that scores look at: a pod without requests still counts as a little there, otherwise
all such pods would land on one node.
"""

from __future__ import annotations

from typing import NamedTuple

from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.sim.scheduler.messages import FIT, Refusal

Extended = tuple[tuple[str, int], ...]
"""Sorted by name; no zeroes."""
_CPU, _MEMORY, _EPHEMERAL, _PODS = "cpu", "memory", "ephemeral-storage", "pods"
_ASSUMED_CPU, _ASSUMED_MEMORY = 100, 200 * 1024 * 1024
_POD_LEVEL = ("cpu", "memory")


class Request(NamedTuple):
    cpu: int
    memory: int
    ephemeral: int
    cpu_score: int
    memory_score: int
    extended: Extended = ()


class Usage(NamedTuple):
    pods: int
    cpu: int
    memory: int
    ephemeral: int
    cpu_score: int
    memory_score: int
    extended: Extended = ()


class Allocatable(NamedTuple):
    pods: int
    cpu: int
    memory: int
    ephemeral: int
    extended: Extended = ()


IDLE = Usage(0, 0, 0, 0, 0, 0)


def request_of(spec: Obj) -> Request:
    total = pod_resources(spec, "requests")
    for name, value in ((spec.get("resources") or {}).get("requests") or {}).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = Quantity.parse(value)
    amounts = {name: quantity.milli() if name == _CPU else quantity.value() for name, quantity in total.items()}
    cpu, memory = amounts.pop(_CPU, 0), amounts.pop(_MEMORY, 0)
    ephemeral = amounts.pop(_EPHEMERAL, 0)
    silent_cpu, silent_memory = _silent(spec, _CPU), _silent(spec, _MEMORY)
    return Request(
        cpu,
        memory,
        ephemeral,
        cpu + silent_cpu * _ASSUMED_CPU,
        memory + silent_memory * _ASSUMED_MEMORY,
        tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
    )


def _silent(spec: Obj, name: str) -> int:
    """Return how many containers do not say how much of a resource they want."""
    if name in ((spec.get("resources") or {}).get("requests") or {}):
        return 0
    return sum(
        1 for c in spec.get("containers") or () if name not in ((c.get("resources") or {}).get("requests") or {})
    )


def allocatable_of(status: Obj) -> Allocatable:
    amounts = {
        name: Quantity.parse(value).milli() if name == _CPU else Quantity.parse(value).value()
        for name, value in (status.get("allocatable") or {}).items()
    }
    pods, cpu, memory, ephemeral = (amounts.pop(name, 0) for name in (_PODS, _CPU, _MEMORY, _EPHEMERAL))
    extended = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
    return Allocatable(pods, cpu, memory, ephemeral, extended)


def plus(usage: Usage, request: Request, times: int = 1) -> Usage:
    """Return the usage after so many pods with this request came; -1: after one left."""
    pods, cpu, memory, ephemeral, cpu_score, memory_score, extended = usage
    return Usage(
        pods + times,
        cpu + times * request[0],
        memory + times * request[1],
        ephemeral + times * request[2],
        cpu_score + times * request[3],
        memory_score + times * request[4],
        _merged(extended, request[5], times) if request[5] else extended,
    )


def _merged(one: Extended, other: Extended, times: int) -> Extended:
    total = dict(one)
    for name, amount in other:
        total[name] = total.get(name, 0) + times * amount
    return tuple(sorted((name, amount) for name, amount in total.items() if amount))


def fits(request: Request, allocatable: Allocatable, usage: Usage) -> bool:
    """Return whether the node has room; a resource that is not requested may be overcommitted."""
    return (
        usage[0] < allocatable[0]
        and (not request[0] or usage[1] + request[0] <= allocatable[1])
        and (not request[1] or usage[2] + request[1] <= allocatable[2])
        and (not request[2] or usage[3] + request[2] <= allocatable[3])
        and (not request[5] or not _missing(request[5], allocatable[4], usage[6]))
    )


def _missing(requested: Extended, allocatable: Extended, used: Extended) -> list[tuple[str, bool]]:
    have, taken = dict(allocatable), dict(used)
    return [
        (name, amount > have.get(name, 0))
        for name, amount in requested
        if amount + taken.get(name, 0) > have.get(name, 0)
    ]


def shortage(request: Request, allocatable: Allocatable, usage: Usage, *, oversized_is_final: bool) -> Refusal:
    """Return what is missing, for a request that does not fit."""
    reasons: list[str] = []
    oversized = False
    if usage.pods >= allocatable.pods:
        reasons.append("Too many pods")
    for name, requested, used, have in (
        (_CPU, request.cpu, usage.cpu, allocatable.cpu),
        (_MEMORY, request.memory, usage.memory, allocatable.memory),
        (_EPHEMERAL, request.ephemeral, usage.ephemeral, allocatable.ephemeral),
    ):
        if requested and used + requested > have:
            reasons.append(f"Insufficient {name}")
            oversized = oversized or requested > have
    for name, hopeless in _missing(request.extended, allocatable.extended, usage.extended):
        reasons.append(f"Insufficient {name}")
        oversized = oversized or hopeless
    return Refusal(tuple(reasons), FIT, oversized and oversized_is_final)
