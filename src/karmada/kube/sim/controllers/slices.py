"""Spreading endpoints over EndpointSlices with as few writes as possible.

Endpoints with the same address family and the same ports form a group; a slice belongs to one group and holds at most
a hundred. Endpoints stay in the slice they are in. New ones go into slices of their group that have room, those that
are written anyway first, and only then into new slices. A slice that becomes empty, or whose ports are no longer used,
is reused instead of creating a new one, so that its name stays the same when a Service's ports change. A Service
without endpoints keeps one empty slice per family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from karmada.kube.objects.types import Obj

MOST = 100
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"


@dataclass(frozen=True)
class Group:
    """The endpoints and ports that slices of one kind have to hold."""

    address_type: str
    ports: list[Obj]
    endpoints: list[Obj]


@dataclass
class Content:
    """The content that one slice has to get; `slice` is None for one that must be made."""

    slice: Obj | None
    address_type: str
    ports: list[Obj]
    endpoints: list[Obj]

    @property
    def changes(self) -> bool:
        if self.slice is None:
            return True
        return ports_of(self.slice) != self.ports or endpoints_of(self.slice) != self.endpoints


@dataclass
class Plan:
    contents: list[Content] = field(default_factory=list)
    """Every slice that is to exist, changed or not."""
    surplus: list[Obj] = field(default_factory=list)
    """Slices to delete."""


def ports_of(obj: Obj) -> list[Obj]:
    return obj.get("ports") or []


def endpoints_of(obj: Obj) -> list[Obj]:
    return obj.get("endpoints") or []


def identity(endpoint: Obj) -> tuple[Any, ...]:
    """Return what makes two endpoints the same one: the address and the object behind it."""
    return (*endpoint["addresses"], (endpoint.get("targetRef") or {}).get("uid"))


def group_up(entries: Iterable[tuple[str, list[Obj], Obj]]) -> list[Group]:
    """From (family, ports, endpoint) to groups; endpoints keep their order."""
    found: dict[tuple[Any, ...], Group] = {}
    for address_type, ports, endpoint in entries:
        key = (address_type, *_frozen(ports))
        group = found.get(key)
        if group is None:
            group = found[key] = Group(address_type, ports, [])
        group.endpoints.append(endpoint)
    return list(found.values())


def _frozen(ports: Sequence[Obj]) -> Iterable[tuple[Any, ...]]:
    return (tuple(port.get(key) for key in ("name", "protocol", "port", "appProtocol")) for port in ports)


def plan(existing: Sequence[Obj], groups: Sequence[Group], families: Iterable[str] = (), most: int = MOST) -> Plan:
    """`families`: those in which a slice is kept though there is nothing to put into it."""
    result = Plan()
    free = {obj["metadata"]["name"]: obj for obj in existing}
    for group in groups:
        slices = [obj for obj in free.values() if _fits(obj, group)]
        for obj in slices:
            del free[obj["metadata"]["name"]]
        contents, empty = _fill(group, slices, most)
        result.contents += contents
        free |= {obj["metadata"]["name"]: obj for obj in empty}
    _keep_one(result, [family for family in families if all(c.address_type != family for c in result.contents)])
    _reuse(result, free)
    result.surplus = list(free.values())
    return result


def _fits(obj: Obj, group: Group) -> bool:
    return obj.get("addressType") == group.address_type and ports_of(obj) == group.ports


def _fill(group: Group, slices: Sequence[Obj], most: int) -> tuple[list[Content], list[Obj]]:
    """Return the group's endpoints in its slices, and the slices that none is left in."""
    wanted = {identity(endpoint): endpoint for endpoint in group.endpoints}
    contents = []
    for obj in slices:
        kept = []
        for endpoint in endpoints_of(obj)[:most]:
            current = wanted.pop(identity(endpoint), None)
            if current is not None:
                kept.append(current)
        contents.append(Content(obj, group.address_type, group.ports, kept))
    left = list(wanted.values())
    if left:
        for content in sorted(contents, key=lambda content: (not content.changes, -len(content.endpoints))):
            room = most - len(content.endpoints)
            content.endpoints += left[:room]
            left = left[room:]
    contents += [
        Content(None, group.address_type, group.ports, left[start : start + most])
        for start in range(0, len(left), most)
    ]
    return (
        [content for content in contents if content.endpoints],
        [content.slice for content in contents if content.slice is not None and not content.endpoints],
    )


def _keep_one(result: Plan, families: Iterable[str]) -> None:
    result.contents += [Content(None, family, [], []) for family in families]


def _reuse(result: Plan, free: dict[str, Obj]) -> None:
    for content in result.contents:
        if content.slice is None:
            spare = [obj for obj in free.values() if obj.get("addressType") == content.address_type]
            if spare:
                best = min(spare, key=lambda obj: (ports_of(obj) != content.ports, obj["metadata"]["name"]))
                content.slice = free.pop(best["metadata"]["name"])
