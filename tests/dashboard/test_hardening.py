"""What an attacker would try on the dashboard, and why it leads nowhere."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from karmada.dashboard import security
from karmada.dashboard.blast_radius import policies_in
from karmada.dashboard.drills import Drills
from karmada.dashboard.live import BadTopic, Live, parse_topic
from karmada.dashboard.pages import PAGES
from karmada.dashboard.pages.pods import size_of
from karmada.dashboard.predictions import Predictions
from karmada.dashboard.sessions import MOST_OF_ONE, Session, Sessions
from karmada.dashboard.view import MOST_AT_ONCE, View
from karmada.dashboard.viewer import Identity, Viewer
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import TooManyRequests, Unauthorized
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane, dashboard_plane

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


def viewer_of(clock: FakeClock, name: str = "a") -> Viewer:
    return Viewer(Identity(name), RestConfig("https://127.0.0.1:1", token="s3cret"), clock)


def view_of(session: Session, clock: FakeClock) -> View:
    nothing: Any = None
    return View(nothing, session, nothing, clock, False, "", Predictions())


# names and addresses


@cases(
    ("member1", False),
    ("system:node", False),
    ("a.b-c", False),
    ("", True),
    (".", True),
    ("..", True),
    ("a/b", True),
    ("..\\a", True),
    ("%2e%2e", True),
    ("a?b", True),
    ("a#b", True),
    ("a\r\nX: y", True),
    ("a b", True),
)
def test_a_name_never_leads_to_another_api_path(name: str, refused: bool) -> None:
    assert bool(security.path_refused(["ok", name])) is refused


@cases(
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/ /x",
    "",
    "x",
)
def test_a_login_leads_to_no_other_site(target: str) -> None:
    assert security.local(target) == "/"


def test_a_login_leads_back_to_a_page_here() -> None:
    assert security.local("/clusters/a?x=1&y=%2F%2Fb") == "/clusters/a?x=1&y=%2F%2Fb"


@cases(
    CLUSTERS,
    "/api/v1/namespaces/a/pods?labelSelector=a%3Db&resourceVersion=7",
    f"{CLUSTERS}/member1/proxy/apis/apps/v1/namespaces/a/deployments",
)
def test_a_topic_is_a_list(topic: str) -> None:
    assert parse_topic(topic).path == topic.partition("?")[0]


@cases(
    "/metrics",
    "https://evil.example/api/v1/pods",
    "//evil.example/api/v1/pods",
    "/api/v1/namespaces/a/services/b/proxy/shutdown",
    "/api/v1/namespaces/a/pods/b/log",
    "/api/v1/../../healthz",
    "/api/v1/%2e%2e/secrets",
    f"{CLUSTERS}/a/proxy/healthz",
    f"{CLUSTERS}/a%2Fb/proxy/api/v1/pods",
    f"{CLUSTERS}/../proxy/api/v1/pods",
    f"{CLUSTERS}\ndata: x",
    "/api/v1/pods?watch=true",
)
def test_a_topic_is_nothing_else(topic: str) -> None:
    with pytest.raises(BadTopic):
        parse_topic(topic)


@cases("/pods/..%2F..%2Fx/a/b", "/clusters/a%2Fproxy", "/events?cluster=..%2F..", "/quota?namespace=a/b")
async def test_names_of_requests_are_checked_before_anything_is_read(path: str, plane: DashboardPlane) -> None:
    await plane.browser.log_in()
    async with plane.browser.session.get(URL(plane.browser.url + path, encoded=True)) as got:
        assert (got.status, "is not a name" in await got.text()) == (400, True)


# responses


async def test_every_response_is_protected_and_says_nothing_of_what_serves_it(plane: DashboardPlane) -> None:
    browser = plane.browser
    answers = [(await browser.get("/login")).headers, (await browser.get("/nowhere")).headers]
    answers.append((await browser.get("/", Host="evil.example")).headers)
    await browser.log_in()
    answers += [(await browser.get(path)).headers for path in ("/", "/clusters/none", "/pods/a/b/c/logs?tail=x")]
    async with browser.session.get(f"{browser.url}/live", params={"topic": CLUSTERS}) as stream:
        answers.append(stream.headers)
    for headers in answers:
        assert "Server" not in headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        policy = headers["Content-Security-Policy"]
        for rule in ("default-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"):
            assert rule in policy


def test_only_what_is_named_here_is_posted_to_a_dashboard_that_only_reads() -> None:
    """Predictions: both compute, with reads, what would happen."""
    routes = [route for page in PAGES for route in page.routes]
    posted = {route.path for route in routes if route.method not in security.SAFE and not route.changes}
    assert posted == {"/policies/preview", "/failover/drill"}
    assert {route.path for route in routes if route.path.endswith("/terminal") and not route.changes} == set()


async def test_every_change_is_refused_by_a_dashboard_that_only_reads(plane: DashboardPlane) -> None:
    await plane.browser.log_in()
    changes = [route for page in PAGES for route in page.routes if route.changes]
    assert changes
    for route in changes:
        path = "".join(
            "a" if part.startswith("{") else part
            for part in route.path.replace("}", "}\0").replace("{", "\0{").split("\0")
        )
        send = (
            plane.browser.get(path) if route.method == "GET" else plane.browser.post(path, {"csrf": plane.browser.csrf})
        )
        answer = await send
        assert (answer.status, "read-only" in answer.text) == (403, True), path


# logins


async def test_a_kubeconfig_that_is_uploaded_stays_in_memory(plane: DashboardPlane, monkeypatch: Any) -> None:
    def on_disk(*_: Any, **__: Any) -> Any:
        raise AssertionError("credentials must not be written to a disk")

    monkeypatch.setattr(tempfile, "TemporaryFile", on_disk)
    form = aiohttp.FormData({"method": "kubeconfig", "to": "/quota"})
    form.add_field("file", plane.server.kubeconfig.read_bytes(), filename="config")
    headers = {"Origin": plane.browser.url}
    login = plane.browser.session.post(f"{plane.browser.url}/login", data=form, headers=headers, allow_redirects=False)
    async with login as got:
        assert (got.status, got.headers.get("Location")) == (303, "/quota")


async def test_a_login_that_is_too_large_is_not_read(plane: DashboardPlane) -> None:
    answer = await plane.browser.post("/login", {"method": "kubeconfig", "kubeconfig": "a" * security.MAX_LOGIN})
    assert answer.status == 413


async def test_the_logins_of_one_do_not_end_the_sessions_of_others() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    secret, _ = await sessions.open(viewer_of(clock, "quiet"))
    await clock.advance(1)
    for _ in range(MOST_OF_ONE + 5):
        await sessions.open(viewer_of(clock, "busy"))
    assert len(sessions) == MOST_OF_ONE + 1
    assert await sessions.find(secret) is not None


# the end of a session


async def test_whatever_a_request_does_ends_with_its_session() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    secret, session = await sessions.open(viewer_of(clock))
    begun = asyncio.Event()

    async def handle() -> None:
        with view_of(session, clock).until_logout():
            begun.set()
            await asyncio.Event().wait()

    request = asyncio.create_task(handle())
    await begun.wait()
    await sessions.close(secret)
    with pytest.raises(asyncio.CancelledError):
        await request
    with pytest.raises(Unauthorized), view_of(session, clock).until_logout():
        pytest.fail("the session has ended")


async def test_a_session_has_so_many_requests_at_once() -> None:
    clock = FakeClock()
    session = Session(viewer_of(clock), 0.0, 0.0)
    session.closing += [lambda: None] * MOST_AT_ONCE
    with pytest.raises(TooManyRequests), view_of(session, clock).until_logout():
        pytest.fail("there are too many")


async def test_a_stream_that_begins_after_the_end_gets_nothing_and_watches_nothing() -> None:
    clock = FakeClock()
    live = Live(viewer_of(clock), clock)
    stream = live.stream([CLUSTERS])
    live.close()
    assert [event async for event in stream] == []
    assert (len(live), live.streams) == (0, 0)


def test_what_a_page_requests_by_itself_does_not_keep_its_session() -> None:
    """Whatever a timer requests says so, as what a change causes does."""
    folder = Path(security.__file__).parent / "templates"
    tags = [tag for file in folder.rglob("*.html") for tag in re.findall(r"<[^>]*every \d+s[^>]*>", file.read_text())]
    assert tags
    assert [tag for tag in tags if """hx-headers='{"X-Live": "1"}'""" not in tag] == []


# memory


async def test_a_page_that_does_not_read_its_stream_is_owed_each_event_once() -> None:
    clock = FakeClock()
    live = Live(viewer_of(clock), clock)
    stream = live.stream([f"{CLUSTERS}?resourceVersion=1"])
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    (topic,) = live._topics.values()
    for _ in range(100):
        topic._notify("changed")
    live.close()
    assert (await first)[0] == "changed"
    assert [event async for event in stream] == []


async def test_what_is_kept_for_a_viewer_is_bounded() -> None:
    clock = FakeClock()
    viewer = viewer_of(clock)

    async def read() -> str:
        return "x"

    for number in range(1000):
        assert await viewer.kept(number, 60.0, read) == "x"
        viewer.seen(str(number), deque[int]).append(number)
    assert len(viewer._kept) == 256
    assert len(viewer._seen) == 64
    assert viewer.seen("999", deque[int]) == deque([999])


# terminals, policies and drills


async def test_a_right_in_a_member_is_reviewed_in_the_member() -> None:
    reviewed: list[Obj] = []

    class Member:
        async def create(self, _gvr: Any, body: Obj, _namespace: str) -> Obj:
            reviewed.append(body["spec"]["resourceAttributes"])
            return {"status": {"allowed": len(reviewed) == 1}}

    viewer = viewer_of(FakeClock())
    member: Any = Member()
    for name in ("m1", "m2"):
        viewer._members.put(name, member)
    found = [await viewer.may("create", PODS, "a", name="b", subresource="exec", cluster=one) for one in ("m1", "m2")]
    assert found == [True, False], "what holds in one member is not kept for another"
    assert {(one["verb"], one["subresource"], one["name"]) for one in reviewed} == {("create", "exec", "b")}


async def test_another_site_opens_no_terminal(tmp_path: Path) -> None:
    async with dashboard_plane(tmp_path, writes=True) as plane:
        await plane.browser.log_in()
        for origin in ("https://evil.example", "null", plane.browser.url.replace("https", "http")):
            answer = await plane.browser.get("/pods/moon/default/web/terminal", Origin=origin)
            assert (answer.status, "own pages only" in answer.text) == (403, True), origin


@cases(
    ({"name": "../../secrets/a"}, 1, "'../../secrets/a' is not a name"),
    ({"name": "a", "namespace": "b/c"}, 1, "'b/c' is not a name"),
    ({"name": "a"}, 101, "at most 100 policies"),
)
def test_policies_that_lead_elsewhere_or_are_too_many_are_not_tried(metadata: Obj, copies: int, says: str) -> None:
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": metadata, "spec": {}}
    with pytest.raises(PredictionError, match=re.escape(says)):
        policies_in("\n---\n".join([json.dumps(policy)] * copies))


@cases("", "{}", "[]", '"x"', '{"columns": 1}', '{"columns": "a", "rows": 1}', '{"columns": 0, "rows": 100000}')
def test_what_is_no_size_of_a_terminal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"columns|document"):
        size_of(text)
    assert size_of('{"columns": 80, "rows": 24}') == (80, 24)


async def test_a_viewer_runs_one_drill_at_a_time(monkeypatch: Any) -> None:
    ended = asyncio.Event()

    async def drill(*_: Any) -> Obj:
        await ended.wait()
        return {}

    monkeypatch.setattr("karmada.dashboard.drills._drill", drill)
    drills, clock = Drills(), FakeClock()
    one, other = viewer_of(clock), viewer_of(clock)
    running = asyncio.create_task(drills.run(one, ["a"], minutes=5, with_failover=False))
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests, match="of yours"):
        await drills.run(one, ["a"], minutes=5, with_failover=False)
    second = asyncio.create_task(drills.run(other, ["a"], minutes=5, with_failover=False))
    ended.set()
    assert (await running, await second) == ({}, {})
    assert await drills.run(one, ["a"], minutes=5, with_failover=False) == {}
