"""Lists over the wire: which moment they show, their order, and how their pages hang together."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.interface import StoreUnavailable
from tests.integration.streams import CONFIGMAPS, config_map, create, put, revision
from tests.support.cases import cases
from tests.support.wire import Http

on_module_loop = pytest.mark.asyncio(loop_scope="module")

MINE = "labelSelector=mine"


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def fill(client: Client, *names: str, namespace: str = "default") -> None:
    for name in names:
        await client.create(CONFIG_MAPS, config_map(name, labels={"mine": "yes"}), namespace=namespace)


async def forget_history(server: ApiServer, client: Client) -> None:
    """Push what the ring remembers out of it, and compact the store."""
    for number in range(101):
        await client.create(CONFIG_MAPS, config_map(f"churn-{number}"), namespace="kube-public")
    server.cache.collection(GroupResource("", "configmaps")).trim(server.clock.monotonic() + 3600)
    await server.store.compact(server.store.revision)


async def test_a_list_names_its_kind_and_the_moment_it_shows(http: Http, client: Client) -> None:
    await fill(client, "a", "b")
    listed = (await http("GET", f"{CONFIGMAPS}?{MINE}")).json()
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert set(listed["metadata"]) == {"resourceVersion"}
    assert revision(listed) >= max(revision(item) for item in listed["items"])
    assert all("kind" not in item and "apiVersion" not in item for item in listed["items"])
    assert (await http("GET", "/api/v1/pods")).json()["items"] == []
    assert b'"items":[]' in (await http("GET", "/api/v1/pods")).body


async def test_items_come_in_the_byte_order_of_namespace_and_name(http: Http, client: Client) -> None:
    namespaces = ["a", "a-b", "a0", "b"]
    for namespace in namespaces:
        await client.create(GVR("", "v1", "namespaces"), {"metadata": {"name": namespace}})
        await fill(client, "x", "x-1", "x.1", "x1", namespace=namespace)
    listed = (await http("GET", f"/api/v1/configmaps?{MINE}")).json()
    keys = [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in listed["items"]]
    assert len(keys) == 16
    assert keys == sorted(keys, key=str.encode)
    paged: list[str] = []
    token = ""
    while True:
        page = (await http("GET", f"/api/v1/configmaps?{MINE}&limit=3&continue={token}")).json()
        paged += [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert paged == keys


async def test_pages_show_one_moment_whatever_happens_in_between(http: Http, client: Client) -> None:
    await fill(client, *"bdfhj")
    first = (await http("GET", f"{CONFIGMAPS}?limit=2&{MINE}")).json()
    assert names(first) == ["b", "d"]
    assert "remainingItemCount" not in first["metadata"]
    await fill(client, "a", "c", "e", "z")
    await http("DELETE", f"{CONFIGMAPS}/f")
    await put(http, "h", labels={"mine": "yes"}, changed="yes")
    second = (await http("GET", f"{CONFIGMAPS}?limit=2&{MINE}&continue={first['metadata']['continue']}")).json()
    assert names(second) == ["f", "h"]
    assert "data" not in second["items"][1]
    assert revision(second) == revision(first)
    third = (await http("GET", f"{CONFIGMAPS}?limit=2&{MINE}&continue={second['metadata']['continue']}")).json()
    assert names(third) == ["j"]
    assert revision(third) == revision(first)
    assert "continue" not in third["metadata"]
    assert names((await http("GET", f"{CONFIGMAPS}?{MINE}")).json()) == list("abcdehjz")


async def test_the_remaining_count_is_reported_only_without_selectors(http: Http, client: Client) -> None:
    await fill(client, *"abcde")
    total = len((await http("GET", CONFIGMAPS)).json()["items"])
    page = (await http("GET", f"{CONFIGMAPS}?limit=2")).json()
    assert page["metadata"]["remainingItemCount"] == total - 2
    following = (await http("GET", f"{CONFIGMAPS}?limit=2&continue={page['metadata']['continue']}")).json()
    assert following["metadata"]["remainingItemCount"] == total - 4
    selected = (await http("GET", f"{CONFIGMAPS}?limit=2&fieldSelector=metadata.name!%3Da")).json()
    assert "remainingItemCount" not in selected["metadata"]
    assert selected["metadata"]["continue"]


async def test_a_page_with_selectors_looks_no_further_than_its_end(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, looked = server.client(), list[str]()
    await fill(inside, *(f"m{number:02}" for number in range(20)))
    real: Any = Doc.__dict__["labels"]

    def counted(entry: Doc) -> Any:
        looked.append(entry.name)
        return real.fget(entry)

    monkeypatch.setattr(Doc, "labels", property(counted))
    found = [
        names({"items": page.items}) async for page in inside.pages(CONFIG_MAPS, label_selector="mine", page_size=5)
    ]
    assert [len(page) for page in found] == [5, 5, 5, 5]
    assert len([name for name in looked if name.startswith("m")]) == 23  # and one more for each page but the last


async def test_a_page_inside_the_process_is_parsed_while_it_is_read(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, parsed = server.client(), list[str]()
    await fill(inside, *"abcdef")
    real = Doc.object

    def counted(entry: Doc) -> Any:
        parsed.append(entry.name)
        return real(entry)

    monkeypatch.setattr(Doc, "object", counted)
    async for page in inside.pages(CONFIG_MAPS, label_selector="mine", page_size=4):
        parsed.clear()
        for number, obj in enumerate(page.items, 1):
            assert (len(parsed), parsed[-1]) == (number, obj["metadata"]["name"])


async def test_a_token_is_the_snapshot_and_the_last_key(http: Http, client: Client) -> None:
    await fill(client, *"abc")
    page = (await http("GET", f"{CONFIGMAPS}?limit=1&{MINE}")).json()
    token = page["metadata"]["continue"]
    assert "=" not in token
    decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert decoded["v"] == "meta.k8s.io/v1"
    assert decoded["rv"] == revision(page)
    assert decoded["start"].endswith("a\0")


async def test_a_page_of_all_there_is_has_no_token(http: Http, client: Client) -> None:
    await fill(client, "a", "b")
    for limit in (2, 3, 0, -1):
        listed = (await http("GET", f"{CONFIGMAPS}?{MINE}&limit={limit}")).json()
        assert (names(listed), set(listed["metadata"])) == (["a", "b"], {"resourceVersion"})


async def test_an_expired_token_comes_with_one_that_goes_on_from_the_same_place(
    http: Http, server: ApiServer, client: Client
) -> None:
    await fill(client, *"bdf")
    first = (await http("GET", f"{CONFIGMAPS}?limit=1&{MINE}")).json()
    await fill(client, "a", "c")
    await http("DELETE", f"{CONFIGMAPS}/d")
    await forget_history(server, client)
    answer = await http("GET", f"{CONFIGMAPS}?limit=1&{MINE}&continue={first['metadata']['continue']}")
    status = answer.json()
    assert (answer.code, status["reason"], status["code"]) == (410, "Expired", 410)
    assert status["message"].startswith(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results."
    )
    seen = []
    token = status["metadata"]["continue"]
    while token:
        page = (await http("GET", f"{CONFIGMAPS}?limit=1&{MINE}&continue={token}")).json()
        assert revision(page) > revision(first)
        seen += names(page)
        token = page["metadata"].get("continue")
    assert seen == ["c", "f"]


async def test_older_pages_come_from_the_store_once_memory_has_forgotten_them(certificates: Path) -> None:
    server = ApiServer(ServerConfig(data_dir=certificates, storage="memory://", port=0, controllers=False))
    await server.start()
    http, client = Http(server), server.client()
    try:
        await fill(client, *"abcdef")
        first = (await http("GET", f"{CONFIGMAPS}?limit=2")).json()
        await http("DELETE", f"{CONFIGMAPS}/c")
        for number in range(101):
            await client.create(CONFIG_MAPS, config_map(f"churn-{number}"), namespace="kube-public")
        server.cache.collection(GroupResource("", "configmaps")).trim(server.clock.monotonic() + 3600)
        page = (await http("GET", f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")).json()
        assert names(page) == ["c", "d"]
        assert page["metadata"]["remainingItemCount"] == 2
        assert revision(page) == revision(first)
        exact = f"{CONFIGMAPS}?resourceVersion={revision(first)}&resourceVersionMatch=Exact"
        assert names((await http("GET", exact)).json()) == list("abcdef")
        selected = (await http("GET", f"{exact}&limit=1&fieldSelector=metadata.name!%3Da")).json()
        assert names(selected) == ["b"]
    finally:
        await http.close()
        await server.stop()


@cases(
    ("", "abc", False),
    ("resourceVersion=0", "abc", False),
    ("resourceVersion=0&limit=1", "abc", False),
    ("resourceVersion=0&limit=1&resourceVersionMatch=NotOlderThan", "abc", False),
    ("resourceVersion={then}", "abc", False),
    ("resourceVersion={then}&limit=1", "a", True),
    ("resourceVersion={then}&limit=5", "ab", True),
    ("resourceVersion={then}&resourceVersionMatch=NotOlderThan", "abc", False),
    ("resourceVersion={then}&resourceVersionMatch=NotOlderThan&limit=1", "a", False),
    ("resourceVersion={then}&resourceVersionMatch=Exact", "ab", True),
    ("resourceVersion={then}&resourceVersionMatch=Exact&limit=1", "a", True),
)
async def test_which_moment_a_list_shows(query: str, shown: str, exact: bool, http: Http, client: Client) -> None:
    await fill(client, "a")
    made = await create(http, "b", labels={"mine": "yes"})
    then = revision(made)
    await fill(client, "c")
    listed = (await http("GET", f"{CONFIGMAPS}?{MINE}&{query.format(then=then)}")).json()
    assert names(listed) == list(shown)
    assert (revision(listed) == then) is exact
    if "resourceVersion=0" in query:
        assert "continue" not in listed["metadata"]


@on_module_loop
@cases(
    ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
    ("resourceVersionMatch=NotOlderThan", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
    ("resourceVersionMatch=Exact&resourceVersion=0",
     'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
    ("resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
     "resourceVersionMatch is forbidden when continue is provided"),
)  # fmt: skip
async def test_a_match_that_means_nothing_is_refused(query: str, why: str, idle: Http) -> None:
    answer = await idle("GET", f"{CONFIGMAPS}?{query}")
    status = answer.json()
    assert (answer.code, status["reason"]) == (422, "Invalid")
    assert status["message"] == f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {why}'
    [cause] = status["details"]["causes"]
    assert cause["field"] == "resourceVersionMatch"


@on_module_loop
@cases(
    ("resourceVersion=abc", "invalid resource version: "),
    ("resourceVersion=-1", "invalid resource version: "),
    ("resourceVersion=1_0", "invalid resource version: "),
    ("continue=!!!", "invalid continue token: "),
    ("continue=e30", "invalid continue token: "),
    ("limit=x", "strconv.ParseInt: parsing"),
    ("timeoutSeconds=x", "strconv.ParseInt: parsing"),
)
async def test_what_cannot_be_read_is_a_bad_request(query: str, start: str, idle: Http) -> None:
    answer = await idle("GET", f"{CONFIGMAPS}?{query}")
    assert (answer.code, answer.json()["reason"]) == (400, "BadRequest")
    assert answer.json()["message"].startswith(start)


async def test_a_token_beside_a_version_is_refused(http: Http, client: Client) -> None:
    await fill(client, "a", "b")
    token = (await http("GET", f"{CONFIGMAPS}?limit=1")).json()["metadata"]["continue"]
    answer = await http("GET", f"{CONFIGMAPS}?continue={token}&resourceVersion=5")
    assert answer.code == 400
    assert answer.json()["message"] == "specifying resource version is not allowed when using continue"
    assert (await http("GET", f"{CONFIGMAPS}?continue={token}&resourceVersion=0")).code == 200


async def test_a_version_that_is_gone_cannot_be_read_exactly(http: Http, server: ApiServer, client: Client) -> None:
    old = revision(await create(http, "a"))
    await fill(client, "b")
    await forget_history(server, client)
    answer = await http("GET", f"{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=Exact")
    assert (answer.code, answer.json()["reason"]) == (410, "Expired")
    assert (await http("GET", f"{CONFIGMAPS}?resourceVersion={old}")).code == 200


@cases(CONFIGMAPS, f"{CONFIGMAPS}/kube-root-ca.crt")
async def test_a_version_of_the_future_is_a_timeout(
    path: str, http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.kube.server.handlers.reads.FRESHNESS_SECONDS", 0.1)
    answer = await http("GET", f"{path}?resourceVersion={server.cache.revision + 1000}")
    status = answer.json()
    assert (answer.code, status["reason"]) == (504, "Timeout")
    assert status["message"].startswith("Timeout: Too large resource version: ")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["Retry-After"] == "1"


async def test_a_version_just_ahead_is_waited_for(http: Http, server: ApiServer) -> None:
    waiting = asyncio.ensure_future(http("GET", f"{CONFIGMAPS}?resourceVersion={server.cache.revision + 1}"))
    await asyncio.sleep(0)
    await create(http, "awaited")
    answer = await waiting
    assert "awaited" in names(answer.json())


async def test_what_is_written_is_in_the_next_list(http: Http) -> None:
    for number in range(20):
        await create(http, f"n-{number:02d}", labels={"mine": "yes"})
        assert len((await http("GET", f"{CONFIGMAPS}?{MINE}")).json()["items"]) == number + 1


async def test_a_list_in_another_version_shows_the_same_objects(http: Http) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    for name in "abc":
        hpa = {
            "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3},
        }
        assert (await http("POST", path.format("v1"), hpa)).code == 201
    for version in ("v1", "v2"):
        page = (await http("GET", path.format(version) + "?limit=2")).json()
        assert (page["kind"], page["apiVersion"]) == ("HorizontalPodAutoscalerList", f"autoscaling/{version}")
        assert names(page) == ["a", "b"]
        assert "apiVersion" not in page["items"][0]
        rest = (await http("GET", path.format(version) + f"?limit=2&continue={page['metadata']['continue']}")).json()
        assert names(rest) == ["c"]


@cases("slow", "away")
async def test_nothing_old_is_shown_as_current_when_the_store_does_not_answer(
    failure: str, http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fresh() -> bool:
        if failure == "away":
            raise StoreUnavailable("gone")
        return False

    monkeypatch.setattr(server.cache, "fresh", fresh)
    for path, verb in ((CONFIGMAPS, "list"), (f"{CONFIGMAPS}/a", "get"), (f"{CONFIGMAPS}?watch=1", "watch")):
        answer = await http("GET", path)
        status = answer.json()
        assert (answer.code, status["reason"], answer.headers["Retry-After"]) == (500, "ServerTimeout", "1")
        assert status["message"] == (
            f"The {verb} operation against configmaps could not be completed at this time, please try again."
        )
    assert (await http("GET", f"{CONFIGMAPS}?resourceVersion=0")).code == 200
