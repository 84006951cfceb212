"""Registration: creates the nodes of the profile's pools, and posts their status as kubelets do.

A node is created not ready and posts Ready a moment later; other controllers set the taints. Pools may change at any
time: missing nodes are created, nodes created here that belong to no pool any more are deleted, the others get new
labels, taints and sizes. A node that a user deletes is recreated at the next start only, as with a real kubelet. A
node's slot of pod addresses is read from the nodes themselves, so a restart changes nothing. Simulated nodes that users
create get a status and, if they have none, a podCIDR.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from karmada.kube.objects.errors import AlreadyExists, NotFound
from karmada.kube.objects.gvrs import NODES
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet import nodeobject
from karmada.kube.sim.kubelet.managed import internal_ip, is_managed, pool_of
from karmada.kube.sim.profile import NodePool, Profile

ZONE = "topology.kubernetes.io/zone"
_LONGEST_START = 0.9


class Place(NamedTuple):
    """Which node of which pool."""

    pool: NodePool
    ordinal: int


class UnknownNode(KeyError):
    """No simulated node has that name."""


class NodeRegistration(Reconciler):
    name = "node-registration"
    workers = 4

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.clock
        self._client = context.client(KUBELET)
        self._recorder = context.recorder("kubelet")
        self._nodes = context.informers.of(NODES)
        self._nodes.add_handler(self._note_slots)
        self._slots: dict[int, str] = {}
        self._reserved: dict[str, int] = {}
        """Slots of nodes that are about to be made."""
        self._lowest = 0
        self._places: dict[str, Place] = {}
        self._extended: set[str] = set()
        """Extended resources that a pool has or had; others on a node are foreign."""
        self._former: dict[str, NodePool] = {}
        """Pool of a node before it changed, until the node has taken the change over."""
        self._to_make: set[str] = set()
        self._seen: set[str] = set()
        self._ready_at: dict[str, float] = {}
        self._pressures: dict[str, set[str]] = {}
        self._pending: set[str] = set()
        self._settled = asyncio.Event()
        self._add: Callable[[Key], None] = lambda _: None
        self.watches = (Watch(NODES, changed=("metadata.labels", "spec", "status")),)
        self.set_pools(context.profile.pools)

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add
        for name in self._places:
            add(Key("", name))

    # requests

    def set_pools(self, pools: Iterable[NodePool]) -> None:
        """Have exactly the nodes of these pools. ValueError when they cannot all have pod addresses."""
        pools = tuple(pools)
        places = places_of(self._context.profile, pools)
        before, self._places = self._places, places
        self._extended.update(name for pool in pools for name in pool.extended)
        for name, place in places.items():
            if name in before and before[name].pool != place.pool:
                self._former.setdefault(name, before[name].pool)
        there = {node["metadata"]["name"]: node for node in self._nodes.list()}
        self._to_make = {name for name in places if name not in there}
        self._pending = {*before, *places, *(name for name, node in there.items() if pool_of(node))}
        self._check_settled()
        for name in sorted(self._pending, key=_natural):
            self._add(Key("", name))

    async def settled(self) -> None:
        """Wait until every node matches its pool."""
        await self._settled.wait()

    def select(self, nodes: Iterable[str] = (), *, pool: str = "", zone: str = "") -> list[str]:
        """Names of simulated nodes: those named, of that pool and in that zone, as far as these are given."""
        ours = {node["metadata"]["name"]: node for node in self._nodes.list() if is_managed(node)}
        named = list(nodes)
        for name in named:
            if name not in ours:
                raise UnknownNode(f'no simulated node "{name}" (known: {", ".join(sorted(ours, key=_natural))})')
        return [
            name
            for name in sorted(named or ours, key=_natural)
            if (not pool or pool_of(ours[name]) == pool)
            and (not zone or (ours[name]["metadata"].get("labels") or {}).get(ZONE) == zone)
        ]

    def set_pressure(self, nodes: Iterable[str], condition: str, on: bool) -> None:
        """MemoryPressure, DiskPressure or PIDPressure of these nodes."""
        if condition not in nodeobject.KUBELET_CONDITIONS[:-1]:
            known = ", ".join(nodeobject.KUBELET_CONDITIONS[:-1])
            raise ValueError(f'unknown pressure "{condition}" (known: {known})')
        for name in nodes:
            pressures = self._pressures.setdefault(name, set())
            (pressures.add if on else pressures.discard)(condition)
            self._add(Key("", name))

    # slots

    def _note_slots(self, old: Obj | None, new: Obj | None) -> None:
        before, after = _pod_range(old), _pod_range(new)
        if before == after:
            return
        for slot in self._slots_in(before):
            self._slots.pop(slot, None)
            self._lowest = min(self._lowest, slot)
        for slot in self._slots_in(after):
            self._slots[slot] = (new or {})["metadata"]["name"]

    def _slots_in(self, network: str) -> range:
        return nodeobject.slots_taken(self._context.profile.pod_cidr, network) if network else range(0)

    def _free_slot(self, name: str, count: int) -> int:
        """Take the lowest index that is free; it is the node's from now on."""
        if name in self._reserved:
            return self._reserved[name]
        while self._lowest in self._slots:
            self._lowest += 1
        slot = -(-self._lowest // count) * count
        while any(candidate in self._slots for candidate in range(slot, slot + count)):
            slot += count
        for taken in range(slot, slot + count):
            self._slots[taken] = name
        self._reserved[name] = slot
        return slot

    # reconciling

    async def reconcile(self, key: Key) -> Result:
        place, node = self._places.get(key.name), self._nodes.get(key)
        if node is None:
            if place is not None and key.name in self._to_make:
                await self._make(key.name, place)
            else:
                self._seen.discard(key.name)
                self._done(key.name)
            return Done
        if place is None and pool_of(node):
            await self._remove(node)
            return Done
        if not is_managed(node):
            return Done
        self._to_make.discard(key.name)
        self._reserved.pop(key.name, None)
        await (self._give_range(node) if place is None else self._follow_pool(node, place))
        left = self._ready_at.get(key.name, 0.0) - self._clock.monotonic()
        if left > 0:
            return requeue(left)
        await self._post(node, place)
        self._done(key.name)
        return Done

    def _done(self, name: str) -> None:
        self._ready_at.pop(name, None)
        self._pending.discard(name)
        self._check_settled()

    def _check_settled(self) -> None:
        if self._pending:
            self._settled.clear()
        else:
            self._settled.set()

    async def _make(self, name: str, place: Place) -> None:
        profile = self._context.profile
        slot = self._free_slot(name, nodeobject.slots_of(place.pool))
        delay = min(self._context.draw(profile.latencies.ready), _LONGEST_START)
        self._ready_at[name] = self._clock.monotonic() + delay
        node = nodeobject.node_object(profile, place.pool, place.ordinal, name, slot, self._clock.now())
        try:
            made = await self._client.create(NODES, node)
        except AlreadyExists:
            return  # its event follows
        self._to_make.discard(name)
        self._seen.add(name)
        self._recorder.event(made, NORMAL, "Starting", "Starting kubelet.", host=name)

    async def _remove(self, node: Obj) -> None:
        metadata = node["metadata"]
        try:
            await self._client.delete(NODES, metadata["name"], uid=metadata["uid"])
        except NotFound:
            self._done(metadata["name"])
        self._pressures.pop(metadata["name"], None)

    async def _give_range(self, node: Obj) -> None:
        """Give a node that has none a range for its pods."""
        if not _pod_range(node):
            name = node["metadata"]["name"]
            network = nodeobject.pod_range(self._context.profile.pod_cidr, self._free_slot(name, 1), 1)
            await self._client.patch(NODES, name, "", {"spec": {"podCIDR": network, "podCIDRs": [network]}})

    async def _follow_pool(self, node: Obj, place: Place) -> None:
        """Give a node the labels and taints of a pool that changed, and a node of before the start what it lacks."""
        name = node["metadata"]["name"]
        former = self._former.get(name)
        if former is None and name in self._seen:
            return
        patch: Obj = {}
        labels = self._labels_patch(node, place, former)
        if labels:
            patch["metadata"] = {"labels": labels}
        taints = (node.get("spec") or {}).get("taints") or []
        wanted = _retainted(taints, former, place.pool) if former is not None else taints
        if wanted != taints:
            patch["spec"] = {"taints": wanted or None}
            patch.setdefault("metadata", {})["resourceVersion"] = node["metadata"]["resourceVersion"]
        if patch:
            await self._client.patch(NODES, name, "", patch, type="merge")
        self._seen.add(name)
        self._former.pop(name, None)

    def _labels_patch(self, node: Obj, place: Place, former: NodePool | None) -> dict[str, str | None]:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        wanted = nodeobject.labels_of(self._context.profile, place.pool, place.ordinal, name)
        patch: dict[str, str | None] = {key: value for key, value in wanted.items() if labels.get(key) != value}
        if former is not None:
            old = nodeobject.labels_of(self._context.profile, former, place.ordinal, name)
            patch |= {key: None for key in old if key in labels and key not in wanted}
        return patch

    async def _post(self, node: Obj, place: Place | None) -> None:
        """Post the status if it differs; the conditions of a lost node (Unknown) are left to the heartbeats."""
        name, status = node["metadata"]["name"], node.get("status") or {}
        ready = get_condition(status.get("conditions"), "Ready")
        if ready is not None and ready.get("status") == "Unknown":
            return
        patch: Obj = {}
        conditions = nodeobject.healthy(node, self._clock.now(), self._pressures.get(name, ()))
        if not _same_conditions(status.get("conditions"), conditions):
            patch["conditions"] = conditions
        patch |= self._facts(node, place)
        if not patch:
            return
        written = await self._client.patch(NODES, name, "", {"status": patch}, type="strategic", subresource="status")
        if ready is None or ready.get("status") != "True":
            self._recorder.event(written, NORMAL, "NodeReady", f"Node {name} status is now: NodeReady", host=name)

    def _facts(self, node: Obj, place: Place | None) -> Obj:
        """Sizes and names that are missing or not as the pool has them."""
        name, status = node["metadata"]["name"], node.get("status") or {}
        changed: Obj = {}
        if place is not None:
            capacity = nodeobject.capacity_of(place.pool) | self._foreign(status)
            for field, wanted in (("capacity", capacity), ("allocatable", nodeobject.allocatable_of(capacity))):
                if status.get(field) != wanted:
                    removed = {key: None for key in status.get(field) or () if key not in wanted}
                    changed[field] = {**wanted, **removed}
            return changed
        if not internal_ip(node):
            slot = next(iter(self._slots_in(_pod_range(node))), self._reserved.get(name, 0))
            address = nodeobject.host_address(self._context.profile.node_cidr, slot)
            changed["addresses"] = nodeobject.addresses_of(name, address)
        if not (status.get("nodeInfo") or {}).get("kubeletVersion"):
            changed["nodeInfo"] = nodeobject.node_info(name, self._context.profile, "amd64")
        if not status.get("capacity"):
            capacity = nodeobject.capacity_of(NodePool())
            changed |= {"capacity": capacity, "allocatable": nodeobject.allocatable_of(capacity)}
        return changed

    def _foreign(self, status: Obj) -> dict[str, str]:
        """Return extended resources that device plug-ins or users have set on the node; they stay."""
        capacity = status.get("capacity") or {}
        return {name: amount for name, amount in capacity.items() if "/" in name and name not in self._extended}


def places_of(profile: Profile, pools: Sequence[NodePool]) -> dict[str, Place]:
    """Return the nodes that there have to be, by name.

    ValueError when their pod addresses do not fit into the cluster's.
    """
    places: dict[str, Place] = {}
    for pool in pools:
        for ordinal in range(1, pool.count + 1):
            name = f"{profile.name}-{pool.name}-{ordinal}"
            if name in places:
                raise ValueError(f'two pools are named "{pool.name}"')
            places[name] = Place(pool, ordinal)
    needed = sum(nodeobject.slots_of(pool) * pool.count for pool in pools)
    room = nodeobject.slots_in(profile.pod_cidr)
    if needed > room:
        raise ValueError(
            f"the pools' {len(places)} nodes need {needed} ranges of 256 pod addresses, but {profile.pod_cidr} has "
            f"{room}: give the cluster a larger pod_cidr"
        )
    return places


def _pod_range(node: Obj | None) -> str:
    return str((node.get("spec") or {}).get("podCIDR") or "") if node is not None else ""


def _retainted(taints: Iterable[Obj], former: NodePool, pool: NodePool) -> list[Obj]:
    """Return the taints with those of the pool as it is instead of those as it was."""
    gone, wanted = nodeobject.taints_of(former), nodeobject.taints_of(pool)
    kept = [taint for taint in taints if _plain(taint) not in gone or _plain(taint) in wanted]
    present = [_plain(taint) for taint in kept]
    return kept + [taint for taint in wanted if taint not in present]


def _plain(taint: Obj) -> Obj:
    return {key: value for key, value in taint.items() if key != "timeAdded"}


def _same_conditions(stored: Any, wanted: list[Obj]) -> bool:
    """Return whether the conditions are equal, apart from the time of the last heartbeat."""
    return all(
        (old := get_condition(stored, condition["type"])) is not None
        and all(old.get(key) == condition[key] for key in ("status", "reason", "message"))
        for condition in wanted
    )


def _natural(name: str) -> tuple[str, int]:
    """node-10 after node-9."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (name, 0)
