"""Garbage collector: what becomes of objects whose owners go.

There is a slim informer for every resource that can be listed and deleted. Of what they show, a graph keeps the objects
that have owners or whose deletion waits: of a million objects that are nobody's dependents nothing is kept here. Owners
are matched by uid. Three things put an object on the queue: it has owners that may be gone, it is being deleted and
must first let go of its dependents (`orphan`), or wait for them (`foregroundDeletion`). One whose owners are all seen
to be there is not queued before one of them goes. Before anything is deleted, an owner that neither the graph nor its
informer knows is read from the server, so a slow informer never costs an object; only owners whose deletion was
observed are known to be absent without a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast

import msgspec

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping, NoMatch
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR, GroupKind, GroupResource, GroupVersion
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.queue import WorkQueue
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.deletes import FOREGROUND, ORPHAN

SOLID, GOING, ABSENT, INVALID = "solid", "going", "absent", "invalid"
"""An owner is there to stay; waiting for its dependents to go; not there; or namespaced, of an object that is not."""
_REMEMBERED = 1000
IGNORED = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
_log = get_logger("garbage-collector")


class _Metadata(TypedDict, total=False):
    """The metadata of an object that the graph needs."""

    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    ownerReferences: Any
    finalizers: Any
    deletionTimestamp: Any


class _Slim(TypedDict):
    metadata: _Metadata


_KEPT = tuple(_Metadata.__annotations__)
_TIES = ("uid", "ownerReferences", "finalizers", "deletionTimestamp")
_decode = msgspec.json.Decoder(_Slim).decode


def slim(obj: Obj) -> Obj:
    """Return what the graph needs of an object, and no more."""
    meta = obj["metadata"]
    return {"metadata": {key: meta[key] for key in _KEPT if key in meta}}


def parse_slim(raw: bytes) -> Obj:
    """Parse what the graph needs of an object's bytes: the rest is skipped without being made."""
    return cast("Obj", _decode(raw))


TIES: Final = Shape("ties", slim, parse_slim, only_metadata=True, as_docs=True)


def _is_tied_alike(old: Obj, new: Obj) -> bool:
    """Return whether nothing of a slim object has changed that matters here."""
    before, now = old["metadata"], new["metadata"]
    for key in _TIES:  # noqa: SIM110 - a call for each of them would cost more than the comparison
        if before.get(key) != now.get(key):
            return False
    return True


@dataclass(slots=True)
class Node:
    gvr: GVR
    namespace: str
    name: str
    uid: str
    owners: Sequence[Obj] = ()
    finalizers: Sequence[str] = ()
    deleting: bool = False

    @property
    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def waits(self) -> bool:
        """For its dependents to let go of it, or to go."""
        return self.deleting and (ORPHAN in self.finalizers or FOREGROUND in self.finalizers)


class Graph:
    """Objects that have owners or whose deletion waits, by uid; and the dependents of every owner."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}

    def dependents(self, uid: str) -> list[Node]:
        return [self.nodes[d] for d in self._dependents.get(uid, ()) if d in self.nodes]

    def put(self, node: Node) -> Node | None:
        old = self.nodes.get(node.uid)
        if old is not None:
            self._unlink(old)
        self.nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner["uid"], set()).add(node.uid)
        return old

    def drop(self, uid: str) -> Node | None:
        node = self.nodes.pop(uid, None)
        if node is not None:
            self._unlink(node)
        return node

    def _unlink(self, node: Node) -> None:
        for owner in node.owners:
            dependents = self._dependents.get(owner["uid"])
            if dependents is not None:
                dependents.discard(node.uid)
                if not dependents:
                    del self._dependents[owner["uid"]]


class GarbageCollector:
    name = "garbage-collector"
    workers = 4

    def __init__(self, client: Client, clock: Clock, after: Callable[[], Awaitable[object]] | None = None) -> None:
        """`after`: what it waits for before it reads all objects."""
        self._after = after
        self._client = client
        self._clock = clock
        self.graph = Graph()
        self.queue: WorkQueue[str] = WorkQueue(self.name, self._work, limit=self.workers, clock=clock)
        self._informers: dict[GVR, Informer] = {}
        self._kinds: dict[GroupKind, Mapping] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._rescan = asyncio.Event()
        self._listing = True
        """True if owners of what is listed may be listed later."""
        self._absent: dict[str, None] = {}
        """Owners that were seen to go, latest last; their kind may be gone by the time their dependents are judged."""

    async def start(self) -> None:
        """Start, and return at once: it works when it knows all objects, and nothing has to wait for that."""
        self._tasks = [asyncio.create_task(self._begin(), name=self.name)]

    async def _begin(self) -> None:
        if self._after is not None:
            await self._after()
        await self._follow_in_the_end()
        for informer in list(self._informers.values()):
            await informer.wait_synced()
        await self._queue_listed()
        self.queue.start()
        await self._watch_resources()

    async def _queue_listed(self) -> None:
        """Queue what there was before, now that all owners that exist are seen."""
        self._listing = False
        turn = TimeSlice()
        for node in list(self.graph.nodes.values()):
            if node.waits or not self._is_owned(node):
                self.queue.add(node.uid)
            if turn.is_over():
                await turn.next()

    async def stop(self) -> None:
        await self.queue.stop(0)
        tasks, self._tasks = self._tasks, []
        await cancel_and_wait(*tasks)
        for informer in self._informers.values():
            await informer.stop()
        self._informers.clear()

    def resources_changed(self) -> None:
        """Look again which resources there are, soon."""
        self._rescan.set()

    async def _watch_resources(self) -> None:
        while True:
            await self._rescan.wait()
            await self._follow_in_the_end()

    async def _follow_in_the_end(self) -> None:
        while True:
            self._rescan.clear()
            try:
                return await self._follow()
            except Exception as error:  # noqa: BLE001 - without this list nothing new is ever collected
                _log.exception("Cannot follow the served resources, trying again", error)
                await self._clock.sleep(1.0)

    async def _follow(self) -> None:
        """Have an informer for every resource that can be collected, and none for those that went."""
        catalog = await self._client.mapper.refresh()
        self._kinds = catalog.by_group_kind
        wanted = {m.gvr for m in catalog.by_group_resource.values() if _collectable(m)}
        wanted |= {gvr for gvr in self._informers if gvr.group_version in catalog.failed}  # it will answer again
        for gvr in wanted - self._informers.keys():
            informer = Informer(self._client, gvr, shape=TIES, clock=self._clock)
            informer.add_handler(self._handler(gvr))
            informer.start()
            self._informers[gvr] = informer
        for gvr in self._informers.keys() - wanted:
            informer = self._informers.pop(gvr)
            await informer.stop()
            async for obj in informer.scan():
                node = self.graph.nodes.get(obj["metadata"]["uid"])
                if node is None or node.gvr == gvr:  # else it is followed in another version
                    self._forget(obj["metadata"]["uid"])

    def _handler(self, gvr: GVR) -> Handler:
        def changed(old: Obj | None, new: Obj | None) -> None:
            if new is None:
                assert old is not None
                self._deleted(old["metadata"]["uid"])
            elif old is None or not _is_tied_alike(old, new):
                self._learn(gvr, new["metadata"])

        return changed

    def _learn(self, gvr: GVR, meta: Obj) -> None:
        uid, owners, deleting = meta["uid"], meta.get("ownerReferences") or (), "deletionTimestamp" in meta
        if not owners and not deleting and uid not in self.graph.nodes:
            return  # as most objects: the graph does not keep it
        node = Node(gvr, meta.get("namespace", ""), meta["name"], uid, owners, meta.get("finalizers") or (), deleting)
        old = self.graph.put(node) if node.owners or node.waits else self.graph.drop(node.uid)
        has_new_owners = bool(node.owners) and (old is None or old.owners != node.owners)
        if not self._listing and (node.waits or (has_new_owners and not self._is_owned(node))):
            self.queue.add(node.uid)
        if node.waits_for_dependents and not (old and old.waits_for_dependents):
            self._add(d.uid for d in self.graph.dependents(node.uid))
        if old is not None and old.owners != node.owners:
            self._add(o["uid"] for o in old.owners if o not in node.owners and o["uid"] in self.graph.nodes)

    def _deleted(self, uid: str) -> None:
        if self.graph.dependents(uid):
            self._absent[uid] = None
            if len(self._absent) > _REMEMBERED:
                del self._absent[next(iter(self._absent))]
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        dependents = self.graph.dependents(uid)
        node = self.graph.drop(uid)
        self._add(d.uid for d in dependents)
        if node is not None:
            self._add(o["uid"] for o in node.owners if o["uid"] in self.graph.nodes)

    def _add(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.queue.add(uid)

    async def _work(self, uid: str) -> None:
        try:
            await self.process(uid)
            self.queue.forget(uid)
        except (ApiError, NoMatch) as error:
            _log.v(1).info("Trying again", uid=uid, err=str(error))
            self.queue.add_rate_limited(uid)
        except Exception as error:  # noqa: BLE001 - one object's trouble must not stop the others
            _log.exception("Collecting failed", error, uid=uid)
            self.queue.add_rate_limited(uid)

    async def process(self, uid: str) -> None:
        node = self.graph.nodes.get(uid)
        if node is None:
            return
        if node.deleting and ORPHAN in node.finalizers:
            await self._orphan(node)
        elif node.waits_for_dependents:
            await self._wait_for_dependents(node)
        elif node.owners and not node.deleting:
            await self._judge(node)

    async def _orphan(self, node: Node) -> None:
        for dependent in self.graph.dependents(node.uid):
            await self._change_owners(dependent, lambda owners: [o for o in owners if o["uid"] != node.uid])
        await self._drop_finalizer(node, ORPHAN)

    async def _wait_for_dependents(self, node: Node) -> None:
        dependents = self.graph.dependents(node.uid)
        blocking = [
            d for d in dependents if any(o["uid"] == node.uid and o.get("blockOwnerDeletion") for o in d.owners)
        ]
        if not blocking:
            await self._drop_finalizer(node, FOREGROUND)
            return
        self._add(d.uid for d in dependents if not d.deleting)

    async def _judge(self, node: Node) -> None:
        """Delete an object none of whose owners will stay; else let it forget the owners that are gone."""
        states = {
            owner["uid"]: self._known_state(node, owner) or await self._look_up(node, owner) for owner in node.owners
        }
        if INVALID in states.values():
            _log.v(2).info("Left alone: it is cluster-scoped and its owner is not", name=node.name)
            return
        gone = {uid for uid, state in states.items() if state != SOLID}
        if len(gone) < len(states):
            if gone:
                await self._change_owners(node, lambda owners: [o for o in owners if o["uid"] not in gone])
            return
        policy = "Background"
        dependents = self.graph.dependents(node.uid)
        if GOING in states.values() and dependents:
            policy = "Foreground"
            if any(d.waits_for_dependents for d in dependents):  # a circle: somebody must stop waiting
                await self._change_owners(node, _unblocking)
        elif ORPHAN in node.finalizers:
            policy = "Orphan"
        elif FOREGROUND in node.finalizers:
            policy = "Foreground"
        try:
            await self._client.delete(node.gvr, node.name, node.namespace, propagation=policy, uid=node.uid)
        except (NotFound, Conflict) as error:
            _log.v(2).info("Gone already", name=node.name, namespace=node.namespace, err=error.message)

    def _is_owned(self, node: Node) -> bool:
        """Return whether all owners are seen to be there to stay: when one goes, its dependents are queued."""
        return all(self._known_state(node, owner) == SOLID for owner in node.owners)

    def _known_state(self, node: Node, owner: Obj) -> str:
        """Return the state of an owner, by the graph or its informer; empty if neither knows it."""
        known = self.graph.nodes.get(owner["uid"])
        if known is None or known.name != owner["name"]:
            return ABSENT if owner["uid"] in self._absent else SOLID if self._is_shown(node, owner) else ""
        if known.namespace and known.namespace != node.namespace:
            return ABSENT if node.namespace else INVALID
        return GOING if known.waits_for_dependents else SOLID

    def _is_shown(self, node: Node, owner: Obj) -> bool:
        """Return whether an informer shows this owner, in a place where it may own the object."""
        mapping = self._kinds.get(_group_kind(owner))
        informer = self._informers.get(mapping.gvr) if mapping is not None else None
        if mapping is None or informer is None or (mapping.namespaced and not node.namespace):
            return False
        shown = informer.peek(Key(node.namespace if mapping.namespaced else "", owner["name"]))
        return shown is not None and shown["metadata"]["uid"] == owner["uid"]

    async def _look_up(self, node: Node, owner: Obj) -> str:
        """Return the state of an owner that is not known, from the server."""
        mapping = await self._client.mapper.mapping(_group_kind(owner))
        if mapping.namespaced and not node.namespace:
            return INVALID
        try:
            live = await self._client.get(mapping.gvr, owner["name"], node.namespace if mapping.namespaced else "")
        except NotFound:
            return ABSENT
        return SOLID if live["metadata"]["uid"] == owner["uid"] else ABSENT

    async def _change_owners(self, node: Node, change: Callable[[list[Obj]], list[Obj]]) -> None:
        try:
            live = await self._client.get(node.gvr, node.name, node.namespace)
            meta = live["metadata"]
            if meta["uid"] != node.uid:
                return
            owners = change(meta.get("ownerReferences") or [])
            patch = {"metadata": {"ownerReferences": owners or None, "resourceVersion": meta["resourceVersion"]}}
            await self._client.patch(node.gvr, node.name, node.namespace, patch)
        except NotFound:
            return

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        try:
            live = await self._client.get(node.gvr, node.name, node.namespace)
            meta = live["metadata"]
            if meta["uid"] != node.uid or finalizer not in (meta.get("finalizers") or []):
                return
            kept = [f for f in meta["finalizers"] if f != finalizer]
            patch = {"metadata": {"finalizers": kept or None, "resourceVersion": meta["resourceVersion"]}}
            await self._client.patch(node.gvr, node.name, node.namespace, patch)
        except NotFound:
            return


def _group_kind(owner: Obj) -> GroupKind:
    return GroupKind(GroupVersion.parse(owner["apiVersion"]).group, owner["kind"])


def _unblocking(owners: list[Obj]) -> list[Obj]:
    return [{**owner, "blockOwnerDeletion": False} for owner in owners]


def _collectable(mapping: Mapping) -> bool:
    return mapping.allows("list", "watch", "delete") and mapping.gvr.group_resource not in IGNORED
