"""Seats of the server on the wire: nobody is turned away for what somebody else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack

import pytest

from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.controllers.flow_schemas import MANAGER
from karmada.kube.server.flowcontrol.levels import Levels
from karmada.kube.server.http import front
from tests.integration.samples import BINDINGS, CONFIGMAPS, configmap, editors, ok
from tests.integration.streams import watching
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.wire import Http

SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"


async def test_schemas_and_levels_are_there_from_the_start(http: Http) -> None:
    schemas = {item["metadata"]["name"] for item in ok(await http("GET", SCHEMAS))["items"]}
    assert {"exempt", "probes", "global-default", "catch-all", "service-accounts"} <= schemas
    levels = {item["metadata"]["name"]: item["spec"] for item in ok(await http("GET", LEVELS))["items"]}
    assert levels["exempt"]["type"] == "Exempt"
    assert levels["workload-low"]["limited"]["nominalConcurrencyShares"] == 100


async def test_a_response_names_the_schema_and_the_level_of_its_request(http: Http) -> None:
    answer = await http("GET", CONFIGMAPS)
    schema = ok(await http("GET", f"{SCHEMAS}/exempt"))
    assert answer.headers["X-Kubernetes-Pf-Flowschema-Uid"] == schema["metadata"]["uid"]


def _dangling(schema: Obj) -> tuple[str, ...]:
    condition = get_condition((schema.get("status") or {}).get("conditions"), "Dangling") or {}
    return tuple(str(condition.get(key)) for key in ("status", "reason", "message"))


_REFERENCE = 'This FlowSchema references the PriorityLevelConfiguration object named "own"'
MISSING = ("True", "NotFound", f"{_REFERENCE} but there is no such object")
PRESENT = ("False", "Found", f"{_REFERENCE} and it exists")


async def test_a_flow_schema_reports_whether_its_level_is_missing(http: Http) -> None:
    schema = kube_object("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "own") | {
        "spec": {"priorityLevelConfiguration": {"name": "own"}, "matchingPrecedence": 500}
    }
    level = kube_object("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "own", spec={"type": "Exempt"})

    async def reports(wanted: tuple[str, ...]) -> None:
        async def check() -> bool:
            return _dangling(ok(await http("GET", f"{SCHEMAS}/own"))) == wanted

        await eventually(check)

    ok(await http("POST", SCHEMAS, schema), 201)
    await reports(MISSING)
    ok(await http("POST", LEVELS, level), 201)
    await reports(PRESENT)
    entries = ok(await http("GET", f"{SCHEMAS}/own"))["metadata"]["managedFields"]
    assert (MANAGER, "Apply", "status") in [(e["manager"], e["operation"], e.get("subresource")) for e in entries]
    await http("DELETE", f"{LEVELS}/own")
    await reports(MISSING)


async def test_no_flow_schema_of_the_server_lacks_its_level(http: Http) -> None:
    async def check() -> bool:
        return {_dangling(schema)[0] for schema in ok(await http("GET", SCHEMAS))["items"]} == {"False"}

    await eventually(check)


@pytest.fixture
async def taken(server: ApiServer) -> AsyncIterator[Levels]:
    """All seats of ordinary users are taken, and their queues are of no length."""
    levels = server.http._flow._levels
    server.http._flow._current()
    full = [level for level in levels._levels.values() if not level.exempt]
    before = [(level.used, level.queue_limit) for level in full]
    for level in full:
        level.used, level.queue_limit = level.seats, 0
    yield levels
    for level, (used, limit) in zip(full, before, strict=True):
        level.used, level.queue_limit = used, limit


@pytest.mark.usefixtures("taken")
async def test_a_server_that_is_full_turns_away_ordinary_requests_only(http: Http) -> None:
    ann = {"Impersonate-User": "ann"}
    answer = await http("GET", CONFIGMAPS, headers=ann)
    assert (answer.code, answer.json()["reason"], answer.headers["Retry-After"]) == (429, "TooManyRequests", "1")
    assert (await http("GET", f"{CONFIGMAPS}?watch=1", headers=ann)).code == 429  # its beginning needs a seat, too
    assert (await http("GET", "/readyz", anonymous=True)).code == 200
    assert (await http("GET", CONFIGMAPS)).code == 200


async def test_bodies_that_never_end_take_no_seats(http: Http, server: ApiServer) -> None:
    """More of them than there are seats; everybody else is served, and their author, too, within their own limit."""
    ok(await http("POST", BINDINGS, editors("slow", "ann")), 201)
    host, port = server.config.host, server.port
    head = (
        f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: {host}\r\nImpersonate-User: slow\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{"
    ).encode()
    writers = []
    try:
        for _ in range(front.MAX_READING):
            _, writer = await asyncio.open_connection(host, port, ssl=http._tls, server_hostname=host)
            writer.write(head)
            writers.append(writer)
        await eventually(lambda: server.http._reading.of("slow") == front.MAX_READING)
        ann, slow = {"Impersonate-User": "ann"}, {"Impersonate-User": "slow"}
        assert (await http("POST", CONFIGMAPS, configmap(), headers=ann)).code == 201
        assert (await http("GET", CONFIGMAPS, headers=slow)).code == 200
        assert (await http("POST", CONFIGMAPS, configmap("other"), headers=slow)).code == 429
    finally:
        for writer in writers:
            writer.transport.abort()
    await eventually(lambda: not server.http._reading.total)


async def test_a_watch_has_a_seat_only_until_it_begins(http: Http, server: ApiServer) -> None:
    entered: list[str] = []
    left: list[str] = []
    levels = server.http._flow._levels
    enter, leave = levels.enter, levels.leave

    async def entering(name: str, flow: Hashable, wanted: int = 1) -> int:
        entered.append(name)
        return await enter(name, flow, wanted)

    def leaving(name: str, seats: int = 1) -> None:
        left.append(name)
        leave(name, seats)

    levels.enter, levels.leave = entering, leaving  # type: ignore[method-assign]
    ok(await http("POST", BINDINGS, editors("ann")), 201)
    async with watching(http, f"{CONFIGMAPS}?watch=1", {"Impersonate-User": "ann"}):
        assert entered.count("global-default") == left.count("global-default") == 1


async def test_a_user_has_only_so_many_watches(http: Http, server: ApiServer) -> None:
    server.http._long_running._most = 3
    ok(await http("POST", BINDINGS, editors("ann", "ben")), 201)
    path, ann = f"{CONFIGMAPS}?watch=1", {"Impersonate-User": "ann"}
    async with AsyncExitStack() as open_watches:
        for _ in range(3):
            await open_watches.enter_async_context(watching(http, path, ann))
        refused = await http("GET", path, headers=ann)
        assert (refused.code, refused.headers["Retry-After"]) == (429, "1")
        assert "user ann has 3 watches, followed logs and proxied requests open" in refused.json()["message"]
        assert (await http("GET", CONFIGMAPS, headers=ann)).code == 200
        for who in ({"Impersonate-User": "ben"}, {}):
            await open_watches.enter_async_context(watching(http, path, who))
    await eventually(lambda: not server.http._long_running.total)
    async with watching(http, path, ann):
        assert server.http._long_running.of("ann") == 1


async def test_seats_are_charged_by_cost(http: Http, server: ApiServer) -> None:
    """A Table of all objects is estimated, and what it was not is given back; a kind that nobody has is not kept."""
    ok(await http("POST", BINDINGS, editors("ann")), 201)
    for number in range(5):
        ok(await http("POST", CONFIGMAPS, configmap(f"c{number}", data={"text": "x" * 900_000})), 201)
    estimates: list[int] = []
    charged: list[int] = []
    levels = server.http._flow._levels
    enter, charge = levels.enter, levels.charge

    async def entering(name: str, flow: Hashable, wanted: int = 1) -> int:
        estimates.append(wanted)
        return await enter(name, flow, wanted)

    def charging(name: str, flow: Hashable, seats: int) -> None:
        charged.append(seats)
        charge(name, flow, seats)

    levels.enter, levels.charge = entering, charging  # type: ignore[method-assign]
    table = {"Impersonate-User": "ann", "Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    assert (await http("GET", CONFIGMAPS, headers=table)).code == 200
    assert (estimates, charged) == ([1], [5])
    known = len(server.cache._collections)
    await http("GET", "/apis/nobody.example.com/v1/things", headers=table)
    assert len(server.cache._collections) == known
