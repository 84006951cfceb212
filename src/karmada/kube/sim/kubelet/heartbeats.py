"""Heartbeats of simulated nodes.

A kubelet renews its node's Lease every ten seconds; for thousands of simulated nodes those writes would dominate. So
they are virtual: every node has a phase within the ten seconds, hence its last heartbeat follows from the clock, and
nothing is written while no client reads it. `materialise` writes the current heartbeats before Leases are read; while a
client watches Leases (or the profile requires it) every heartbeat is written when it is due, one tenth of the nodes
each second. A failed node has no heartbeats; one that recovers also posts its conditions, which were set to Unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol
from zlib import crc32

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import LEASES, NODES
from karmada.kube.objects.meta import get_condition, make_owner
from karmada.kube.objects.times import micro_time, parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet.managed import is_managed
from karmada.kube.sim.kubelet.nodeobject import KUBELET_CONDITIONS, healthy

NAMESPACE = "kube-node-lease"
BEAT_SECONDS = 10
LEASE_SECONDS = 40
STATUS_SECONDS = 300
"""A kubelet posts an unchanged node status this seldom."""
_RETRY_SECONDS = 1.0
_AT_ONCE = 32
log = get_logger("heartbeats")


class Liveness(Protocol):
    def renewed(self, node_name: str) -> float:
        """Return the time of the node's last heartbeat, in wall time; 0 if there was none."""

    def beats(self, node_name: str) -> bool:
        """Return whether heartbeats continue until `on_change` reports otherwise, so that no resync is needed."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of each node that fails or works again."""


class LeaseLiveness:
    """Liveness from Leases in kube-node-lease, for nodes whose kubelets are elsewhere.

    Counted from the moment a renewal was seen, not from the time it names: clocks of nodes may be wrong.
    """

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._seen: dict[str, float] = {}
        context.informers.of(LEASES, NAMESPACE).add_handler(self._changed)

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            if old is not None:
                self._seen.pop(old["metadata"]["name"], None)
        elif old is None or _renew_time(old) != _renew_time(new):
            self._seen[new["metadata"]["name"]] = self._clock.now()

    def renewed(self, node_name: str) -> float:
        return self._seen.get(node_name, 0.0)

    def beats(self, node_name: str) -> bool:  # noqa: ARG002 - nobody announces that leases stop being renewed
        return False

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Never called: Leases have no event for a missing renewal."""


def _renew_time(lease: Obj) -> str:
    return str((lease.get("spec") or {}).get("renewTime") or "")


class VirtualHeartbeats:
    """A component: the heartbeats of all nodes, for kubelets and the node lifecycle controller."""

    name = "heartbeats"

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._client = context.client(KUBELET)
        self._always = context.profile.real_heartbeats
        self._nodes = context.informers.of(NODES)
        self._nodes.add_handler(self._node_changed)
        self._phases: list[set[str]] = [set() for _ in range(BEAT_SECONDS)]
        self._stopped: dict[str, float] = {}
        """Failed nodes, with their last heartbeat."""
        self._back: dict[str, float] = {}
        """Nodes that had failed, and when they came back: with a beat out of turn."""
        self._to_post: set[str] = set()
        self._written: dict[str, float] = {}
        self._watchers = 0
        self._listeners: list[Callable[[str], None]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None

    # queries

    def renewed(self, node_name: str) -> float:
        if node_name in self._stopped:
            return self._stopped[node_name]
        return self._last(node_name, BEAT_SECONDS) if self._is_ours(node_name) else 0.0

    def _last(self, node_name: str, every: int) -> float:
        """Return the last of the moments that come every so many seconds; not before the node was there."""
        now = self._clock.now()
        beat = max(now - (now - _phase(node_name)) % every, self._back.get(node_name, 0.0))
        node = self._nodes.get(Key("", node_name))
        return max(beat, parse_time(node["metadata"]["creationTimestamp"])) if node is not None else beat

    def _is_ours(self, node_name: str) -> bool:
        return node_name in self._phases[_phase(node_name)]

    def beats(self, node_name: str) -> bool:
        return self._is_ours(node_name) and node_name not in self._stopped

    def failed(self, node_name: str) -> bool:
        return node_name in self._stopped

    def on_change(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    # notifications

    def fail(self, nodes: Iterable[str]) -> None:
        """Stop the heartbeats of these nodes; their pods are not reconciled either."""
        for name in nodes:
            if name not in self._stopped:
                self._stopped[name] = self.renewed(name)
                self._post_later(name)
                self._notify(name)

    def heal(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            if self._stopped.pop(name, None) is not None:
                self._back[name] = self._clock.now()
                self._post_later(name)
                self._notify(name)

    def watched(self, watchers: int) -> None:
        """Set the number of clients that watch Leases; while there are any, every heartbeat is written."""
        if watchers and not self._beating:
            self._to_post.update(name for phase in self._phases for name in phase)
        self._watchers = watchers
        self._wake.set()

    def _notify(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)

    def _post_later(self, name: str) -> None:
        self._to_post.add(name)
        self._wake.set()

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            if old is not None:
                name = old["metadata"]["name"]
                self._phases[_phase(name)].discard(name)
                self._written.pop(name, None)
                self._stopped.pop(name, None)
                self._back.pop(name, None)
            return
        name = new["metadata"]["name"]
        if is_managed(new):
            self._phases[_phase(name)].add(name)
            if (name not in self._stopped and _is_unknown(new)) or (self._beating and name not in self._written):
                self._post_later(name)
        else:
            self._phases[_phase(name)].discard(name)

    # life cycle

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        tasks = [task for task in (self._task, self._writing) if task is not None]
        self._task = self._writing = None
        await cancel_and_wait(*tasks)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            names, self._to_post = self._to_post, set()
            await self._each(names, self._post)
            if self._beating:
                await self._clock.sleep(1.0 - self._clock.now() % 1.0)
                await self._each(self._phases[int(self._clock.now()) % BEAT_SECONDS], self._renew)
            elif self._to_post:
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                await self._wake.wait()

    @property
    def _beating(self) -> bool:
        return self._always or self._watchers > 0

    async def materialise(self, nodes: Iterable[str] | None = None) -> None:
        """Write what kubelets would have written by now: for these nodes, or for all.

        A concurrent caller waits for the same renewal.
        """
        if nodes is not None:
            await self._each([name for name in nodes if self._is_ours(name)], self._bring_up_to_date)
            return
        if self._writing is None or self._writing.done():
            names = [name for phase in self._phases for name in phase]
            self._writing = asyncio.create_task(self._each(names, self._bring_up_to_date), name="materialise leases")
        await asyncio.shield(self._writing)

    async def _each(self, names: Iterable[str], work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Work on some at a time; what fails is posted later."""
        waiting = list(names)
        for start in range(0, len(waiting), _AT_ONCE):
            batch = waiting[start : start + _AT_ONCE]
            results = await asyncio.gather(*(work(name) for name in batch), return_exceptions=True)
            for name, result in zip(batch, results, strict=True):
                if isinstance(result, (ApiError, ConnectionFailed)):
                    log.info("A node's state could not be written, trying again", node=name, err=str(result))
                    self._to_post.add(name)
                elif isinstance(result, BaseException):
                    raise result

    # writing

    async def _post(self, name: str) -> None:
        """Write a change of state: the lease with its last beat and, for a node that works, its conditions."""
        await self._renew(name)
        node = self._nodes.get(Key("", name))
        if node is not None and name not in self._stopped and _is_unknown(node):
            conditions = healthy(node, self._clock.now())
            await self._client.patch(
                NODES, name, "", {"status": {"conditions": conditions}}, type="strategic", subresource="status"
            )

    async def _renew(self, name: str) -> None:
        beat = self.renewed(name)
        node = self._nodes.get(Key("", name))
        if node is None or not beat or self._written.get(name) == beat:
            return
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": micro_time(beat)}
        try:
            await self._client.patch(LEASES, name, NAMESPACE, {"spec": spec}, type="merge")
        except NotFound:
            await self._create(node, spec)
        self._written[name] = beat

    async def _create(self, node: Obj, spec: Obj) -> None:
        metadata = {
            "name": node["metadata"]["name"],
            "namespace": NAMESPACE,
            "ownerReferences": [make_owner({"apiVersion": "v1", "kind": "Node", **node}, controller=False)],
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        await self._client.create(LEASES, lease)

    async def _bring_up_to_date(self, name: str) -> None:
        await self._renew(name)
        node = self._nodes.get(Key("", name))
        if node is None or name in self._stopped:
            return
        ready = get_condition((node.get("status") or {}).get("conditions"), "Ready")
        posted = rfc3339(self._last(name, STATUS_SECONDS))
        if ready is None or ready.get("status") == "Unknown" or (ready.get("lastHeartbeatTime") or "") >= posted:
            return
        conditions = [{"type": kind, "lastHeartbeatTime": posted} for kind in KUBELET_CONDITIONS]
        await self._client.patch(
            NODES, name, "", {"status": {"conditions": conditions}}, type="strategic", subresource="status"
        )


def _phase(node_name: str) -> int:
    return crc32(node_name.encode()) % BEAT_SECONDS


def _is_unknown(node: Obj) -> bool:
    ready = get_condition((node.get("status") or {}).get("conditions"), "Ready")
    return ready is not None and ready.get("status") == "Unknown"
