"""What was answered stays: kill -9 under load, orderly stops, restarts with much to load."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from benchmarks.processes import cpu_seconds
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.entry import storage_key
from tests.e2e.wire_client import WireClient
from tests.support.eventually import LIMIT, eventually
from tests.support.linearizability import version_of
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 16
ROUNDS = 20
LOST = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)

State = tuple[int, int] | None
"""(resourceVersion, number) of an object; None: it does not exist."""


def config_map(name: str, number: int, size: int, version: int = 0) -> dict[str, Any]:
    """Its checksum shows whether it is whole."""
    pad = random.Random(number).randbytes(size // 2).hex()
    text = f"{number} {pad}"
    meta: dict[str, Any] = {"name": name, "labels": {"durable": "yes"}}
    if version:
        meta["resourceVersion"] = str(version)
    data = {"text": text, "sum": hashlib.sha256(text.encode()).hexdigest()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def number_of(obj: dict[str, Any]) -> int:
    text = obj["data"]["text"]
    assert hashlib.sha256(text.encode()).hexdigest() == obj["data"]["sum"], f"half-written: {obj['metadata']}"
    return int(text.split(" ", 1)[0])


@dataclass
class Ledger:
    """What the server has answered, and what was under way when it died."""

    acknowledged: dict[str, State] = field(default_factory=dict)
    in_flight: dict[str, int | None] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def acknowledge(self, name: str, state: State, version: int = 0) -> None:
        self.acknowledged[name] = state
        self.in_flight.pop(name, None)
        if version:
            self.versions.append(version)

    def check(self, found: dict[str, State]) -> None:
        """Everything answered is there; what was not answered has happened wholly or not at all."""
        for name, state in self.acknowledged.items():
            now = found.get(name)
            if now == state:
                continue
            assert name in self.in_flight, f"{name}: answered as {state}, is {now}"
            wanted = self.in_flight[name]
            assert (None if now is None else now[1]) == wanted, f"{name}: neither {state} nor {wanted}, but {now}"
        for name, now in found.items():
            if name not in self.acknowledged:
                assert name in self.in_flight, f"{name} came from nowhere"
                assert now is not None
                assert now[1] == self.in_flight[name]
        self.acknowledged = dict(found)
        self.in_flight.clear()


async def write_until_the_server_dies(wire: WireClient, ledger: Ledger, writer: int, chance: random.Random) -> None:
    names = [f"w{writer}-{slot}" for slot in range(4)]
    while True:
        name = chance.choice(names)
        state, number = ledger.acknowledged.get(name), next(ledger.numbers)
        size = chance.choice((100, 1000, 20_000))
        try:
            if state is None:
                ledger.in_flight[name] = number
                code, answer = await wire("POST", CONFIG_MAPS, config_map(name, number, size))
                assert code == 201, answer
                ledger.acknowledge(name, (version_of(answer), number), version_of(answer))
            elif chance.random() < 0.7:
                ledger.in_flight[name] = number
                body = config_map(name, number, size, state[0])
                code, answer = await wire("PUT", f"{CONFIG_MAPS}/{name}", body)
                assert code == 200, answer
                ledger.acknowledge(name, (version_of(answer), number), version_of(answer))
            else:
                ledger.in_flight[name] = None
                code, answer = await wire("DELETE", f"{CONFIG_MAPS}/{name}")
                assert code == 200, answer
                ledger.acknowledge(name, None)
                del ledger.acknowledged[name]
        except LOST:
            return


async def look(wire: WireClient) -> tuple[dict[str, State], int]:
    code, answer = await wire("GET", f"{CONFIG_MAPS}?labelSelector=durable=yes")
    assert code == 200
    found: dict[str, State] = {o["metadata"]["name"]: (version_of(o), number_of(o)) for o in answer["items"]}
    return found, int(answer["metadata"]["resourceVersion"])


async def replay(wire: WireClient, before: dict[str, State], since: int, marker: str) -> dict[str, State]:
    """What a watcher that resumes from before the crash sees, up to the marker."""
    seen = dict(before)
    async with wire.stream(f"{CONFIG_MAPS}?watch=true&resourceVersion={since}") as response:
        assert response.status == 200
        async for line in response.content:
            event = json.loads(line)
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
            obj = event["object"]
            if obj["metadata"]["name"] == marker:
                return seen
            if "durable" not in obj["metadata"].get("labels", {}):
                continue
            if event["type"] == "DELETED":
                del seen[obj["metadata"]["name"]]
            else:
                seen[obj["metadata"]["name"]] = (version_of(obj), number_of(obj))
    raise AssertionError("the watch ended before the marker")


async def test_kill_minus_nine_under_load_loses_nothing_that_was_answered(own_server: ServerProcess) -> None:
    ledger, chance = Ledger(), random.Random(11)
    before: dict[str, State] = {}
    since = 0
    for turn in range(ROUNDS):
        async with WireClient(own_server) as wire:
            if turn == 0:
                before, since = await look(wire)
            tasks = [write_until_the_server_dies(wire, ledger, writer, random.Random(turn * 100 + writer))
                     for writer in range(WRITERS)]  # fmt: skip
            load = asyncio.gather(*tasks)
            wanted = len(ledger.versions) + chance.randrange(WRITERS * 2, WRITERS * 20)
            await eventually(lambda wanted=wanted: len(ledger.versions) >= wanted)
            own_server.kill()
            await load
        highest = max(ledger.versions)
        own_server.start()
        async with WireClient(own_server) as wire:
            found, version = await look(wire)
            ledger.check(found)
            assert version >= highest, "the counter went backwards"
            code, marker = await wire("POST", CONFIG_MAPS, {"metadata": {"name": f"marker-{turn}"}})
            assert code == 201
            assert version_of(marker) > version
            ledger.versions.append(version_of(marker))
            assert await replay(wire, before, since, f"marker-{turn}") == found
            before, since = found, version_of(marker)
    assert len(set(ledger.versions)) == len(ledger.versions), "a resourceVersion was given twice"
    await every_object_is_accepted_again(own_server)
    own_server.stop()
    with sqlite3.connect(own_server.data_dir / "state.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


async def every_object_is_accepted_again(server: ServerProcess) -> None:
    """Each object decodes, and the server finds it valid."""
    async with WireClient(server) as wire:
        paths = ["/api/v1/configmaps", "/api/v1/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1/clusterroles"]
        for path in paths:
            _, answer = await wire("GET", path)
            assert answer["items"]
            for obj in answer["items"]:
                meta = obj["metadata"]
                group, plural = path.rsplit("/", 1)
                where = f"{group}/namespaces/{meta['namespace']}/{plural}" if "namespace" in meta else path
                code, result = await wire("PUT", f"{where}/{meta['name']}?dryRun=All", obj)
                assert code == 200, result


async def test_an_orderly_stop_under_load_loses_nothing_and_ends_open_watches(own_server: ServerProcess) -> None:
    ledger = Ledger()
    async with WireClient(own_server) as wire:
        tasks = [write_until_the_server_dies(wire, ledger, writer, random.Random(writer)) for writer in range(WRITERS)]
        async with wire.stream(f"{CONFIG_MAPS}?watch=true") as watch, wire.stream("/api/v1/pods?watch=true") as idle:
            load = asyncio.gather(*(asyncio.create_task(until_refused(task)) for task in tasks))
            await watch.content.readline()
            await eventually(lambda: len(ledger.versions) > 10 * WRITERS)
            started = time.monotonic()
            assert own_server.process is not None
            own_server.process.terminate()
            code = await asyncio.to_thread(own_server.process.wait, 20)
            seconds = time.monotonic() - started
            await idle.content.read()
        await load
    assert code == 0, own_server.log()
    print(f"stopped in {seconds:.2f} s")
    assert seconds < LIMIT
    assert "Traceback" not in own_server.log()
    own_server.start()
    async with WireClient(own_server) as wire:
        found, version = await look(wire)
    ledger.check(found)
    assert version >= max(ledger.versions)


async def until_refused(writing: Any) -> None:
    """A stopping server may answer 503 before it closes: such a write was not acknowledged."""
    try:
        await writing
    except AssertionError as error:
        if "'code': 503" not in str(error):
            raise


async def fill(path: Path, count: int) -> None:
    store = SqliteStore(path)
    await store.open()
    resource = GroupResource("apps", "deployments")
    container = {"name": "web", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}  # fmt: skip
    for start in range(0, count, 5000):
        writes = []
        for number in range(start, start + 5000):
            name = f"web-{number:06}"
            meta = {"name": name, "namespace": "default", "uid": f"00000000-0000-4000-8000-{number:012}",
                    "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}  # fmt: skip
            obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
            key = storage_key(resource, "default", name)
            writes.append(store.write(key, orjson.dumps(obj), expected=0))
        await asyncio.gather(*writes)
    await store.close()


async def test_fifty_thousand_objects_are_there_seconds_after_the_start(tmp_path: Path) -> None:
    """Seconds of CPU time: how many of the clock that is depends on who else uses the machine."""
    server = ServerProcess(tmp_path / "data")
    server.data_dir.mkdir()
    await fill(server.data_dir / "state.db", 50_000)
    server.start()
    try:
        assert server.process is not None
        seconds = cpu_seconds(server.process.pid)
        async with WireClient(server) as wire:
            code, page = await wire("GET", "/apis/apps/v1/deployments?limit=1")
            assert code == 200
            assert page["metadata"]["remainingItemCount"] == 49_999
            code, _ = await wire("GET", "/apis/apps/v1/namespaces/default/deployments/web-049999")
            assert code == 200
    finally:
        server.stop()
    print(f"started with 50,000 objects in {seconds:.2f} s of CPU time")
    assert seconds < LIMIT
