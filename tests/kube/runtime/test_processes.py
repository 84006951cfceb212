"""The runtime in other processes, against one real server."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import NotFound, ServiceUnavailable
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.kube.runtime.sample_controller import CONFIG_MAPS, SECRETS
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.running import api_server

HERE = Path(__file__).parent
pytestmark = pytest.mark.e2e


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path, controllers=False) as server:
        yield server


class Program:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, script: str, *arguments: str) -> Program:
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, str(HERE / script), *arguments, stdout=asyncio.subprocess.PIPE
            )
        )

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().strip())

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading


def config_map(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_the_sample_controller_works_as_another_process(server: ApiServer) -> None:
    client = server.client()
    secrets = Informer(client, SECRETS, "default")
    secrets.start()
    program = await Program.start("sample_controller.py", str(server.kubeconfig))
    try:
        for number in range(5):
            await client.create(CONFIG_MAPS, config_map(f"c{number}", copy="YQ=="))
        await eventually(lambda: len(secrets) == 5)
        await client.patch(CONFIG_MAPS, "c0", "default", {"data": {"copy": "Yg=="}})
        await client.delete(CONFIG_MAPS, "c1", "default")
        expected = {"c0": "Yg==", "c2": "YQ==", "c3": "YQ==", "c4": "YQ=="}
        await eventually(lambda: {o["metadata"]["name"]: o["data"]["copy"] for o in secrets.list()} == expected)
    finally:
        await program.kill()
        await secrets.stop()


class Candidate(Program):
    def reigns(self) -> list[tuple[float, float]]:
        """From when to when it believed to lead without a break."""
        beliefs = [(float(line.split()[0]), line.endswith(" 1")) for line in self.lines]
        spans = itertools.groupby(beliefs, key=lambda belief: belief[1])
        times = [[at for at, _ in span] for leading, span in spans if leading]
        return [(span[0], span[-1]) for span in times]

    @property
    def leads(self) -> bool:
        return bool(self.lines) and self.lines[-1].endswith(" 1")


async def test_a_stopped_or_killed_leader_is_replaced_and_never_do_two_believe_to_lead(server: ApiServer) -> None:
    """On a machine that starves them, candidates may lose the lease besides; never do two of them have it."""
    one = await Candidate.start("lease_candidate.py", str(server.kubeconfig), "one")
    two = await Candidate.start("lease_candidate.py", str(server.kubeconfig), "two")
    try:
        assert isinstance(one, Candidate)
        assert isinstance(two, Candidate)
        await eventually(lambda: one.lines and two.lines)
        first = await eventually(lambda: next((each for each in (one, two) if each.leads), None))
        second = two if first is one else one
        first.process.send_signal(signal.SIGSTOP)
        await eventually(lambda: second.leads)
        first.process.send_signal(signal.SIGCONT)
        count = len(first.lines)
        await eventually(lambda: len(first.lines) > count + 50)
        second.process.kill()
        await second.kill()
        await eventually(lambda: first.leads)
    finally:
        await one.kill()
        await two.kill()
    reigns = sorted([*first.reigns(), *second.reigns()])
    assert len(reigns) >= 3
    assert all(end < following for (_, end), (following, _) in itertools.pairwise(reigns)), reigns


async def test_an_informer_survives_restarts_of_the_server(tmp_path: Path) -> None:
    async def start(port: int) -> ApiServer:
        server = ApiServer(ServerConfig(data_dir=tmp_path, port=port, controllers=False))
        await server.start()
        return server

    server = await start(free_port())
    port, chance = server.port, random.Random(3)
    client = Client(HttpTransport(load_config(server.kubeconfig)))
    informer = Informer(client, CONFIG_MAPS, "default")
    state: dict[Key, Obj] = {}

    def follow(old: Obj | None, new: Obj | None) -> None:
        key = key_of(new if new is not None else old or {})
        if new is None:
            del state[key]
        else:
            state[key] = new

    informer.add_handler(follow)
    informer.start()
    try:
        for step in range(90):
            name = f"c{chance.randrange(8)}"
            try:
                if chance.random() < 0.3:
                    await client.delete(CONFIG_MAPS, name, "default")
                else:
                    await client.apply(CONFIG_MAPS, config_map(name, step=str(step)), field_manager="t", force=True)
            except (NotFound, ConnectionFailed, ServiceUnavailable):
                continue
            if step % 40 == 20:
                await server.store.compact(server.store.revision)
            if step % 40 == 39:
                await server.stop()
                server = await start(port)
        latest = {key_of(obj): obj for obj in (await client.list(CONFIG_MAPS, "default"))["items"]}
        await eventually(lambda: {key_of(obj): obj for obj in informer.list()} == latest)
        assert state == latest
    finally:
        await informer.stop()
        await client.close()
        await server.stop()
