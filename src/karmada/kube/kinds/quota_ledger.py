"""The usage under one ResourceQuota, updated incrementally.

A ledger starts from a full count and is then updated with every change of an object as (old, new): the usage of the old
one is subtracted, that of the new one added. The quota controller and admission each keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from karmada.kube.kinds.pod_amounts import Usage
from karmada.kube.kinds.pods import TERMINAL
from karmada.kube.kinds.quota import CLAIMS, PODS, SERVICES, in_scope, usage
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj

DETAILED = frozenset({PODS, SERVICES, CLAIMS})
"""Resources whose content counts; of all others only the number of objects does."""
_CLASS_INFIX = ".storageclass.storage.k8s.io/"
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED_BY_NAME = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})


def resource_of(name: str) -> GroupResource | None:
    """Return which objects count for what a quota limits under this name; None when that is unknown."""
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return GroupResource(group, plural)
    if name == "pods" or name in _COMPUTE or name.startswith("hugepages-"):
        return PODS
    if name in ("persistentvolumeclaims", "requests.storage") or _CLASS_INFIX in name:
        return CLAIMS
    if name == "services" or name.startswith("services."):
        return SERVICES
    if name.startswith(("requests.", "limits.")):
        return PODS
    return GroupResource("", name) if name in _COUNTED_BY_NAME else None


def hard_of(quota: Obj) -> dict[str, str]:
    found: dict[str, str] = (quota.get("spec") or {}).get("hard") or {}
    return found


def resources_of(quota: Obj) -> set[GroupResource]:
    """Return the resources whose objects count for a quota."""
    return {resource for name in hard_of(quota) if (resource := resource_of(name)) is not None}


class Ledger:
    """`spec` is the quota's when the count was made; with another one a new ledger is needed."""

    def __init__(self, quota: Obj, objects: Mapping[GroupResource, Iterable[Obj]], now: float) -> None:
        self.spec = quota.get("spec") or {}
        self.uid = quota["metadata"]["uid"]
        self.counted_at = now
        self._quota = quota
        self._names = {resource: self._limited(resource) for resource in resources_of(quota)}
        self._totals: Usage = dict.fromkeys((name for names in self._names.values() for name in names), ZERO)
        for resource, found in objects.items():
            for obj in found:
                self._count(resource, obj, 1)

    def _limited(self, resource: GroupResource) -> list[str]:
        return sorted(name for name in hard_of(self._quota) if resource_of(name) == resource)

    def _count(self, resource: GroupResource, obj: Obj | None, sign: int) -> None:
        names = self._names.get(resource)
        if obj is None or not names or not in_scope(self._quota, resource, obj):
            return
        counts = usage(resource, obj)
        for name in names:
            amount = counts.get(name)
            if amount is not None:
                self._totals[name] += amount if sign > 0 else -amount

    def change(self, resource: GroupResource, old: Obj | None, new: Obj | None) -> bool:
        """Update the usage; return whether it changed."""
        if resource not in self._names or same_usage(resource, old, new):
            return False
        self._count(resource, old, -1)
        self._count(resource, new, 1)
        return True

    def used(self) -> dict[str, str]:
        return {name: str(max(amount, ZERO)) for name, amount in self._totals.items()}

    def amount(self, name: str) -> Quantity:
        return self._totals[name]


def same_usage(resource: GroupResource, old: Obj | None, new: Obj | None) -> bool:
    """Cheaply: an update after which an object certainly counts as before."""
    if old is None or new is None:
        return False
    if resource not in DETAILED:
        return True
    if resource == PODS and _ended(old) != _ended(new):
        return False
    return old.get("spec") == new.get("spec")


def _ended(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL
