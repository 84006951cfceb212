"""Resource requests and limits of pods: those of their containers together."""

from __future__ import annotations

from collections.abc import Mapping

from karmada.kube.kinds import checks
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj

Usage = dict[str, Quantity]


def pod_resources(spec: Obj, kind: str) -> Usage:
    """Return what a pod requests (or is limited to) in all.

    Its containers and sidecars together, or its greediest init container with the sidecars started before it, whichever
    is more; plus the runtime's overhead.
    """
    total: Usage = {}
    for container in spec.get("containers") or ():
        add_to(total, amounts_of(container, kind))
    sidecars: Usage = {}
    peak: Usage = {}
    for container in spec.get("initContainers") or ():
        amounts = amounts_of(container, kind)
        if container.get("restartPolicy") == "Always":
            add_to(total, amounts)
            add_to(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = sum_of(amounts, sidecars)
        for name, amount in amounts.items():
            peak[name] = max(amount, peak.get(name, ZERO))
    for name, amount in peak.items():
        total[name] = max(amount, total.get(name, ZERO))
    overhead = spec.get("overhead") or {}
    for name, value in overhead.items():
        if kind == "requests" or name in total:
            total[name] = total.get(name, ZERO) + (checks.quantity(value) or ZERO)
    return total


def amounts_of(container: Obj, kind: str) -> Usage:
    found = (container.get("resources") or {}).get(kind) or {}
    return {name: checks.quantity(value) or ZERO for name, value in found.items()}


def add_to(total: Usage, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def sum_of(one: Usage, other: Usage) -> Usage:
    total = dict(one)
    add_to(total, other)
    return total
