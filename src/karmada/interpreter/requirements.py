"""What one replica needs, read from the spec of its Pod: resources and nodes.

A Pod needs the sum over its containers, but at least what its hungriest init container does, and the overhead on top.
Where a container has a limit but no request for a resource, the request is the limit. Sums are made in whole numbers
of a unit that the resource's name decides: thousandths of a CPU, ones of everything else, each summand rounded up.
The same few quantities recur, so parsing and printing them is cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.names import qualified_name
from karmada.kube.objects.quantity import Format, Quantity, canonical
from karmada.kube.objects.types import Obj


class _Unit(NamedTuple):
    """How amounts of a resource are counted and printed."""

    milli: bool
    format: Format


_CPU = _Unit(True, Format.DECIMAL_SI)
_BYTES = _Unit(False, Format.BINARY_SI)
_PIECES = _Unit(False, Format.DECIMAL_SI)
_KNOWN = {"cpu": _CPU, "memory": _BYTES, "ephemeral-storage": _BYTES, "pods": _PIECES}
_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."


@lru_cache(maxsize=1024)
def _unit(name: str) -> _Unit | None:
    """Return None for names that no node can offer: those are not counted."""
    known = _KNOWN.get(name)
    if known is not None:
        return known
    if name.startswith("hugepages-"):
        return _BYTES
    if _NATIVE_DOMAIN in name or name.startswith("attachable-volumes-") or _is_extended(name):
        return _PIECES
    return None


def _is_extended(name: str) -> bool:
    return "/" in name and not name.startswith(_QUOTA_PREFIX) and not qualified_name(_QUOTA_PREFIX + name)


def pod_requirements(pod: Obj, *, priority_class: bool = False) -> Obj | None:
    """ReplicaRequirements of a Pod with this spec; None when it requests nothing.

    With `priority_class` they also name the Pod's PriorityClass.
    """
    claim, request = node_claim(pod), resource_request(pod)
    if claim is None and not request:
        return None
    requirements: Obj = {}
    if claim is not None:
        requirements["nodeClaim"] = claim
    if request:
        requirements["resourceRequest"] = request
    if priority_class and pod.get("priorityClassName"):
        requirements["priorityClassName"] = pod["priorityClassName"]
    return requirements


def node_claim(pod: Obj) -> Obj | None:
    claim: Obj = {}
    affinity = (pod.get("affinity") or {}).get("nodeAffinity")
    if affinity:
        hard = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if hard is not None:
            claim["hardNodeAffinity"] = hard
    for field in ("nodeSelector", "tolerations"):
        if pod.get(field):
            claim[field] = pod[field]
    return claim or None


def resource_request(pod: Obj) -> dict[str, str]:
    """Return what the Pod requests, by resource; zero requests are left out."""
    total: dict[str, int] = {}
    for container in pod.get("containers") or ():
        _add(total, _wanted(container))
    for container in pod.get("initContainers") or ():
        for name, amount in _amounts(_wanted(container)):
            if amount > total.get(name, 0):
                total[name] = amount
    if pod.get("overhead"):
        _add(total, pod["overhead"])
    return {name: _printed(name, amount) for name, amount in total.items() if amount}


def _wanted(container: Obj) -> Mapping[str, Any]:
    resources = container.get("resources")
    if not resources:
        return {}
    requests, limits = resources.get("requests"), resources.get("limits")
    if not limits:
        return requests or {}
    return {**limits, **requests} if requests else limits


def _amounts(wanted: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in wanted.items():
        amount = _amount(name, str(value))
        if amount is not None:
            yield name, amount


def _add(total: dict[str, int], wanted: Mapping[str, Any]) -> None:
    for name, amount in _amounts(wanted):
        total[name] = total.get(name, 0) + amount


@lru_cache(maxsize=16384)
def _amount(name: str, value: str) -> int | None:
    unit = _unit(name)
    if unit is None:
        return None
    try:
        quantity = Quantity.parse(value)
    except ValueError as error:
        raise InterpreterError(f"{name}: {value!r}: {error}") from None
    return quantity.milli() if unit.milli else quantity.value()


@lru_cache(maxsize=16384)
def _printed(name: str, amount: int) -> str:
    milli, written = _unit(name) or _PIECES
    return str(Quantity.of_milli(amount, written) if milli else Quantity.of(amount, written))


def with_canonical_quantities(requirements: Obj) -> Obj:
    """ReplicaRequirements that somebody else made, with quantities as Kubernetes prints them; ValueError for others."""
    request = requirements.get("resourceRequest")
    if not isinstance(request, dict):
        return requirements
    try:
        return {**requirements, "resourceRequest": {name: canonical(value) for name, value in request.items()}}
    except ValueError as error:
        raise ValueError(f"resourceRequest: {error}") from error
