"""Two servers on three etcd members, each killed and restarted in turn under load.

Every watcher keeps a log of what it saw. The logs must be the same, and so there is one history; whatever was answered
to a writer must be in it, at its revision and right behind the version it was made from.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.e2e.etcd_servers import start_servers
from tests.e2e.wire_client import WireClient
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import eventually
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OURS = f"{CONFIG_MAPS}?labelSelector=chaos%3Dyes"
ROUNDS = 5
"""Each kills a member and a server."""
WRITES = 1000
HANGS = 600.0
"""Seconds; ends a run that does not, on however busy a machine."""
WRITERS = 8
WATCHERS = 8
LOST = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)


class Seen(NamedTuple):
    revision: int
    type: str
    name: str
    number: int


class Answered(NamedTuple):
    """A write that was answered with success; `base` is the version it was made from, `revision` 0 for a deletion."""

    verb: str
    name: str
    number: int
    base: int
    revision: int


@dataclass
class Record:
    answered: list[Answered] = field(default_factory=list)
    tried: set[tuple[str, int]] = field(default_factory=set)
    latest: int = 0
    """The highest revision anybody was answered."""
    failures: dict[str, int] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def answer(self, answered: Answered) -> None:
        self.answered.append(answered)
        self.latest = max(self.latest, answered.revision)

    def fail(self, code: int, answer: Any) -> None:
        """A failure that may be, counted."""
        reason = answer.get("reason", "") if isinstance(answer, dict) else ""
        assert code in (0, 404, 409, 429, 503, 504) or reason == "ServerTimeout", (code, answer)
        self.failures[f"{code} {reason}"] = self.failures.get(f"{code} {reason}", 0) + 1


def config_map(name: str, number: int, base: int) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": {"chaos": "yes"}}
    if base:
        meta["resourceVersion"] = str(base)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"number": str(number)}}


def state_of(obj: dict[str, Any]) -> tuple[int, int]:
    return int(obj["metadata"]["resourceVersion"]), int(obj["data"]["number"])


async def send(wire: WireClient, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Code 0: the connection was lost."""
    try:
        return await wire(method, path, body)
    except LOST:
        return 0, None


async def write(wires: list[WireClient], record: Record, writer: int, stop: asyncio.Event) -> None:
    chance = random.Random(writer)
    states: dict[str, tuple[int, int] | None] = dict.fromkeys(f"w{writer}-{slot}" for slot in range(3))
    wire = wires[writer % 2]
    while not stop.is_set():
        name, number = chance.choice(list(states)), next(record.numbers)
        base, old = states[name] or (0, 0)
        record.tried.add((name, number))
        if not base:
            verb, code, answer = "POST", *await send(wire, "POST", CONFIG_MAPS, config_map(name, number, 0))
        elif chance.random() < 0.75:
            body = config_map(name, number, base)
            verb, code, answer = "PUT", *await send(wire, "PUT", f"{CONFIG_MAPS}/{name}", body)
        else:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": str(base)}}
            verb, code, answer = "DELETE", *await send(wire, "DELETE", f"{CONFIG_MAPS}/{name}", body)
        if code not in (200, 201):
            record.fail(code, answer)
            wire = chance.choice(wires)
            states[name] = await current(wires, record, name)
        elif verb == "DELETE":
            states[name] = None
            record.answer(Answered(verb, name, old, base, 0))
        else:
            states[name] = state_of(answer)
            record.answer(Answered(verb, name, number, base, state_of(answer)[0]))
        await asyncio.sleep(0.01)  # a bound on the load, not a wait for anything


async def current(wires: list[WireClient], record: Record, name: str) -> tuple[int, int] | None:
    """What there is now, as soon as a server answers."""
    for wire in itertools.cycle(wires):
        code, answer = await send(wire, "GET", f"{CONFIG_MAPS}/{name}")
        if code == 200:
            return state_of(answer)
        if code == 404:
            return None
        record.fail(code, answer)
        await asyncio.sleep(0.05)
    raise AssertionError("unreachable")


async def watch(wires: list[WireClient], record: Record, since: int, seed: int) -> list[Seen]:
    """Everything since then, over as many streams as it takes, until the marker."""
    chance, seen = random.Random(seed), list[Seen]()
    while True:
        wire = chance.choice(wires)
        try:
            async with wire.stream(f"{OURS}&watch=true&allowWatchBookmarks=true&resourceVersion={since}") as response:
                if response.status != 200:
                    record.fail(response.status, json.loads(await response.read()))
                async for line in response.content:
                    event = json.loads(line)
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        record.fail(obj["code"], obj)
                        break
                    revision = int(obj["metadata"]["resourceVersion"])
                    assert revision >= since if event["type"] == "BOOKMARK" else revision > since, (event, since)
                    since = revision
                    if event["type"] == "BOOKMARK":
                        continue
                    if obj["metadata"]["name"] == "marker":
                        return seen
                    seen.append(Seen(revision, event["type"], obj["metadata"]["name"], int(obj["data"]["number"])))
        except LOST:
            record.fail(0, None)
        await asyncio.sleep(0.02)


async def read(wires: list[WireClient], record: Record, stop: asyncio.Event) -> int:
    """Lists, now here, now there: each shows at least what was answered before it, and the counter never goes back."""
    done = 0
    for wire in itertools.cycle(wires):
        if stop.is_set():
            return done
        before = record.latest
        code, answer = await send(wire, "GET", OURS)
        if code == 200:
            revision = int(answer["metadata"]["resourceVersion"])
            assert revision >= before, f"a list at {revision} after revision {before} was answered"
            record.latest = max(record.latest, revision)
            done += 1
        else:
            record.fail(code, answer)
        await asyncio.sleep(0.02)
    raise AssertionError("unreachable")


async def more_writes(record: Record, count: int) -> None:
    """Until so many more were answered."""
    wanted = len(record.answered) + count
    await eventually(lambda: len(record.answered) >= wanted, show=lambda: (wanted, len(record.answered)))


async def break_things(etcd: EtcdCluster, servers: list[ServerProcess], record: Record) -> dict[str, int]:
    """One thing at a time is down, and writes go on; a member is back before the next one falls."""
    chance = random.Random(4)
    kills = {"members": 0, "leaders": 0, "servers": 0}
    for _ in range(ROUNDS):
        leader = await asyncio.to_thread(etcd.leader)
        member = leader if kills["members"] % 2 == 0 else chance.choice(etcd.members)
        kills["members"] += 1
        kills["leaders"] += member is leader
        await asyncio.to_thread(member.kill)
        await more_writes(record, 50)
        etcd.restart(member)
        await asyncio.to_thread(etcd.wait)
        server = servers[kills["servers"] % 2]
        kills["servers"] += 1
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(chance.random())  # how long it is down
        await asyncio.to_thread(server.start)
        await more_writes(record, 20)
    await more_writes(record, max(0, WRITES - len(record.answered)))
    return kills


def check(history: list[Seen], record: Record) -> None:
    by_revision = {seen.revision: seen for seen in history}
    assert len(by_revision) == len(history)
    before: dict[int, Seen | None] = {}
    after: dict[tuple[str, int], Seen] = {}
    last: dict[str, Seen] = {}
    for seen in history:
        assert (seen.name, seen.number) in record.tried, f"nobody wrote {seen}"
        before[seen.revision] = last.get(seen.name)
        if seen.name in last:
            after[seen.name, last[seen.name].revision] = seen
        last[seen.name] = seen
    assert len({a.revision for a in record.answered if a.revision}) == sum(a.verb != "DELETE" for a in record.answered)
    for done in record.answered:
        if done.verb == "DELETE":
            deletion = after.get((done.name, done.base))
            assert deletion is not None, f"answered, but not there: {done}"
            assert deletion.type == "DELETED", f"{done}, but {deletion}"
            continue
        event = by_revision.get(done.revision)
        assert event is not None, f"answered, but not there: {done}"
        assert (event.name, event.number) == (done.name, done.number)
        assert event.type == ("ADDED" if done.verb == "POST" else "MODIFIED")
        previous = before[done.revision]
        if done.verb == "PUT":
            assert previous is not None
            assert previous.revision == done.base, f"{done} was not made from {previous}"
        else:
            assert previous is None or previous.type == "DELETED"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path / "etcd", size=3)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def servers(etcd: EtcdCluster, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    servers = start_servers(etcd, tmp_path)
    yield servers
    for server in servers:
        server.stop()


async def test_no_loss_of_one_process_loses_an_answered_write_or_an_event(
    etcd: EtcdCluster, servers: list[ServerProcess]
) -> None:
    record, stop = Record(), asyncio.Event()
    async with WireClient(servers[0]) as a, WireClient(servers[1]) as b:
        wires = [a, b]
        code, listed = await a("GET", OURS)
        assert (code, listed["items"]) == (200, [])
        since = int(listed["metadata"]["resourceVersion"])
        async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
            logs = [group.create_task(watch(wires, record, since, n)) for n in range(WATCHERS)]
            writers = [group.create_task(write(wires, record, n, stop)) for n in range(WRITERS)]
            reader = group.create_task(read(wires, record, stop))
            kills = await break_things(etcd, servers, record)
            stop.set()
            await asyncio.wait([*writers, reader])
            code, marker = await b("POST", CONFIG_MAPS, config_map("marker", 0, 0))
            assert code == 201
        print(f"{kills}; {len(record.answered)} writes, {reader.result()} lists; failures: {record.failures}")
        history = logs[0].result()
        for log in logs[1:]:
            assert log.result() == history
        check(history, record)
        last = {seen.name: seen for seen in history}
        final = {seen.name: (seen.revision, seen.number) for seen in last.values() if seen.type != "DELETED"}
        for wire in wires:
            _, answer = await wire("GET", OURS)
            found = {o["metadata"]["name"]: state_of(o) for o in answer["items"]}
            assert found == {**final, "marker": state_of(marker)}
        assert kills["leaders"] >= ROUNDS // 2
