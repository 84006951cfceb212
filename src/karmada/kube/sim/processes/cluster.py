"""What a simulated cluster has in addition when it runs processes: a runtime, relays for its Services, addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.connector import PodConnector
from karmada.kube.sim.kubelet.web import serve_port
from karmada.kube.sim.processes.egress import EgressProxy
from karmada.kube.sim.processes.images import ImageTable
from karmada.kube.sim.processes.loopback import NoAddresses, block_of
from karmada.kube.sim.processes.network import Network, send
from karmada.kube.sim.processes.relays import ServiceRelays
from karmada.kube.sim.processes.runtime import ProcessRuntime

_CHUNK = 1 << 16


class ProcessCluster:
    def __init__(
        self,
        context: Context,
        folder: Path,
        table: ImageTable,
        api_server: Callable[[], tuple[str, int]],
        connector: PodConnector,
    ) -> None:
        self._context = context
        self._connector = connector
        self.network = Network()
        self._egress = EgressProxy(context.informers.of(PODS), self.network)
        self.runtime = ProcessRuntime(
            context, folder, table, api_server, lambda key: self._egress.environment(key, api_server())
        )
        self.relays = ServiceRelays(context, folder / "names.json", self.network, self._serve_simulated)
        self.relays.is_process = lambda pod: bool(self.runtime.address(pod))
        connector.use(self.runtime)

    async def start(self) -> None:
        """Before everything else: end what an earlier process left; NoAddresses if the profile has none for pods."""
        number = block_of(self._context.profile)
        if number is None:
            raise NoAddresses(f"pod_cidr {self._context.profile.pod_cidr} is no range of 127.0.0.0/8")
        self.runtime.clean_up()
        await self._egress.start(f"127.{number}.255.1")

    async def stop(self) -> None:
        await self.runtime.stop()
        await self.relays.stop()
        await self._egress.stop()
        pods = self._context.informers.of(PODS)
        if pods.synced:
            self.runtime.keep_only(str(pod["metadata"]["uid"]) for pod in pods.list())

    async def _serve_simulated(
        self, pod: Obj, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await serve_port(
            self._connector.answers, pod, port, lambda: reader.read(_CHUNK), lambda data: send(writer, data)
        )
