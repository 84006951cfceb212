"""Watches over the wire: where they start, what they deliver, in which order, and how they end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.http import watch_stream as watch_module
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.subscription import Subscription
from tests.integration.streams import CONFIGMAPS, config_map, create, put, revision, served, types_and_names, watching
from tests.support.cases import cases
from tests.support.custom_kinds import definition
from tests.support.eventually import LIMIT, eventually
from tests.support.wire import Http


async def forget_history(server: ApiServer, client: Client, plural: str = "configmaps") -> None:
    """Make all history before now unavailable: push it out of the ring with new changes, and compact the store."""
    for number in range(101):
        name = f"churn-{number}"
        await client.create(
            CONFIG_MAPS, {"metadata": {"name": name, "namespace": "kube-public"}}, namespace="kube-public"
        )
    server.cache.collection(GroupResource("", plural)).trim(server.clock.monotonic() + 3600)
    await server.store.compact(server.store.revision)


async def test_a_list_and_a_watch_from_its_version_miss_and_repeat_nothing(http: Http) -> None:
    await create(http, "before")
    listed = (await http("GET", CONFIGMAPS + "?resourceVersion=0&limit=500")).json()
    await create(http, "between")
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={revision(listed)}") as events:
        assert types_and_names([await events.next()]) == [("ADDED", "between")]
        changed = await put(http, "before", colour="blue")
        event = await events.next()
        assert event == {"type": "MODIFIED", "object": changed}
        assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("ConfigMap", "v1")


async def test_the_headers_come_before_the_first_event(http: Http, server: ApiServer) -> None:
    path = f"{CONFIGMAPS}?watch=true&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        headers = events.response.headers
        assert headers["Content-Type"] == "application/json"
        assert headers["Transfer-Encoding"] == "chunked"
        assert headers["Cache-Control"] == "no-cache, private"
        assert "Content-Encoding" not in headers
        await create(http, "later")
        assert types_and_names([await events.next()]) == [("ADDED", "later")]


@cases("", "&resourceVersion=0", "&resourceVersion=")
async def test_without_a_version_a_watch_sends_the_current_state_first(version: str, http: Http) -> None:
    for name in ("a", "b"):
        await create(http, name, labels={"mine": "yes"})
    async with watching(http, f"{CONFIGMAPS}?watch=1&labelSelector=mine{version}") as events:
        assert sorted(types_and_names(await events.take(2))) == [("ADDED", "a"), ("ADDED", "b")]
        await create(http, "c", labels={"mine": "yes"})
        assert types_and_names([await events.next()]) == [("ADDED", "c")]


@cases("1", "true", "", "yes")
async def test_watch_is_on_unless_it_says_false_or_0(value: str, http: Http, server: ApiServer) -> None:
    async with watching(http, f"{CONFIGMAPS}?watch={value}&resourceVersion={server.cache.revision}") as events:
        await create(http, "a")
        assert types_and_names([await events.next()]) == [("ADDED", "a")]


@cases("0", "false")
async def test_watch_0_or_false_lists(value: str, http: Http) -> None:
    assert (await http("GET", f"{CONFIGMAPS}?watch={value}")).json()["kind"] == "ConfigMapList"


async def test_watch_with_a_name_in_the_path_is_a_get(http: Http) -> None:
    await create(http, "one")
    assert (await http("GET", f"{CONFIGMAPS}/one?watch=1")).json()["metadata"]["name"] == "one"


async def test_the_legacy_watch_prefix_watches(http: Http) -> None:
    for name in ("one", "two"):
        await create(http, name, labels={"mine": "yes"})
    prefix = "/api/v1/watch"
    async with watching(http, f"{prefix}/namespaces/default/configmaps/two") as events:
        assert types_and_names([await events.next()]) == [("ADDED", "two")]
        for name in ("one", "two"):
            await put(http, name, labels={"mine": "yes"}, changed="yes")
        assert types_and_names([await events.next()]) == [("MODIFIED", "two")]
    for path in ("/namespaces/default/configmaps", "/configmaps"):
        async with watching(http, f"{prefix}{path}?labelSelector=mine") as events:
            assert types_and_names(await events.take(2)) == [("ADDED", "one"), ("ADDED", "two")]
    async with watching(http, f"{prefix}/namespaces/default") as events:
        assert types_and_names([await events.next()]) == [("ADDED", "default")]


async def test_a_watch_of_one_name_sends_no_other(http: Http, server: ApiServer) -> None:
    path = f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dmine&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        await create(http, "other")
        await create(http, "mine")
        assert types_and_names([await events.next()]) == [("ADDED", "mine")]


async def test_a_deletion_carries_the_last_state_under_its_own_version(http: Http) -> None:
    made = await create(http, "gone", colour="red")
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={revision(made)}") as events:
        assert (await http("DELETE", f"{CONFIGMAPS}/gone")).code == 200
        event = await events.next()
        assert event["type"] == "DELETED"
        assert event["object"]["data"] == {"colour": "red"}
        assert revision(event["object"]) > revision(made)
        after = (await http("GET", CONFIGMAPS)).json()
        assert revision(event["object"]) <= revision(after)


async def test_an_object_that_begins_or_ceases_to_match_appears_or_disappears(http: Http, server: ApiServer) -> None:
    made = await create(http, "x", labels={"colour": "red"}, step="0")
    path = f"{CONFIGMAPS}?watch=1&labelSelector=colour%3Dblue&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        appeared = await put(http, "x", labels={"colour": "blue"}, step="1")
        assert await events.next() == {"type": "ADDED", "object": appeared}
        changed = await put(http, "x", labels={"colour": "blue"}, step="2")
        assert await events.next() == {"type": "MODIFIED", "object": changed}
        left = await put(http, "x", labels={"colour": "green"}, step="3")
        event = await events.next()
        assert event["type"] == "DELETED"
        assert event["object"]["data"] == {"step": "2"}
        assert revision(event["object"]) == revision(left)
        await put(http, "x", labels={"colour": "white"}, step="4")
        await http("DELETE", f"{CONFIGMAPS}/x")
        await create(http, "y", labels={"colour": "blue"})
        assert types_and_names([await events.next()]) == [("ADDED", "y")]
    replay = f"{CONFIGMAPS}?watch=1&labelSelector=colour%3Dblue&resourceVersion={revision(made)}"
    async with watching(http, replay) as events:
        assert types_and_names(await events.take(4)) == [
            ("ADDED", "x"),
            ("MODIFIED", "x"),
            ("DELETED", "x"),
            ("ADDED", "y"),
        ]


async def test_a_field_selector_follows_transitions_too(http: Http, server: ApiServer) -> None:
    await served(http, "/api/v1/namespaces/default/serviceaccounts/default")
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = f"{pods}?watch=1&fieldSelector=spec.nodeName%3Dn1&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        assert (await http("POST", pods, pod)).code == 201
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await http("POST", f"{pods}/p/binding", target)).code == 201
        assert types_and_names([await events.next()]) == [("ADDED", "p")]


async def test_versions_rise_and_every_watcher_sees_the_same_order(http: Http, server: ApiServer) -> None:
    path = f"{CONFIGMAPS}?watch=1&resourceVersion={server.cache.revision}"
    async with watching(http, path) as one, watching(http, path) as two:
        await asyncio.gather(*(create(http, f"n-{n}") for n in range(50)))
        seen, again = await one.take(50), await two.take(50)
    assert seen == again
    revisions = [revision(event["object"]) for event in seen]
    assert revisions == sorted(set(revisions))


async def test_a_write_that_changes_nothing_is_no_event(http: Http) -> None:
    made = await create(http, "same", a="b")
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={revision(made)}") as events:
        assert revision(await put(http, "same", a="b")) == revision(made)
        await create(http, "next")
        assert types_and_names([await events.next()]) == [("ADDED", "next")]


async def test_timeout_seconds_ends_the_stream_cleanly(http: Http, server: ApiServer) -> None:
    started = time.monotonic()
    path = f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        assert await events.rest() == []  # aiohttp raises if the chunked body is cut short
    assert 0.9 < time.monotonic() - started < LIMIT


async def test_bookmarks_come_only_when_requested_and_say_how_far_all_is_reported(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "BOOKMARK_SECONDS", 0.2)
    start = server.cache.revision
    quiet = f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={start}&labelSelector=none"
    async with watching(http, f"{quiet}&allowWatchBookmarks=true") as events, watching(http, quiet) as silent:
        await create(http, "unseen")
        latest = server.cache.revision
        event = (await events.until("BOOKMARK"))[-1]
        while revision(event["object"]) < latest:
            event = await events.next()
        assert event["object"]["kind"] == "ConfigMap"
        assert event["object"]["apiVersion"] == "v1"
        assert event["object"]["metadata"].keys() == {"resourceVersion"}
        assert await silent.rest() == []


async def test_a_bookmark_comes_before_the_end(http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "BEFORE_END_SECONDS", 0.5)
    path = f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={server.cache.revision}"
    async with watching(http, path) as events:
        assert [event["type"] for event in await events.rest()] == ["BOOKMARK"]


async def test_too_old_a_version_is_reported_in_the_stream_which_then_ends(
    http: Http, server: ApiServer, client: Client
) -> None:
    old = revision(await create(http, "old"))
    await forget_history(server, client)
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={old}") as events:
        [event] = await events.rest()
    status = event["object"]
    assert event["type"] == "ERROR"
    assert (status["code"], status["reason"], status["status"]) == (410, "Expired", "Failure")
    assert status["message"].startswith(f"too old resource version: {old} (")
    assert (status["kind"], status["apiVersion"], status["metadata"]) == ("Status", "v1", {})


async def test_history_of_one_resource_outlives_churn_in_another(http: Http, client: Client, server: ApiServer) -> None:
    made = (await http("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "quiet"}})).json()
    await forget_history(server, client)
    path = f"/api/v1/namespaces/default/secrets?watch=1&resourceVersion={revision(made) - 1}"
    async with watching(http, path) as events:
        assert types_and_names([await events.next()]) == [("ADDED", "quiet")]


async def test_a_watch_from_a_version_of_the_future_is_silent_until_then(http: Http, server: ApiServer) -> None:
    await create(http, "old")
    since = server.cache.revision + 2
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={since}") as events:
        for number in range(4):
            await put(http, "old", x=str(number))
        event = await events.next()
        assert (event["type"], revision(event["object"])) == ("MODIFIED", since + 1)


async def test_a_future_version_that_does_not_come_ends_the_watch(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "AHEAD_SECONDS", 0.1)
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={server.cache.revision + 1000}") as events:
        [event] = await events.rest()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 504, "Timeout")


async def test_a_streamed_list_of_a_future_version_is_an_error_in_the_stream(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.kube.server.handlers.reads.FRESHNESS_SECONDS", 0.1)
    current = server.cache.revision
    query = f"watch=1&resourceVersion={current + 1000}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with watching(http, f"{CONFIGMAPS}?{query}") as events:
        [event] = await events.rest()
    status = event["object"]
    assert (event["type"], status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
    assert status["message"].startswith(f"Timeout: Too large resource version: {current + 1000}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert status["details"] == {"causes": [cause], "retryAfterSeconds": 1}


async def test_a_version_just_ahead_is_waited_for(http: Http, server: ApiServer) -> None:
    path = f"{CONFIGMAPS}?watch=1&resourceVersion={server.cache.revision + 1}"
    opening = asyncio.ensure_future(http.stream(path).__aenter__())
    await asyncio.sleep(0)
    await create(http, "first")
    await create(http, "second")
    async with asyncio.timeout(LIMIT):
        response = await opening
        line = await response.content.readline()
    assert b'"second"' in line
    response.close()


async def test_a_bad_version_is_refused(http: Http) -> None:
    why = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    for path in (f"{CONFIGMAPS}?watch=1&resourceVersion=abc", f"{CONFIGMAPS}/x?resourceVersion=abc"):
        answer = await http("GET", path)
        assert (answer.code, answer.json()["message"], "reason" in answer.json()) == (500, why, False)
    answer = await http("GET", f"{CONFIGMAPS}?resourceVersion=abc")
    assert (answer.code, answer.json()["reason"]) == (400, "BadRequest")
    assert answer.json()["message"] == f"invalid resource version: {why}"


WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


async def test_a_streamed_list_ends_with_a_marked_bookmark_and_goes_on_live(http: Http) -> None:
    for name in ("a", "b"):
        await create(http, name, labels={"mine": "yes"})
    async with watching(http, f"{CONFIGMAPS}?{WATCH_LIST}&labelSelector=mine") as events:
        first = await events.until("BOOKMARK")
        assert sorted(types_and_names(first[:-1])) == [("ADDED", "a"), ("ADDED", "b")]
        bookmark = first[-1]["object"]
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["kind"] == "ConfigMap"
        assert revision(bookmark) >= max(revision(event["object"]) for event in first[:-1])
        made = await create(http, "c", labels={"mine": "yes"})
        event = await events.next()
        assert types_and_names([event]) == [("ADDED", "c")]
        assert revision(event["object"]) == revision(made) > revision(bookmark)


async def test_a_streamed_list_of_nothing_still_has_its_bookmark(http: Http) -> None:
    async with watching(http, f"/api/v1/pods?{WATCH_LIST}") as events:
        assert [event["type"] for event in await events.until("BOOKMARK")] == ["BOOKMARK"]


async def test_a_streamed_list_waits_for_the_requested_version(http: Http, server: ApiServer) -> None:
    wanted = server.cache.revision + 1
    opening = asyncio.ensure_future(http.stream(f"{CONFIGMAPS}?{WATCH_LIST}&resourceVersion={wanted}").__aenter__())
    await asyncio.sleep(0)
    await create(http, "waited-for")
    async with asyncio.timeout(LIMIT):
        response = await opening
        names = [await response.content.readline() for _ in range(2)]
    assert any(b'"waited-for"' in line for line in names)
    response.close()


async def test_a_streamed_list_without_bookmarks_has_none(http: Http) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    await create(http, "a", labels={"mine": "yes"})
    async with watching(http, f"{CONFIGMAPS}?{query}&labelSelector=mine") as events:
        assert types_and_names([await events.next()]) == [("ADDED", "a")]
        await create(http, "b", labels={"mine": "yes"})
        assert types_and_names([await events.next()]) == [("ADDED", "b")]


@cases("", "&resourceVersion=0")
async def test_without_initial_events_a_watch_sends_only_later_changes(version: str, http: Http) -> None:
    await create(http, "old")
    query = f"watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan{version}"
    async with watching(http, f"{CONFIGMAPS}?{query}") as events:
        await create(http, "new")
        assert types_and_names([await events.next()]) == [("ADDED", "new")]


async def test_a_legacy_watch_of_the_current_state_marks_its_end_when_bookmarks_are_allowed(http: Http) -> None:
    async with watching(http, f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true&labelSelector=none") as events:
        event = await events.next()
        assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@cases(
    ("watch=1&sendInitialEvents=true",
     "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    ("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
     "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan,"
     ' resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]'),
    ("watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1",
     "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents"
     " is provided"),
    ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1",
     "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ("sendInitialEvents=true&resourceVersionMatch=Odd",
     "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided,"
     ' resourceVersionMatch: Unsupported value: "Odd": supported values: "Exact", "NotOlderThan", "",'
     " sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]"),
)  # fmt: skip
async def test_options_that_contradict_each_other_are_refused(query: str, why: str, http: Http) -> None:
    answer = await http("GET", f"{CONFIGMAPS}?{query}")
    assert answer.code == 422
    status = answer.json()
    assert status["message"] == f'ListOptions.meta.k8s.io "" is invalid: {why}'
    assert (status["reason"], status["details"]["kind"], status["details"]["group"]) == (
        "Invalid", "ListOptions", "meta.k8s.io",
    )  # fmt: skip


async def test_deleting_a_crd_ends_the_watches_of_its_objects(http: Http) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
    assert (await http("POST", crds, definition("example.com", "Gadget"))).code == 201
    await served(http, gadgets)
    made = await http("POST", gadgets, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    assert made.code == 201
    async with watching(http, f"{gadgets}?watch=1") as events:
        assert types_and_names([await events.next()]) == [("ADDED", "g")]
        assert (await http("DELETE", f"{crds}/gadgets.example.com")).code == 200
        assert ("DELETED", "g") in types_and_names(await events.rest())


async def test_events_of_every_version_of_a_kind_carry_the_same_revisions(http: Http, server: ApiServer) -> None:
    start = server.cache.revision
    hpa = {
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3},
    }
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    assert (await http("POST", path.format("v1"), hpa)).code == 201
    seen = {}
    for version in ("v1", "v2"):
        async with watching(http, path.format(version) + f"?watch=1&resourceVersion={start}") as events:
            event = await events.next()
            assert event["object"]["apiVersion"] == f"autoscaling/{version}"
            seen[version] = revision(event["object"])
    assert seen["v1"] == seen["v2"]


EVENTS = "/api/v1/namespaces/default/events"
"""Which the garbage collector, that begins some time after the start, does not watch."""


async def test_a_client_that_goes_away_leaves_nothing_behind(http: Http, server: ApiServer) -> None:
    collection = server.cache.collection(GroupResource("", "events"))
    before = collection.watchers
    async with watching(http, f"{EVENTS}?watch=1") as events:
        assert collection.watchers == before + 1
        events.response.close()
        await eventually(lambda: collection.watchers == before)


async def test_a_watch_with_an_unknown_accept_leaves_nothing_behind(http: Http, server: ApiServer) -> None:
    collection = server.cache.collection(GroupResource("", "events"))
    before = collection.watchers
    answer = await http("GET", f"{EVENTS}?watch=1", headers={"Accept": "text/html"})
    assert answer.code == 406
    assert collection.watchers == before


async def test_a_slow_consumer_is_cut_off_and_resumes_without_a_gap(
    http: Http, server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe, ours = Collection.subscribe, list[Subscription]()

    async def subscribed(self: Collection, *given: Any, **named: Any) -> Subscription:
        subscription = await subscribe(self, *given, **{"buffer": 20, **named})
        if subscription.namespace == "default":  # the server's own watches are of all namespaces
            ours.append(subscription)
        return subscription

    monkeypatch.setattr(Collection, "subscribe", subscribed)
    start, filler, count = server.cache.revision, "x" * 200_000, 0
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={start}") as events:
        while not ours[0].ended:  # write until the buffers in between are full and the server gives up
            await client.create(CONFIG_MAPS, config_map(f"n-{count:04d}", filler=filler), namespace="default")
            count += 1
            assert count < 2000, "the server holds an unbounded backlog for a client that does not read"
        seen = await events.rest()
    position = revision(seen[-1]["object"]) if seen else start
    assert len(seen) < count
    async with watching(http, f"{CONFIGMAPS}?watch=1&resourceVersion={position}") as resumed:
        seen += await resumed.take(count - len(seen))
    assert types_and_names(seen) == [("ADDED", f"n-{n:04d}") for n in range(count)]
