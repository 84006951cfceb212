"""Servers on a real etcd: consistent with one another, honest when it is away, and back by themselves."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.etcd_servers import start_servers
from tests.e2e.wire_client import WireClient
from tests.support import forking
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import LIMIT, eventually
from tests.support.ports import free_port
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TIME_OUT = 8.0


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path_factory.mktemp("etcd"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def servers(etcd: EtcdCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    servers = start_servers(etcd, tmp_path_factory.mktemp("servers"))
    yield servers
    for server in servers:
        server.stop()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def readyz(wire: WireClient) -> tuple[int, str]:
    async with wire.stream("/readyz?verbose") as answer:
        return answer.status, await answer.text()


async def becomes(wire: WireClient, ready: bool, seconds: float) -> str:
    """What /readyz says once it says this."""
    answers: list[tuple[int, str]] = []

    async def says() -> bool:
        answers.append(await readyz(wire))
        return (answers[-1][0] == 200) == ready

    await eventually(says, within=seconds, show=lambda: answers[-1])
    return answers[-1][1]


async def test_a_read_sees_what_another_server_has_answered(servers: list[ServerProcess]) -> None:
    async with WireClient(servers[0]) as a, WireClient(servers[1]) as b:
        for number, (here, there) in enumerate([(a, b), (b, a)] * 50):
            path = f"{CONFIG_MAPS}/c{number}"
            code, made = await here("POST", CONFIG_MAPS, config_map(f"c{number}"))
            assert code == 201
            assert await there("GET", path) == (200, made)
            code, _ = await there("DELETE", path)
            assert code == 200
            assert (await here("GET", path))[0] == 404


async def test_reads_stay_fresh_when_others_write_to_the_same_etcd(
    etcd: EtcdCluster, servers: list[ServerProcess]
) -> None:
    async with WireClient(servers[0]) as a, WireClient(servers[1]) as b:
        for number in range(5):
            await asyncio.to_thread(etcd.ctl, "put", "/somebody/else", str(number))
            code, _ = await a("POST", CONFIG_MAPS, config_map(f"o{number}"))
            assert code == 201
            await asyncio.to_thread(etcd.ctl, "put", "/somebody/else", str(number))
            assert (await b("GET", f"{CONFIG_MAPS}/o{number}"))[0] == 200


async def test_a_watch_sees_what_is_written_through_another_server(servers: list[ServerProcess]) -> None:
    async with WireClient(servers[0]) as a, WireClient(servers[1]) as b:
        async with b.stream(f"{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dseen") as watch:
            _, made = await a("POST", CONFIG_MAPS, config_map("seen"))
            async with asyncio.timeout(LIMIT):
                event = json.loads(await watch.content.readline())
        assert (event["type"], event["object"]) == ("ADDED", made)


@pytest.mark.parametrize("trouble", ["dead", "hanging"])
async def test_without_etcd_requests_fail_in_time_and_service_resumes_by_itself(
    etcd: EtcdCluster, servers: list[ServerProcess], trouble: str
) -> None:
    [member] = etcd.members
    away = member.kill if trouble == "dead" else member.pause
    back: Callable[[], None] = partial(etcd.restart, member) if trouble == "dead" else member.resume
    async with WireClient(servers[0]) as wire:
        code, kept = await wire("POST", CONFIG_MAPS, config_map(f"kept-{trouble}"))
        assert code == 201
        name = kept["metadata"]["name"]
        path, since = f"{CONFIG_MAPS}/{name}", kept["metadata"]["resourceVersion"]
        query = f"watch=true&fieldSelector=metadata.name%3D{name}&resourceVersion={since}"
        async with wire.stream(f"{CONFIG_MAPS}?{query}") as watch:
            away()
            try:
                assert "[-]etcd failed" in await becomes(wire, False, TIME_OUT)
                requests = [
                    ("GET", path, None),
                    ("GET", CONFIG_MAPS, None),
                    ("POST", CONFIG_MAPS, config_map("new")),
                    ("PUT", path, {**kept, "data": {"a": "b"}}),
                    ("DELETE", path, None),
                ]
                await asyncio.gather(*(fails_in_time(wire, *request) for request in requests))
                assert (await wire("GET", f"{path}?resourceVersion=0")) == (200, kept)
            finally:
                back()
            await becomes(wire, True, 20)
            code, found = await wire("GET", path)
            if code == 404:  # the unanswered deletion may have happened
                code, found = await wire("POST", CONFIG_MAPS, config_map(name))
                assert code == 201
            code, changed = await wire("PUT", path, {**found, "data": {"now": "again"}})
            assert code == 200
            async with asyncio.timeout(LIMIT):
                while (event := json.loads(await watch.content.readline()))["object"] != changed:
                    assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event


async def fails_in_time(wire: WireClient, method: str, path: str, body: Any) -> None:
    started = time.monotonic()
    code, status = await wire(method, path, body)
    assert code in (503, 504), (method, path, status)
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code)
    assert status["reason"] in ("ServiceUnavailable", "Timeout")
    assert time.monotonic() - started < TIME_OUT


def test_a_server_that_finds_no_etcd_says_where_it_looked(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "karmada.components.apiserver", "--data-dir", str(tmp_path), "--port", "0"]
    command += ["--storage", f"etcd://127.0.0.1:{port}"]
    done = forking.run(command, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.strip().splitlines()
    assert line.startswith(f"Error: etcd at 127.0.0.1:{port} cannot be reached")


async def test_an_orderly_stop_ends_watches_and_leaves_nothing_unsaid(etcd: EtcdCluster, tmp_path: Path) -> None:
    [server] = start_servers(etcd, tmp_path, 1)
    async with WireClient(server) as wire, wire.stream(f"{CONFIG_MAPS}?watch=true") as watch:
        await asyncio.to_thread(server.stop)
        try:
            await watch.read()
        except aiohttp.ClientError as error:
            raise AssertionError("the watch was cut off") from error
    assert server.process is not None
    assert server.process.returncode == 0
    assert "Traceback" not in server.log()
