"""Plug-in ResourceQuotaEstimator: how much of the quotas of a namespace is left.

Of a ResourceQuota count the requests of cpu, memory and extended resources. A quota with scopes holds for those pods
that one of its scopes selects; the only scope that can be known before there are pods is that of the priority class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karmada.estimator.amounts import amount
from karmada.estimator.resources import Demand, demand_of, is_extended
from karmada.estimator.results import Code, Result
from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

_PREFIX = "requests."
_BASIC = ("cpu", "memory")
_PRIORITY_CLASS = "PriorityClass"
Quotas = Callable[[str], Iterable[Obj]]
"""The ResourceQuotas of a namespace."""


class ResourceQuotaEstimator:
    name = "ResourceQuotaEstimator"

    def __init__(self, quotas: Quotas | None) -> None:
        """`quotas` is None when the plug-in is disabled."""
        self._quotas = quotas

    def replicas(self, requirements: Obj | None, assumed: Sequence[Assumption]) -> Result:
        if self._quotas is None or requirements is None:
            return self._without(self._quotas)
        namespace, demand = requirements.get("namespace") or "", demand_of(requirements)
        class_name = requirements.get("priorityClassName") or ""
        return self._result(
            namespace,
            lambda quota: replicas_by(quota, demand, class_name, _here(assumed, namespace)),
            f"zero replica is estimated by {self.name}",
        )

    def sets(self, components: Sequence[Obj], namespace: str, assumed: Sequence[Assumption]) -> Result:
        if self._quotas is None or not components or not namespace:
            return self._without(self._quotas)
        return self._result(
            namespace,
            lambda quota: sets_by(quota, components, _here(assumed, namespace)),
            f"zero component sets estimated by {self.name}",
        )

    def _without(self, quotas: Quotas | None) -> Result:
        if quotas is None:
            return Result(Code.NO_OPERATION, reason=f"{self.name} is disabled")
        return Result(Code.SUCCESS, reason=f"{self.name} found no quota constraints")

    def _result(self, namespace: str, estimate: Callable[[Obj], int], none: str) -> Result:
        assert self._quotas is not None
        try:
            least = min(map(estimate, self._quotas(namespace)), default=MAX_REPLICAS)
        except ValueError as error:
            return Result(Code.ERROR, 0, str(error))
        if least == MAX_REPLICAS:
            return Result(Code.SUCCESS, reason=f"{self.name} found no quota constraints")
        return Result(Code.SUCCESS, least) if least > 0 else Result(Code.UNSCHEDULABLE, 0, none)


def replicas_by(quota: Obj, demand: Demand, class_name: str, assumed: Iterable[Obj]) -> int:
    """Return how many replicas one quota allows; MAX_REPLICAS when it does not constrain them."""
    if not applies(quota, class_name):
        return MAX_REPLICAS
    return _most(free_of(quota), demand, _selected(quota, assumed))


def sets_by(quota: Obj, components: Iterable[Obj], assumed: Iterable[Obj]) -> int:
    """Return how many complete sets of components fit into the quotas that hold for some of them."""
    counted = _selected(quota, components)
    return _most(free_of(quota), _sum(counted), _selected(quota, assumed)) if counted else MAX_REPLICAS


def applies(quota: Obj, class_name: str) -> bool:
    """Return whether a quota holds for pods of a priority class; "" for pods without one."""
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return not selectors or any(_selects(selector, class_name) for selector in selectors)


def _selects(selector: Obj, class_name: str) -> bool:
    if selector.get("scopeName") != _PRIORITY_CLASS:
        return False
    expression = {"key": _PRIORITY_CLASS, "operator": selector.get("operator"), "values": selector.get("values") or ()}
    labels = {_PRIORITY_CLASS: class_name} if class_name else {}
    return labels_from({"matchExpressions": [expression]}).matches(labels)


def free_of(quota: Obj) -> dict[str, int]:
    """Return what is left of each resource that pods are counted by; below zero when more is used than allowed."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    free: dict[str, int] = {}
    for key in sorted(hard, key=lambda name: name.startswith(_PREFIX)):
        name = key.removeprefix(_PREFIX)
        if key in used and (name in _BASIC or is_extended(name)):
            free[name] = amount(name, Quantity.parse(hard[key]) - Quantity.parse(used[key]))
    return free


def _most(free: dict[str, int], demand: Demand, assumed: Iterable[Obj]) -> int:
    common = {name: need for name, need in demand.items() if name in free}
    taken = _sum(assumed)
    left = {name: has - taken.get(name, 0) for name, has in free.items()}
    if taken and any(has < 0 for has in left.values()):
        return 0
    most = min((left[name] // need for name, need in common.items()), default=MAX_REPLICAS)
    return min(max(most, 0), MAX_REPLICAS)


def _here(assumed: Iterable[Assumption], namespace: str) -> list[Obj]:
    """Return what was placed in a namespace a moment ago."""
    return [component for one in assumed if one.namespace == namespace for component in one.components]


def _selected(quota: Obj, components: Iterable[Obj]) -> list[Obj]:
    return [one for one in components if applies(quota, _requirements(one).get("priorityClassName") or "")]


def _requirements(component: Obj) -> Obj:
    return component.get("replicaRequirements") or {}


def _sum(components: Iterable[Obj]) -> dict[str, int]:
    """Return what all replicas of some components need together."""
    total: dict[str, int] = {}
    for component in components:
        replicas = component.get("replicas") or 0
        for name, need in demand_of(_requirements(component)).items() if replicas > 0 else ():
            if name in _BASIC or is_extended(name):
                total[name] = total.get(name, 0) + need * replicas
    return total
