"""What the quotas of a namespace should be charged, kept up to date by events: bindings are listed at a resync only.

Admission charges a quota before the binding is stored. So a charge without a binding is either in flight or lost, and
nothing but time tells which: what was charged within the last seconds counts as in flight. `corrected` keeps a total
between the recount and the recount with that. A total is raised at once, and is lowered as soon as that is safe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from karmada.admission.binding_quota import Amounts, charge, difference, total
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.quantity import ZERO
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of

SETTLE_SECONDS: Final = 5.0
"""After its charge, a binding is stored or refused within this time; a webhook has three seconds."""


class Recount:
    """The charges of all stored bindings, by namespace."""

    def __init__(self) -> None:
        self._totals: dict[str, Amounts] = {}

    def of(self, namespace: str) -> Amounts:
        return total(self._totals.get(namespace, {}), {})

    def binding_changed(self, old: Obj | None, new: Obj | None) -> None:
        if same_charge(old, new):
            return
        charges = [(binding, charge(binding), sign) for binding, sign in ((old, -1), (new, 1)) if binding is not None]
        for binding, amounts, sign in charges:
            self._add(meta.namespace(binding), amounts, sign)

    def renew(self, namespace: str, bindings: Iterable[Obj]) -> None:
        """Count these, which are all of the namespace."""
        charges = [charge(binding) for binding in bindings]
        self._totals.pop(namespace, None)
        for amounts in charges:
            self._add(namespace, amounts, 1)

    def _add(self, namespace: str, amounts: Amounts, sign: int) -> None:
        totals = self._totals.setdefault(namespace, {})
        for name, amount in amounts.items():
            totals[name] = totals.get(name, ZERO) + amount * sign
            if not totals[name]:
                del totals[name]
        if not totals:
            del self._totals[namespace]


def same_charge(old: Obj | None, new: Obj | None) -> bool:
    """Cheaply: an update after which a binding certainly counts as before."""
    if old is None or new is None:
        return False
    return (meta.uid(old), meta.generation(old)) == (meta.uid(new), meta.generation(new))


def used_of(quota: Obj | None) -> Amounts:
    return total(((quota or {}).get("status") or {}).get("overallUsed") or {}, {})


class RecentCharges:
    """The growth of quotas' totals in the last seconds; all of a total that is seen for the first time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._grown: dict[Key, deque[tuple[float, Amounts]]] = {}

    def quota_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            if old is not None:
                self._grown.pop(key_of(old), None)
            return
        grown = {name: more for name, more in difference(used_of(new), used_of(old)).items() if more > ZERO}
        if grown:
            self._grown.setdefault(key_of(new), deque()).append((self._clock.monotonic(), grown))

    def of(self, key: Key) -> Amounts:
        recent = self._grown.get(key)
        while recent and recent[0][0] + SETTLE_SECONDS <= self._clock.monotonic():
            recent.popleft()
        if not recent:
            self._grown.pop(key, None)
        found: Amounts = {}
        for _, grown in recent or ():
            for name, more in grown.items():
                found[name] = found.get(name, ZERO) + more
        return found


def corrected(quota: Obj, recount: Amounts, recent: Amounts) -> Obj:
    """Return what overallUsed should be, of resources that the quota limits."""
    stated = used_of(quota)
    found: Amounts = {}
    for name in (quota.get("spec") or {}).get("overall") or {}:
        least = recount.get(name, ZERO)
        found[name] = max(least, min(stated.get(name, ZERO), least + recent.get(name, ZERO)))
    return {name: str(amount) for name, amount in total(found, {}).items()}
