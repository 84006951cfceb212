"""ResourceQuota: no write takes a namespace beyond what its quotas allow.

What is used is the larger of what a quota's status says and what the objects in the cache use (see quota_usage), plus
what writes in flight reserve. A reservation is made without awaiting after the check, so that two creates never share
the last free place; it ends when the object is in the cache, when the write failed, or when it expires. Then the status
is updated; a reservation that the status already includes is not added to it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from karmada.kube.kinds import checks
from karmada.kube.kinds import quota as quotas
from karmada.kube.kinds.pod_amounts import Usage
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse
from karmada.kube.server.admission.quota_usage import LiveUsage

RESERVATION_SECONDS = 40.0
_EVENTS = GroupResource("", "events")
"""No quota counts them, as in Kubernetes: they expire."""
_UPDATED = frozenset({(quotas.PODS, "resize"), (quotas.SERVICES, ""), (quotas.CLAIMS, "")})

Place = tuple[str, GroupResource]


class _Reservation(NamedTuple):
    obj: Obj
    extra: Usage
    version: str
    """The version of the object that is to be replaced; empty: it is to be created."""
    until: float
    recorded: bool = False
    """The status of the quotas includes it, or is about to."""


RecordUsage = Callable[[Obj, Usage], Awaitable[None]]
"""(quota, additional usage): update the quota's status."""


class ResourceQuota(BuiltinPlugin):
    name = "ResourceQuota"
    mutates = False

    def __init__(self, reader: Reader, clock: Clock | None = None, record: RecordUsage | None = None) -> None:
        super().__init__(reader)
        self._record = record
        self._clock = clock or RealClock()
        self._reservations: dict[Place, dict[str, _Reservation]] = {}
        self._live = LiveUsage(reader)

    def handles(self, attributes: Attributes) -> bool:
        if not attributes.resource.namespaced or "list" not in attributes.resource.verbs:
            return False
        if attributes.resource.storage_resource == _EVENTS:
            return False
        if attributes.operation == UPDATE:
            return (attributes.group_resource, attributes.subresource) in _UPDATED
        return attributes.operation == CREATE and not attributes.subresource

    async def validate(self, attributes: Attributes) -> None:
        found = self.reader.list(quotas.QUOTAS, attributes.namespace)
        if self._live.followed:
            self._live.forget(attributes.namespace, found)
        obj = attributes.obj
        if not found or obj is None:
            return
        resource = attributes.group_resource
        counts = quotas.usage(resource, obj)
        before = quotas.usage(resource, attributes.old) if attributes.old is not None else {}
        extra = {name: amount - before.get(name, ZERO) for name, amount in counts.items()}
        extra = {name: amount for name, amount in extra.items() if amount > ZERO}
        if await self._live.open(_limiting(found, extra), attributes.resource, attributes.namespace):
            found = self.reader.list(quotas.QUOTAS, attributes.namespace)  # they may have changed meanwhile
        matching = [quota for quota in found if quotas.in_scope(quota, resource, obj)]
        for quota in matching:
            self._check_known(attributes, quota, counts)
        if extra:
            for quota in matching:
                self._check_free(attributes, quota, extra)
            if matching and not attributes.dry_run:
                self._reserve(attributes, obj, extra)
                await self._record_in(matching, attributes, extra)

    async def _record_in(self, matching: list[Obj], attributes: Attributes, extra: Usage) -> None:
        """Add the usage to the status of every quota that limits it; a create of what exists will fail."""
        exists = attributes.operation == CREATE and self.reader.get(
            attributes.resource.storage_resource, attributes.namespace, _name(attributes)
        )
        if self._record is None or exists:
            return
        reservations = self._reservations[_place(attributes)]
        reservations[_name(attributes)] = reservations[_name(attributes)]._replace(recorded=True)
        for quota in matching:
            limited = quotas.limited_resources(quotas.constrained(quota), extra)
            if limited:
                await self._record(quota, {name: extra[name] for name in limited})

    def finish(self, attributes: Attributes, stored: bool | None) -> None:
        """Release the reservation of a failed write; once it is stored, the object itself counts from now on.

        While the outcome is unknown, the reservation stays.
        """
        if not self._reservations:
            return
        reservations = self._reservations.get(_place(attributes), {})
        reservation = reservations.get(_name(attributes))
        if stored is not None and reservation is not None and reservation.obj is attributes.obj:
            del reservations[_name(attributes)]

    def _check_known(self, attributes: Attributes, quota: Obj, counts: Usage) -> None:
        name = quota["metadata"]["name"]
        limited = quotas.limited_resources((quota.get("spec") or {}).get("hard") or (), counts)
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        unknown = [entry for entry in limited if entry not in hard or entry not in used]
        if unknown:
            raise refuse(attributes, f"status unknown for quota: {name}, resources: {','.join(unknown)}")
        if attributes.group_resource == quotas.PODS and attributes.operation == CREATE:
            lacking = quotas.missing(quota, attributes.obj or {})
            if lacking:
                raise refuse(attributes, f"failed quota: {name}: must specify {'; '.join(lacking)}")

    def _check_free(self, attributes: Attributes, quota: Obj, extra: Usage) -> None:
        hard = quotas.constrained(quota)
        limited = quotas.limited_resources(hard, extra)
        if not limited:
            return
        stated = (quota.get("status") or {}).get("used") or {}
        live = self._live.ledger(quota, attributes.resource, attributes.namespace)
        reserved, unrecorded = self._reserved(attributes, quota, limited)
        over = []
        for name in limited:
            most = checks.quantity(hard[name]) or ZERO
            reported = (checks.quantity(stated.get(name, "0")) or ZERO) + unrecorded[name]
            used = max(reported, live.amount(name) + reserved[name])
            if used + extra[name] > most:
                over.append((name, extra[name], used, most))
        if over:
            requested = ",".join(f"{name}={more}" for name, more, _, _ in over)
            used_text = ",".join(f"{name}={used}" for name, _, used, _ in over)
            limited_text = ",".join(f"{name}={most}" for name, _, _, most in over)
            why = f"requested: {requested}, used: {used_text}, limited: {limited_text}"
            raise refuse(attributes, f"exceeded quota: {quota['metadata']['name']}, {why}")

    # --- reservations

    def _reserve(self, attributes: Attributes, obj: Obj, extra: Usage) -> None:
        version = (attributes.old or {}).get("metadata", {}).get("resourceVersion") or ""
        until = self._clock.monotonic() + RESERVATION_SECONDS
        self._reservations.setdefault(_place(attributes), {})[_name(attributes)] = _Reservation(
            obj, extra, version, until
        )

    def _reserved(
        self, attributes: Attributes, quota: Obj, names: Iterable[str]
    ) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        """Return what writes in flight reserve: all of it, and what the status does not include yet."""
        totals = dict.fromkeys(names, ZERO)
        unrecorded = dict(totals)
        place = _place(attributes)
        reservations = self._reservations.get(place, {})
        for name, reservation in list(reservations.items()):
            if self._is_over(attributes, name, reservation):
                del reservations[name]
            elif name != _name(attributes) and quotas.in_scope(quota, attributes.group_resource, reservation.obj):
                for key in totals:
                    amount = reservation.extra.get(key, ZERO)
                    totals[key] += amount
                    if not reservation.recorded:
                        unrecorded[key] += amount
        if not reservations:
            self._reservations.pop(place, None)
        return totals, unrecorded

    def _is_over(self, attributes: Attributes, name: str, reservation: _Reservation) -> bool:
        """Kept (the object is there, or has changed since) or too old."""
        if reservation.until <= self._clock.monotonic():
            return True
        live = self.reader.get(attributes.resource.storage_resource, attributes.namespace, name)
        if live is None:
            return bool(reservation.version)
        version: str = live["metadata"].get("resourceVersion") or ""
        return version != reservation.version


def _limiting(found: Iterable[Obj], extra: Usage) -> list[Obj]:
    return [quota for quota in found if quotas.limited_resources(quotas.constrained(quota), extra)]


def _place(attributes: Attributes) -> Place:
    return attributes.namespace, attributes.group_resource


def _name(attributes: Attributes) -> str:
    name: str = attributes.name or (attributes.obj or {}).get("metadata", {}).get("name") or ""
    return name
