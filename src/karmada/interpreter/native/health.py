"""Whether an object in a cluster does what it is there for. Kinds that are not in the table are always healthy."""

from __future__ import annotations

from collections.abc import Callable

from karmada.interpreter.native.fields import entries, number, numbers, section
from karmada.interpreter.native.kinds import (
    CLAIM,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    INGRESS,
    POD,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
)
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj


def _observed(obj: Obj, status: Obj) -> bool:
    """Return whether the counters follow the spec as it is now."""
    return number(status, "observedGeneration") == meta.generation(obj)


def _enough(obj: Obj, have: int) -> bool:
    wanted = section(obj, "spec")
    return wanted.get("replicas") is None or have >= number(wanted, "replicas")


def _rolled_out(obj: Obj, status: Obj) -> bool:
    updated, available = numbers(status, ("updatedReplicas", "availableReplicas"))
    return _observed(obj, status) and _enough(obj, updated) and available >= updated


def _replica_set(obj: Obj, status: Obj) -> bool:
    return _observed(obj, status) and _enough(obj, number(status, "availableReplicas"))


def _daemon_set(obj: Obj, status: Obj) -> bool:
    updated = number(status, "updatedNumberScheduled")
    return (
        _observed(obj, status)
        and updated >= number(status, "desiredNumberScheduled")
        and number(status, "numberAvailable") >= updated
    )


def _reachable(_: Obj, status: Obj) -> bool:
    balancers = entries(section(status, "loadBalancer"), "ingress")
    return any(entry.get("hostname") or entry.get("ip") for entry in balancers)


def _service(obj: Obj, status: Obj) -> bool:
    return section(obj, "spec").get("type") != "LoadBalancer" or _reachable(obj, status)


def _claim(_: Obj, status: Obj) -> bool:
    return status.get("phase") == "Bound"


def _pod(_: Obj, status: Obj) -> bool:
    phase = status.get("phase")
    return phase == "Succeeded" or (phase == "Running" and meta.has_condition(entries(status, "conditions"), "Ready"))


def _disruption_budget(_: Obj, status: Obj) -> bool:
    return number(status, "currentHealthy") >= number(status, "desiredHealthy")


VERDICTS: dict[GVK, Callable[[Obj, Obj], bool]] = {
    DEPLOYMENT: _rolled_out,
    STATEFUL_SET: _rolled_out,
    REPLICA_SET: _replica_set,
    DAEMON_SET: _daemon_set,
    SERVICE: _service,
    INGRESS: _reachable,
    CLAIM: _claim,
    POD: _pod,
    DISRUPTION_BUDGET: _disruption_budget,
}
"""From an object and its status, empty if it has none, to whether it is healthy."""
