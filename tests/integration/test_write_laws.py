"""What must hold after any sequence of writes by any number of managers.

Random programs of creates, PUTs, patches, applies and deletes run over the wire against a few objects. After each step:
versions rise with every stored change and with nothing else, the generation rises by one exactly when the spec
changed, and every path that managedFields name is there. At the end a watch from the beginning, replayed, gives exactly
what a list shows.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.integration.samples import DEPLOYMENTS, JSON_PATCH, MERGE, STRATEGIC, apply, deployment, ok, patch
from tests.support.eventually import LIMIT
from tests.support.wire import Answer, Http

names = st.sampled_from(["a", "b"])
managers = st.sampled_from(["m1", "m2", "m3"])
images = st.sampled_from(["i:1", "i:2"])
labels = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), max_size=2)
replicas = st.integers(0, 2)
side = st.booleans()


def full(name: str, count: int, image: str, marks: dict[str, str], extra: bool) -> Any:
    body = deployment(name, count, image, labels=marks)
    if extra:
        body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": image})
    return body


bodies = st.builds(full, names, replicas, images, labels, side)


def partial(name: str, count: int, image: str, marks: dict[str, str], extra: bool) -> Any:
    """A configuration that wants only some of it. (Who wants an empty map owns it though nothing is stored.)"""
    body = full(name, count, image, marks, extra)
    if not marks:
        del body["metadata"]["labels"]
    if count == 0:
        del body["spec"]["replicas"]
    return body


steps = st.one_of(
    st.tuples(st.just("create"), managers, bodies),
    st.tuples(st.just("put"), managers, bodies),
    st.tuples(st.just("apply"), managers, st.builds(partial, names, replicas, images, labels, side)),
    st.tuples(st.just("merge"), managers, bodies),
    st.tuples(st.just("strategic"), managers, bodies),
    st.tuples(st.just("json"), managers, bodies),
    st.tuples(st.just("status"), managers, bodies),
    st.tuples(st.just("scale"), managers, bodies),
    st.tuples(st.just("delete"), managers, bodies),
)


async def run(http: Http, step: tuple[str, str, Any]) -> Answer:
    kind, manager, body = step
    name, query = body["metadata"]["name"], f"?fieldManager={manager}"
    path = f"{DEPLOYMENTS}/{name}"
    count = body["spec"].get("replicas", 1)
    match kind:
        case "create":
            return await http("POST", DEPLOYMENTS + query, body)
        case "put":
            return await http("PUT", path + query, body)
        case "apply":
            return await apply(http, path, body, manager, f"&force={'true' if count == 2 else 'false'}")
        case "merge":
            change = {"metadata": {"labels": body["metadata"]["labels"] or None}, "spec": {"replicas": count}}
            return await patch(http, path, change, MERGE, query)
        case "strategic":
            containers = body["spec"]["template"]["spec"]["containers"]
            change = {"spec": {"template": {"spec": {"containers": containers}}}}
            return await patch(http, path, change, STRATEGIC, query)
        case "json":
            return await patch(
                http, path, [{"op": "replace", "path": "/spec/replicas", "value": count}], JSON_PATCH, query
            )
        case "status":
            return await patch(http, f"{path}/status", {"status": {"replicas": count}}, MERGE, query)
        case "scale":
            return await patch(http, f"{path}/scale", {"spec": {"replicas": count}}, MERGE, query)
        case _:
            return await http("DELETE", path, {"propagationPolicy": "Background"})


def missing_paths(fields: Any, value: Any, path: str = "") -> list[str]:
    """The paths of a managedFields set that lead nowhere in the object."""
    missing: list[str] = []
    for element, below in fields.items():
        if element == ".":
            continue
        sort, _, key = element.partition(":")
        here = f"{path}/{element}"
        if sort == "f":
            found = value.get(key, ...) if isinstance(value, dict) else ...
        elif sort == "k":
            wanted = json.loads(key)
            items = value if isinstance(value, list) else []
            found = next((item for item in items if all(item.get(k) == v for k, v in wanted.items())), ...)
        else:
            found = json.loads(key) if json.loads(key) in (value or []) else ...
        if found is ...:
            missing.append(here)
        elif below:
            missing += missing_paths(below, found, here)
    return missing


def check_step(before: dict[str, Any], after: dict[str, Any], last: int) -> int:
    """The laws of one step; the highest version so far."""
    for name, obj in after.items():
        meta, old = obj["metadata"], before.get(name)
        version = int(meta["resourceVersion"])
        for entry in meta.get("managedFields", []):
            assert missing_paths(entry["fieldsV1"], obj) == [], (entry["manager"], name)
        if old is None or old["metadata"]["uid"] != meta["uid"]:
            assert meta["generation"] == 1
            assert version > last
        elif obj != old:
            assert version > last
            changed = obj["spec"] != old["spec"]
            assert meta["generation"] == old["metadata"]["generation"] + changed
        else:
            assert version == int(old["metadata"]["resourceVersion"])
    return max([last, *(int(obj["metadata"]["resourceVersion"]) for obj in after.values())])


def replay(lines: list[bytes]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    last = 0
    for line in lines:
        event = json.loads(line)
        meta = event["object"]["metadata"]
        assert int(meta["resourceVersion"]) > last
        last = int(meta["resourceVersion"])
        if event["type"] == "DELETED":
            assert state.pop(meta["name"])["metadata"]["uid"] == meta["uid"]
        else:
            assert (event["type"] == "ADDED") is (meta["name"] not in state)
            state[meta["name"]] = event["object"]
    return state


async def listed(http: Http) -> tuple[dict[str, Any], str]:
    answer = ok(await http("GET", DEPLOYMENTS))
    typed = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {item["metadata"]["name"]: {**typed, **item} for item in answer["items"]}, answer["metadata"][
        "resourceVersion"
    ]


async def program(server: ApiServer, http: Http, todo: list[tuple[str, str, Any]]) -> None:
    await http("DELETE", DEPLOYMENTS, {"propagationPolicy": "Background"})
    state, since = await listed(http)
    assert state == {}
    last = int(since)
    for step in todo:
        answer = await run(http, step)
        assert answer.code in (200, 201, 404, 409), (step[0], answer.body)
        after, _ = await listed(http)
        if answer.code >= 400:
            assert after == state, step
        last = check_step(state, after, last)
        state = after
    state, until = await listed(http)
    assert replay(await watched(http, since, until, len(todo) * 2)) == state


async def watched(http: Http, since: str, until: str, most: int) -> list[bytes]:
    """All events after `since` up to `until`, which a marker behind them ends."""
    marker = int(ok(await http("POST", DEPLOYMENTS, deployment("zz-end")), 201)["metadata"]["resourceVersion"])
    assert marker > int(until)
    lines: list[bytes] = []
    async with http.stream(f"{DEPLOYMENTS}?watch=1&resourceVersion={since}") as response, asyncio.timeout(LIMIT):
        while len(lines) <= most:
            line = await response.content.readline()
            if json.loads(line)["object"]["metadata"]["name"] == "zz-end":
                return lines
            lines.append(line)
    raise AssertionError(f"more events than writes: {len(lines)}")


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server in a loop of its own, for all examples."""
    directory: Path = tmp_path_factory.mktemp("laws")
    loop = uvloop.new_event_loop()
    server = ApiServer(ServerConfig(data_dir=directory, storage="memory://", port=0))
    loop.run_until_complete(server.start())

    async def connect() -> Http:
        return Http(server)

    http = loop.run_until_complete(connect())
    yield lambda todo: loop.run_until_complete(program(server, http, todo))
    loop.run_until_complete(http.close())
    loop.run_until_complete(server.stop())
    loop.close()


@settings(
    max_examples=120,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
@given(todo=st.lists(steps, min_size=3, max_size=14))
def test_any_sequence_of_writes_keeps_the_laws(laboratory: Any, todo: list[tuple[str, str, Any]]) -> None:
    laboratory(todo)
