"""Federated quotas at the moment a binding is scheduled: what it will use more than before must fit into each quota.

The new total is written into the quota's status before the binding is stored, so that two bindings at the same time
cannot both take the last bit; a write that loses the race counts again, without what is charged already. What is
charged for a binding that is refused later on is corrected by the enforcement controller.

A binding is charged in whole numbers (CPU in thousandths, all else in units) of resources that a Pod can request; other
names in a quota are not counted here. Each binding is rounded for itself, so that the sum of all changes is, to the
last unit, what a recount gives. Every total above its limit refuses, also one that was above it before.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from karmada.admission.context import Context, Refusal
from karmada.api.policy import FederatedResourceQuota
from karmada.kube.kinds.container_rules import is_extended_resource
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.quantity import ZERO, Format, Quantity
from karmada.kube.objects.types import Obj

GATE = "FederatedQuotaEnforcement"
QUOTA_EXCEEDED = "QuotaExceeded"
TRIES, PAUSE, JITTER = 5, 0.01, 0.1
_BINARY = ("memory", "ephemeral-storage")

Amounts = dict[str, Quantity]


async def enforce(binding: Obj, old: Obj | None, context: Context) -> None:
    """Refuse a binding that exceeds a quota of its namespace, and charge the quotas for one that does not."""
    if not context.settings.enabled(GATE) or not _concerned(binding["spec"], old):
        return
    change = difference(charge(binding), charge(old) if old is not None else {})
    if not change:
        return
    charged: set[str] = set()
    for tries_left in reversed(range(TRIES)):
        try:
            await _charge_all(binding, change, context, charged)
            return
        except Conflict as lost:
            if not tries_left:
                what = "failed to apply FederatedResourceQuota updates after multiple retries for RB"
                raise Refusal.failure(f"{what} {_named(binding)}: {lost.message}") from lost
        await context.settings.clock.sleep(PAUSE * (1 + random.random() * JITTER))


async def _charge_all(binding: Obj, change: Amounts, context: Context, charged: set[str]) -> None:
    """Charge quotas beside those `charged`; raise Conflict when somebody else charged one at the same time."""
    namespace = binding["metadata"].get("namespace") or ""
    try:
        quotas = await context.list(FederatedResourceQuota.gvr, namespace)
    except ApiError as error:
        raise Refusal.failure(f"failed to list FederatedResourceQuotas: {error.message}") from error
    left = [quota for quota in quotas if meta.name(quota) not in charged]
    for quota, used in [(quota, used) for quota in left if (used := used_with(quota, change)) is not None]:
        await _write(quota, used, binding, context)
        charged.add(meta.name(quota))


def used_with(quota: Obj, change: Amounts) -> Obj | None:
    """Return what a quota's overallUsed becomes; None when it is not concerned.

    Raises Refusal when it is too much.
    """
    overall: Obj = (quota.get("spec") or {}).get("overall") or {}
    counted = {name: amount for name, amount in change.items() if name in overall}
    if not counted:
        return None
    used = total((quota.get("status") or {}).get("overallUsed") or {}, counted)
    for name in sorted(used):
        if name in overall and used[name] > (limit := Quantity.parse(overall[name])):
            which = f"FederatedResourceQuota({_named(quota)}) exceeded for resource {name}"
            raise Refusal(f"{which}: requested sum {used[name]}, limit {limit}.", reason=QUOTA_EXCEEDED)
    return {name: str(amount) for name, amount in used.items()}


async def _write(quota: Obj, used: Obj, binding: Obj, context: Context) -> None:
    status = {**(quota.get("status") or {}), "overallUsed": used}
    client = context.settings.client
    assert client is not None  # it listed the quota
    try:
        await client.update(
            FederatedResourceQuota.gvr, {**quota, "status": status}, subresource="status", dry_run=context.dry_run
        )
    except Conflict:
        raise
    except ApiError as error:
        text = f"permanent error updating FRQ statuses for RB {_named(binding)}: {error.message}"
        raise Refusal.failure(text) from error


def _named(obj: Obj) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


# what a binding uses


def usage(binding: Obj) -> Amounts:
    """Return what the replicas of a scheduled binding request, summed over all its clusters."""
    spec = binding.get("spec") or {}
    clusters, components = spec.get("clusters") or [], spec.get("components") or []
    used: Amounts = {}
    if components:
        for component in components:
            _add(used, _request(component), (component.get("replicas") or 0) * len(clusters))
    else:
        _add(used, _request(spec), _replicas(spec))
    return used


def charge(binding: Obj) -> Amounts:
    """Return what a quota is charged for a binding: its usage in whole numbers, of resources that are counted."""
    return total({}, usage(binding))


def _request(holder: Obj) -> Obj:
    request: Obj = (holder.get("replicaRequirements") or {}).get("resourceRequest") or {}
    return request


def _replicas(spec: Obj) -> int:
    return sum(cluster.get("replicas") or 0 for cluster in spec.get("clusters") or ())


def _add(used: Amounts, request: Obj, times: int) -> None:
    if times <= 0:
        return
    for name, amount in request.items():
        parsed = Quantity.parse(amount)
        if parsed:
            used[name] = used.get(name, ZERO) + parsed * times


def difference(new: Amounts, old: Amounts) -> Amounts:
    """Return what is used more (or, below zero, less) than before; nothing where it is the same."""
    found = {name: new.get(name, ZERO) - old.get(name, ZERO) for name in (*new, *(set(old) - set(new)))}
    return {name: amount for name, amount in found.items() if amount}


def total(used: Mapping[str, Any], change: Amounts) -> Amounts:
    """Return the sum in whole numbers, of resources that are counted, where it is above zero."""
    sums: dict[str, int] = {}
    for amounts in (used, change):
        for name, amount in amounts.items():
            if _is_counted(name):
                sums[name] = sums.get(name, 0) + _whole(name, Quantity.parse(amount))
    return {name: _amount(name, number) for name, number in sums.items() if number > 0}


def _is_counted(name: str) -> bool:
    return (
        name in ("cpu", "memory", "ephemeral-storage", "pods")
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or is_extended_resource(name)
    )


def _whole(name: str, amount: Quantity) -> int:
    return amount.milli() if name == "cpu" else amount.value()


def _amount(name: str, number: int) -> Quantity:
    if name == "cpu":
        return Quantity.of_milli(number)
    binary = name in _BINARY or name.startswith("hugepages-")
    return Quantity.of(number, Format.BINARY_SI if binary else Format.DECIMAL_SI)


# whether a write has to do with quotas


def _concerned(spec: Obj, old: Obj | None) -> bool:
    if old is None:
        return bool(spec.get("clusters"))
    before = old.get("spec") or {}
    return (
        not _same(_request(spec), _request(before))
        or _replicas(spec) != _replicas(before)
        or _components_moved(spec, before)
        or _components_changed(spec.get("components") or [], before.get("components") or [])
    )


def _same(one: Obj, other: Obj) -> bool:
    return one == other or (
        one.keys() == other.keys() and all(Quantity.parse(one[name]) == Quantity.parse(other[name]) for name in one)
    )


def _components_moved(spec: Obj, before: Obj) -> bool:
    """Return whether the number of clusters changed: each gets all components, so it is another amount."""
    if not spec.get("components") and not before.get("components"):
        return False
    now, then = ({cluster["name"] for cluster in side.get("clusters") or ()} for side in (spec, before))
    return now != then


def _components_changed(now: list[Obj], then: list[Obj]) -> bool:
    if len(now) != len(then):
        return True
    return any(
        (one.get("replicas") or 0) != (other.get("replicas") or 0)
        or (one.get("replicaRequirements") is None) != (other.get("replicaRequirements") is None)
        or not _same(_request(one), _request(other))
        for one, other in zip(now, then, strict=True)
    )
