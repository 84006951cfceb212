"""The API under faults, as Jepsen looks at a database: concurrent clients, killed servers, cut connections, a restarted
etcd; then the history of every object must be that of a single register, revisions must follow the clock, and a watch
that is resumed after every break must have shown every acknowledged write once and in order.

Two rounds here; `make jepsen` runs many.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.wire_client import WireClient
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import LIMIT, eventually
from tests.support.linearizability import Operation, Seen, check, out_of_order, version_of, watch_errors
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
ROUNDS = int(os.environ.get("JEPSEN_ROUNDS", "2"))
CLIENTS = 6
KEYS = 4
CUT = 0.03
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
END = "reg-end"
LOST = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)
Fault = Callable[[], Awaitable[None]]


class Run:
    """Clients that write down what they call and what they get."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.seen: dict[str, list[Seen]] = {}
        self._tokens = itertools.count(1)

    @property
    def happened(self) -> int:
        return sum(op.outcome == "ok" for op in self.history)

    async def more(self, count: int) -> None:
        """Wait until so many more operations have succeeded."""
        target = self.happened + count
        await eventually(lambda: self.happened >= target)

    async def load(self, wire: WireClient, round_: int, chance: random.Random, stop: asyncio.Event) -> None:
        known: dict[str, tuple[int, int]] = {}
        while not stop.is_set():
            key = f"reg-{round_}-{chance.randrange(KEYS)}"
            op = Operation(key, "read", time.monotonic())
            if chance.random() < 0.7:
                op.kind = chance.choice(("create", "update", "update", "update", "delete"))
            if op.kind == "update" and key not in known:
                op.kind = "create"
            version = 0
            if op.kind == "update":
                op.expected, version = known[key]
            if op.kind in ("create", "update"):
                op.token = next(self._tokens)
            seconds = chance.uniform(0.0005, 0.006) if chance.random() < CUT else 15.0
            await self._perform(wire, op, version, known, seconds)

    async def _perform(
        self, wire: WireClient, op: Operation, version: int, known: dict[str, tuple[int, int]], seconds: float
    ) -> None:
        """One request; what may or may not have happened stays unknown, what cannot have is left out."""
        self.history.append(op)
        op.called = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                code, body = await request(wire, op, version)
        except aiohttp.ClientConnectorError:
            self.history.remove(op)
            await asyncio.sleep(0.02)  # the server is down
            return
        except LOST:
            return
        returned = time.monotonic()
        if code == {"create": 201}.get(op.kind, 200):
            op.outcome, op.returned = "ok", returned
            if op.kind == "read":
                op.token = token_of(body)
            if op.kind in ("create", "update"):
                op.version = version_of(body)
            if op.kind != "delete":
                known[op.key] = (token_of(body), version_of(body))
        elif op.kind == "read" and code == 404:
            op.outcome, op.returned = "ok", returned
        elif (op.kind, code) in {("create", 409), ("update", 409), ("update", 404), ("delete", 404)}:
            op.outcome, op.returned = "refused", returned
        else:
            assert code >= 429, (code, body, op)

    async def watch(self, server: ServerProcess, since: int) -> None:
        """Until the last object of the run is there, over all breaks."""
        seen = self.seen[server.data_dir.name] = []
        while True:
            try:
                async with WireClient(server) as wire, wire.stream(
                    f"{CONFIG_MAPS}?watch=true&resourceVersion={since}"
                ) as response:  # fmt: skip
                    async for line in response.content:
                        event = json.loads(line)
                        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
                        since = version_of(event["object"])
                        name = event["object"]["metadata"]["name"]
                        if name == END:
                            return
                        if name.startswith("reg-"):
                            seen.append(Seen(event["type"], name, token_of(event["object"]), since))
            except LOST:
                await asyncio.sleep(0.05)  # the server is down

    def verify(self) -> None:
        unknown = sum(op.outcome == "unknown" and op.kind != "read" for op in self.history)
        print(f"{len(self.history)} operations, {self.happened} ok, {unknown} writes without a known result")
        violations = check(self.history)
        assert not violations, "\n".join(map(str, violations))
        assert out_of_order(self.history) == []
        for name, seen in self.seen.items():
            assert watch_errors(seen, self.history) == [], name


async def request(wire: WireClient, op: Operation, version: int) -> tuple[int, Any]:
    metadata: dict[str, Any] = {"name": op.key}
    if version:
        metadata["resourceVersion"] = str(version)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"token": str(op.token)}}
    if op.kind == "create":
        return await wire("POST", CONFIG_MAPS, body)
    if op.kind == "update":
        return await wire("PUT", f"{CONFIG_MAPS}/{op.key}", body)
    return await wire("DELETE" if op.kind == "delete" else "GET", f"{CONFIG_MAPS}/{op.key}")


def token_of(obj: dict[str, Any]) -> int:
    return int(obj["data"]["token"])


async def run(servers: list[ServerProcess], faults: list[Fault], seed: int) -> None:
    made, chance = Run(), random.Random(seed)
    async with WireClient(servers[0]) as wire:
        _, listed = await wire("GET", CONFIG_MAPS)
    since = int(listed["metadata"]["resourceVersion"])
    watches = [asyncio.create_task(made.watch(server, since)) for server in servers]
    for round_ in range(ROUNDS):
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            wires = [await stack.enter_async_context(WireClient(server, reuse=False)) for server in servers]
            async with asyncio.TaskGroup() as group:
                for number in range(CLIENTS):
                    choices = random.Random(f"{seed}/{round_}/{number}")
                    group.create_task(made.load(wires[number % len(wires)], round_, choices, stop))
                await made.more(chance.randrange(40, 80))
                await faults[round_ % len(faults)]()
                await made.more(40)
                stop.set()
    async with WireClient(servers[0]) as wire:
        code, _ = await wire("POST", CONFIG_MAPS, {"metadata": {"name": END}})
        assert code == 201
    await asyncio.wait_for(asyncio.gather(*watches), LIMIT)
    made.verify()


def kill_and_restart(server: ServerProcess) -> Fault:
    async def fault() -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)

    return fault


async def test_sqlite_is_linearizable_though_the_server_is_killed(own_server: ServerProcess) -> None:
    await run([own_server], [kill_and_restart(own_server)], seed=1)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path / "etcd", size=1)
    cluster.start()
    yield cluster
    cluster.stop()


async def test_two_servers_over_etcd_are_linearizable_though_a_server_and_etcd_are_killed(
    etcd: EtcdCluster, tmp_path: Path
) -> None:
    servers = [ServerProcess(tmp_path / name, arguments=["--storage", etcd.url]) for name in ("one", "two")]

    async def restart_etcd() -> None:
        await asyncio.to_thread(etcd.members[0].kill)
        await asyncio.to_thread(etcd.restart, etcd.members[0])
        await asyncio.to_thread(etcd.wait)

    try:
        for server in servers:
            await asyncio.to_thread(server.start)
        await run(servers, [restart_etcd, *map(kill_and_restart, servers)], seed=2)
    finally:
        for server in servers:
            await asyncio.to_thread(server.stop)
