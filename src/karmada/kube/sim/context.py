"""What every component of a simulated cluster gets: clients, clock, profile, and one random generator.

Nothing here uses a server directly; with a Context over an HTTPS client the same components run against any API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import EventRecorder, EventWriter
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import set_status
from karmada.kube.sim.kubelet.filesystem import NodeVolumes
from karmada.kube.sim.profile import Delay, Profile

CONTROLLER_MANAGER, SCHEDULER, KUBELET = "kube-controller-manager", "kube-scheduler", "kubelet"
_SEEN_SECONDS = 30.0
_EVENTS = 100_000
"""One event recorder for all kubelets of a cluster."""


class Context:
    def __init__(self, connect: Callable[[str], Client], informers: Informers, clock: Clock, profile: Profile) -> None:
        """`connect` gives a client that writes under the given name (its user agent, hence its field manager)."""
        self._connect = connect
        self.informers = informers
        self.clock = clock
        self.profile = profile
        self.random = Random(profile.seed)
        self._clients: dict[str, Client] = {}
        self.volumes = NodeVolumes()
        """Files that the containers of the cluster have written."""
        self.recorders: dict[str, EventRecorder] = {}
        """Started and stopped by the cluster."""

    def client(self, name: str = CONTROLLER_MANAGER) -> Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self._connect(name)
        return client

    def recorder(self, component: str) -> EventRecorder:
        recorder = self.recorders.get(component)
        if recorder is None:
            name = {"default-scheduler": SCHEDULER, "kubelet": KUBELET}.get(component, CONTROLLER_MANAGER)
            client = self.client(name)
            writer = EventWriter(client, clock=self.clock, waiting=_EVENTS)
            recorder = EventRecorder(client, component, host="", writer=writer)
            self.recorders[component] = recorder
        return recorder

    def draw(self, delay: Delay) -> float:
        return delay.draw(self.random)

    async def put_status(self, kind: GVR, obj: Obj, status: Obj) -> Obj:
        """Give an object this status and wait until the informer has it; returns the object, which may be deleted."""
        try:
            obj = (await set_status(self.client(), kind, obj, status)).object
        except NotFound:
            return obj
        await self.until_seen(self.informers.of(kind), [obj])
        return obj

    async def until_seen(self, informer: Informer, written: Iterable[Obj]) -> None:
        """Wait until an informer has these writes, so that the next reconcile does not repeat them."""
        newest = max((int(obj["metadata"]["resourceVersion"]) for obj in written), default=0)
        if newest > int(informer.resource_version or 0):
            seen = informer.until(lambda: int(informer.resource_version or 0) >= newest)
            await with_timeout(self.clock, seen, _SEEN_SECONDS)
