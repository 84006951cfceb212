"""Cluster IPs and node ports: each given to one Service at a time.

What is taken is known from the Services themselves: read once from the watch cache, then kept up by `observe` with
every change of a Service, whoever made it. A write in flight holds what it took as a reservation, so that two creates
never get the same value; `finish` turns it into the Service's own or gives it back (failed writes, dry runs). A value
whose owner turns out to be gone is free again.

A choice is random: values of a range come back into use late, and a create costs the same however many Services there
are. The low end of a range is left for Services that request a certain value and is used only when the rest is full.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from karmada.kube.kinds import services
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import (
    ApiError,
    FieldError,
    FieldErrors,
    InternalError,
    Invalid,
    ServiceUnavailable,
    invalid,
)
from karmada.kube.objects.gvk import GroupKind, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.addresses.claims import Claims
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import DELETED

SERVICES = GroupResource("", "services")
Owner = tuple[str, str, str]
"""Namespace, name and uid of a Service."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_RANDOM_TRIES = 32
_CLAIM_TRIES = 20
_ALLOCATED_IP = "provided IP is already allocated"
_ALLOCATED_PORT = "provided port is already allocated"
_NO_DUAL_STACK = "this cluster is not configured for dual-stack services"


class Full(Exception):
    """Every value of the range is taken."""


class Pool:
    """The numbers from `low` to `high` and who has them; the first `static` of them are given out last."""

    def __init__(self, name: str, low: int, high: int, static: int) -> None:
        self.name = name
        self.low, self.high = low, high
        self._dynamic = min(low + static, high)
        self._owners: dict[int, Owner] = {}

    def __contains__(self, number: int) -> bool:
        return self.low <= number <= self.high

    def owner(self, number: int) -> Owner | None:
        return self._owners.get(number)

    def take(self, number: int, owner: Owner) -> None:
        self._owners[number] = owner

    def free(self, number: int, owner: Owner) -> None:
        if self._owners.get(number) == owner:
            del self._owners[number]

    def numbers(self) -> Iterable[int]:
        """Numbers that are taken."""
        return self._owners.keys()

    def choose(self, owner: Owner) -> int:
        """Take any free number."""
        for _ in range(_RANDOM_TRIES):
            number = random.randint(self._dynamic, self.high)
            if number not in self._owners:
                break
        else:
            number = self._search()
        self._owners[number] = owner
        return number

    def _search(self) -> int:
        """Look at all of a crowded range, the part for static values last."""
        start = random.randint(self._dynamic, self.high)
        spans = (range(start, self.high + 1), range(self._dynamic, start), range(self.low, self._dynamic))
        for span in spans:
            for number in span:
                if number not in self._owners:
                    return number
        raise Full


class _Range:
    """A pool of IP addresses of one network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.family = f"IPv{network.version}"
        first, last = int(network.network_address) + 1, int(network.broadcast_address)
        if network.version == 4 and network.num_addresses > 2:
            last -= 1
        size = last - first + 1
        self.pool = Pool(self.family.lower(), first, last, _static_part(size, 16, 256) if size > 16 else 0)

    def number(self, ip: str) -> int:
        return int(ipaddress.ip_address(ip))

    def text(self, number: int) -> str:
        return str(type(self.network.network_address)(number))


def _static_part(size: int, divisor: int, most: int) -> int:
    return min(max(16, size // divisor), most, size // 2)


@dataclass(slots=True)
class Taken:
    """The addresses and ports that one write took."""

    owner: Owner
    _done: Callable[[Taken], None]
    took: list[tuple[Pool, int]] = field(default_factory=list)

    def finish(self, stored: bool | None) -> None:
        """Only a write that surely failed gives back what it took; what a Service lets go of is freed when seen."""
        if stored is False:
            for pool, number in self.took:
                pool.free(number, self.owner)
        self._done(self)


class Allocator:
    def __init__(
        self,
        reader: Reader,
        service_cidr: str = "10.96.0.0/12",
        node_ports: tuple[int, int] = (30000, 32767),
        claims: Claims | None = None,
    ) -> None:
        """`service_cidr` may name two networks, one of each family, with a comma between them.

        `claims` is for servers that give out the same ranges together.
        """
        self._claims = claims
        self._reader = reader
        networks = [ipaddress.ip_network(text.strip()) for text in service_cidr.split(",")]
        self._ranges = {found.family: found for found in map(_Range, networks)}
        self._default_family = f"IPv{networks[0].version}"
        low, high = node_ports
        self._ports = Pool("nodeport", low, high, _static_part(high - low + 1, 32, 128) if high - low >= 16 else 0)
        self._in_flight: dict[Owner, int] = {}
        self._loaded = False

    # --- keeping up

    async def follow(self, services: Collection) -> None:
        """Observe every change of a Service, whoever made it; runs until it is cancelled."""
        while True:
            async for batch in await services.subscribe():
                for change in batch:
                    before = change.previous.object() if change.previous is not None else None
                    self.observe(before, None if change.type == DELETED else change.entry.object())
            self._loaded = False  # the cache was loaded anew: what was seen before may be gone

    def observe(self, old: Obj | None, new: Obj | None) -> None:
        """Record that a Service was created (no `old`), updated, or deleted (no `new`)."""
        if not self._loaded:
            return
        before, after = set(self._held(old)), set(self._held(new))
        owner = _owner(new or old or {})
        for pool, number in before - after:
            pool.free(number, owner)
        for pool, number in after - before:
            pool.take(number, owner)

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            for service in self._reader.list(SERVICES):
                for pool, number in self._held(service):
                    pool.take(number, _owner(service))

    def _held(self, service: Obj | None) -> Iterator[tuple[Pool, int]]:
        spec = (service or {}).get("spec") or {}
        for ip in services.cluster_ips(spec):
            found = self._ranges.get(_family(ip))
            if found is not None:
                yield found.pool, found.number(ip)
        for port in _ports_of(spec):
            yield self._ports, port

    def _is_free(self, pool: Pool, number: int) -> bool:
        owner = pool.owner(number)
        if owner is None:
            return True
        if owner in self._in_flight:
            return False
        holder = self._reader.get(SERVICES, owner[0], owner[1])
        if (pool, number) in self._held(holder):
            return False
        pool.free(number, owner)
        return True

    # --- giving out

    async def reserve(self, obj: Obj, old: Obj | None) -> Taken | None:
        """In place: what the Service needs and does not have, claimed where other servers might take it, too."""
        if self._claims is None:
            return self.choose(obj, old)
        for _ in range(_CLAIM_TRIES):
            spec = copy_json(obj.get("spec") or {})
            taken = self.choose(obj, old)
            lost = await self._claim_or_free(taken) if taken is not None else None
            if lost is None:
                return taken
            obj["spec"] = spec
            if lost in self._held(obj):
                raise Invalid.of(
                    GroupKind("", "Service"), obj["metadata"].get("name") or "", [self._refusal(*lost, obj)]
                )
        raise ServiceUnavailable("other servers keep taking the addresses this one chooses", retry_after=1)

    async def _claim_or_free(self, taken: Taken) -> tuple[Pool, int] | None:
        try:
            return await self._claim(taken)
        except StoreUnavailable as error:
            taken.finish(False)
            raise ServiceUnavailable(f"the store cannot be reached: {error}", retry_after=1) from error
        except BaseException:
            taken.finish(False)
            raise

    async def _claim(self, taken: Taken) -> tuple[Pool, int] | None:
        """Claim all that was taken; else release all of it and return what another server has."""
        assert self._claims is not None
        claimed: list[str] = []
        for pool, number in taken.took:
            name = f"{pool.name}-{number}"
            if not await self._claims.claim(name, taken.owner):
                taken.finish(False)
                for mine in claimed:
                    await self._claims.release(mine, taken.owner)
                return pool, number
            claimed.append(name)
        return None

    def _refusal(self, pool: Pool, number: int, obj: Obj) -> FieldError:
        """Why a requested value cannot be allocated."""
        if pool is self._ports:
            ports = obj["spec"].get("ports") or []
            at = next((index for index, port in enumerate(ports) if port.get("nodePort") == number), None)
            path = "spec.healthCheckNodePort" if at is None else f"spec.ports[{at}].nodePort"
            return invalid(path, number, _ALLOCATED_PORT)
        ip = next(r.text(number) for r in self._ranges.values() if r.pool is pool)
        return invalid("spec.clusterIPs", [ip], f"failed to allocate IP {ip}: {_ALLOCATED_IP}")

    def choose(self, obj: Obj, old: Obj | None) -> Taken | None:
        """In place: what the Service needs and does not have; refuses what it may not have.

        Allocation comes before validation; a Service whose own addresses are none is left to the latter.
        """
        spec = obj.get("spec") or {}
        if services.address_errors(obj):
            return None
        self._load()
        taken = Taken(_owner(obj), self._settle)
        self._in_flight[taken.owner] = self._in_flight.get(taken.owner, 0) + 1
        had = set(self._held(old))
        errors = FieldErrors()
        try:
            if services.needs_cluster_ip(spec):
                self._addresses(spec, had, taken, errors)
            self._node_ports(spec, had, taken, errors)
            if errors:
                raise Invalid.of(GroupKind("", "Service"), obj["metadata"].get("name") or "", errors)
        except ApiError:
            taken.finish(False)
            raise
        return taken

    def _settle(self, taken: Taken) -> None:
        left = self._in_flight.pop(taken.owner, 1) - 1
        if left > 0:
            self._in_flight[taken.owner] = left

    def _addresses(self, spec: Obj, had: set[tuple[Pool, int]], taken: Taken, errors: list[FieldError]) -> None:
        families = self._families(spec, errors)
        if errors:
            return
        spec["ipFamilies"] = families
        if services.is_headless(spec):
            spec["clusterIP"], spec["clusterIPs"] = services.NONE, [services.NONE]
            return
        requested = {_family(ip): ip for ip in services.cluster_ips(spec)}
        ips = []
        for family in families:
            found = self._ranges[family]
            if family in requested:
                self._request(found, requested[family], had, taken, errors)
                ips.append(requested[family])
            else:
                ips.append(self._any_ip(found, taken))
        spec["clusterIP"], spec["clusterIPs"] = ips[0], ips

    def _families(self, spec: Obj, errors: list[FieldError]) -> list[str]:
        """In place the policy, and in order the families a Service gets addresses of."""
        requested = [_family(ip) for ip in services.cluster_ips(spec)]
        families = list(dict.fromkeys([*(spec.get("ipFamilies") or ()), *requested])) or [self._default_family]
        policy = spec.get("ipFamilyPolicy")
        if services.is_headless(spec) and not spec.get("selector"):
            return _families_of_endpoints(spec, families)
        if not policy:
            policy = spec["ipFamilyPolicy"] = "RequireDualStack" if len(families) > 1 else "SingleStack"
        if policy == "RequireDualStack" and len(self._ranges) < 2:
            errors.append(invalid("spec.ipFamilyPolicy", policy, _NO_DUAL_STACK))
        for index, family in enumerate(families):
            if family not in self._ranges:
                detail = "not configured on this cluster"
                errors.append(invalid(f"spec.ipFamilies[{index}]", family, detail))
        if policy == "SingleStack":
            return families[:1]
        return families + [family for family in self._ranges if family not in families]

    def _request(
        self, found: _Range, ip: str, had: set[tuple[Pool, int]], taken: Taken, errors: list[FieldError]
    ) -> None:
        number = found.number(ip)
        if (found.pool, number) in had:
            return
        if number not in found.pool:
            why = "the provided network does not match the current range"
        elif not self._is_free(found.pool, number):
            why = _ALLOCATED_IP
        else:
            found.pool.take(number, taken.owner)
            taken.took.append((found.pool, number))
            return
        errors.append(invalid("spec.clusterIPs", [ip], f"failed to allocate IP {ip}: {why}"))

    def _choose(self, pool: Pool, taken: Taken) -> int:
        """Any free number; when there seems to be none, those whose owner is gone are freed first."""
        try:
            return pool.choose(taken.owner)
        except Full:
            for number in list(pool.numbers()):
                self._is_free(pool, number)
            return pool.choose(taken.owner)

    def _any_ip(self, found: _Range, taken: Taken) -> str:
        try:
            number = self._choose(found.pool, taken)
        except Full:
            raise InternalError.of("failed to allocate a serviceIP: range is full") from None
        taken.took.append((found.pool, number))
        return found.text(number)

    def _node_ports(self, spec: Obj, had: set[tuple[Pool, int]], taken: Taken, errors: list[FieldError]) -> None:
        external = spec.get("type") in ("NodePort", "LoadBalancer")
        ports = spec.get("ports") or () if external else ()
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                self._request_port(f"spec.ports[{index}].nodePort", port["nodePort"], had, taken, errors)
        if services.needs_node_ports(spec):
            for port in ports:
                if not port.get("nodePort"):
                    port["nodePort"] = self._shared_port(port, ports) or self._any_port(taken)
        if services.needs_health_port(spec):
            if spec.get("healthCheckNodePort"):
                self._request_port("spec.healthCheckNodePort", spec["healthCheckNodePort"], had, taken, errors)
            else:
                spec["healthCheckNodePort"] = self._any_port(taken)

    @staticmethod
    def _shared_port(port: Obj, ports: Iterable[Obj]) -> int | None:
        """Return the node port that the same port under another protocol has."""
        for other in ports:
            if other is not port and other.get("port") == port.get("port") and other.get("nodePort"):
                found: int = other["nodePort"]
                return found
        return None

    def _request_port(
        self, path: str, number: int, had: set[tuple[Pool, int]], taken: Taken, errors: list[FieldError]
    ) -> None:
        pool = self._ports
        if (pool, number) in had or (pool, number) in taken.took:
            return
        if number not in pool:
            detail = f"provided port is not in the valid range. The range of valid ports is {pool.low}-{pool.high}"
        elif not self._is_free(pool, number):
            detail = _ALLOCATED_PORT
        else:
            pool.take(number, taken.owner)
            taken.took.append((pool, number))
            return
        errors.append(invalid(path, number, detail))

    def _any_port(self, taken: Taken) -> int:
        try:
            number = self._choose(self._ports, taken)
        except Full:
            raise InternalError.of("failed to allocate a nodePort: range is full") from None
        taken.took.append((self._ports, number))
        return number


def _owner(service: Obj) -> Owner:
    meta = service.get("metadata") or {}
    return meta.get("namespace") or "", meta.get("name") or "", meta.get("uid") or ""


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def _families_of_endpoints(spec: Obj, families: list[str]) -> list[str]:
    """In place the policy of a Service that has no addresses and no pods: its endpoints may be of any family."""
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack"
    if spec["ipFamilyPolicy"] == "SingleStack":
        return families[:1]
    return families + [family for family in ("IPv4", "IPv6") if family not in families]


def _ports_of(spec: Obj) -> Iterator[int]:
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port["nodePort"]
    if spec.get("healthCheckNodePort"):
        yield spec["healthCheckNodePort"]
