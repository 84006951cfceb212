"""The Services of a cluster that runs processes: a TCP relay at each of their addresses, and the file of their names.

It does what kube-proxy and the cluster's DNS do elsewhere: whose EndpointSlices they are and where their addresses
lead does not matter. A relay listens while its Service has ready endpoints, so that connections are refused otherwise;
each connection goes to the next endpoint in turn. Simulated pods of the cluster respond over a relay as over a
forwarded port. Where this user may not listen on a port below 1024, another one is used, which
programs find by the Service's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import NODES, PODS, SERVICES, SLICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.addresses.service_routing import SERVICE_NAME
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.managed import internal_ip
from karmada.kube.sim.processes.files import replace_file
from karmada.kube.sim.processes.network import Connection, Listener, Network
from karmada.kube.sim.processes.routes import Backend, Frontend, backends, frontends, names_of

_BY_SERVICE = "service"
_CONNECT_SECONDS = 5.0
log = get_logger("service-relays")

ServeSimulated = Callable[[Obj, int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""(pod, port, reader, writer): serve a connection to a port of a simulated pod."""
Find = Callable[[str], list[tuple[Backend, Obj | None]]]
"""The backends of a port by its name, with their pods."""
Connect = Callable[[Backend, Obj | None, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""Serve a connection by a backend; False when that does not accept connections."""


class ServiceRelays(Reconciler):
    name = "service-relays"
    workers = 4

    def __init__(self, context: Context, names_file: Path, network: Network, simulated: ServeSimulated) -> None:
        """Make it; `simulated` serves connections to simulated pods."""
        self._names_file = names_file
        self._network = network
        self._simulated = simulated
        self._services = context.informers.of(SERVICES)
        self._slices = context.informers.of(SLICES, indexes={_BY_SERVICE: _index_by_service})
        self._pods = context.informers.of(PODS)
        self._nodes = context.informers.of(NODES)
        self.is_process: Callable[[Obj], bool] = lambda _pod: False
        self._relays: dict[Key, dict[Frontend, _Relay]] = {}
        self._names: dict[Key, dict[str, Any]] = {}
        self.watches = (
            Watch(SERVICES),
            Watch(SLICES, map_to=_service_of),
            Watch(NODES, when=_address_changed, map_to=self._with_node_ports),
        )

    async def reconcile(self, key: Key) -> Result:
        service = self._services.get(key)
        slices = self._slices.by_index(_BY_SERVICE, f"{key.namespace}/{key.name}")
        wanted = frontends(service, self._node_addresses(service)) if service is not None else set()
        served = {frontend for frontend in wanted if backends(slices, frontend.port_name)}
        relays = self._relays.setdefault(key, {})
        for frontend in relays.keys() - served:
            await relays.pop(frontend).close()
        for frontend in served - relays.keys():
            relay = _Relay(frontend, lambda port_name: self._backends(key, port_name), self._connect)
            if await relay.open():
                relays[frontend] = relay
        if not relays:
            del self._relays[key]
        moved = {f.port: relay.port for f, relay in relays.items() if relay.port != f.port}
        self._set_names(key, names_of(service, slices, moved) if service is not None else {})
        return Done

    def _with_node_ports(self, _node: Obj) -> list[Key]:
        return [key_of(service) for service in self._services.list() if _has_node_ports(service)]

    def _node_addresses(self, service: Obj) -> list[str]:
        if not _has_node_ports(service):
            return []
        return [address for node in self._nodes.list() if (address := internal_ip(node))]

    def _backends(self, key: Key, port_name: str) -> list[tuple[Backend, Obj | None]]:
        found = backends(self._slices.by_index(_BY_SERVICE, f"{key.namespace}/{key.name}"), port_name)
        return [(one, self._pod_at(key.namespace, one)) for one in found]

    def _pod_at(self, namespace: str, backend: Backend) -> Obj | None:
        """Return the pod behind a backend; None for an address outside the cluster, whatever it is called."""
        pod = self._pods.get(Key(namespace, backend.pod)) if backend.pod else None
        return pod if pod is not None and (pod.get("status") or {}).get("podIP") == backend.address else None

    async def _connect(
        self, backend: Backend, pod: Obj | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Serve a connection by a backend; False when it does not accept connections."""
        if pod is not None and not self.is_process(pod):
            await self._simulated(pod, backend.port, reader, writer)
            return True
        connection = Connection(pod)
        if self._network.is_refused(connection):
            return False
        await self._network.passable(connection)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                ends = await asyncio.open_connection(backend.address, backend.port)
        except (OSError, TimeoutError):
            return False
        await self._network.relay(connection, (reader, writer), ends)
        return True

    def _set_names(self, key: Key, names: dict[str, Any]) -> None:
        if self._names.get(key, {}) == names:
            return
        if names:
            self._names[key] = names
        else:
            del self._names[key]
        merged = {name: entry for entries in self._names.values() for name, entry in entries.items()}
        replace_file(self._names_file, orjson.dumps(merged))

    async def stop(self) -> None:
        for relays in self._relays.values():
            for relay in relays.values():
                await relay.close()
        self._relays.clear()


class _Relay:
    """One listening address of a Service."""

    def __init__(self, frontend: Frontend, find: Find, connect: Connect) -> None:
        self._frontend = frontend
        self._find = find
        self._connect = connect
        self._listener = Listener(self._serve)
        self._turn = 0
        self.port = frontend.port

    async def open(self) -> bool:
        address, port, _ = self._frontend
        try:
            self.port = await self._listener.open(address, port)
        except OSError as error:
            log.warning("A Service's address cannot be used", address=f"{address}:{port}", error=str(error))
            return False
        return True

    async def close(self) -> None:
        """Stop; connections end with it, as those to endpoints that are gone do."""
        await self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = self._find(self._frontend.port_name)
        self._turn += 1
        for step in range(len(found)):
            backend, pod = found[(self._turn + step) % len(found)]
            if await self._connect(backend, pod, reader, writer):
                return


def _has_node_ports(service: Obj) -> bool:
    return (service.get("spec") or {}).get("type") in ("NodePort", "LoadBalancer")


def _address_changed(old: Obj | None, new: Obj | None) -> bool:
    return (internal_ip(old) if old is not None else "") != (internal_ip(new) if new is not None else "")


def _index_by_service(found: Obj) -> list[str]:
    name = meta.labels(found).get(SERVICE_NAME)
    return [f"{meta.namespace(found)}/{name}"] if name else []


def _service_of(found: Obj) -> list[Key]:
    name = meta.labels(found).get(SERVICE_NAME)
    return [Key(meta.namespace(found), name)] if name else []
