"""Cached objects arrive in OpenSearch, whatever it does meanwhile."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.search.opensearch import writer as writing
from karmada.search.opensearch.documents import document
from karmada.search.opensearch.routes import Destination
from karmada.search.opensearch.sink import OpenSearchSink
from karmada.search.opensearch.store import Store, Unavailable
from tests.search.opensearch.test_routes import pods, registry
from tests.support.cached import HeldCaches, pod
from tests.support.eventually import eventually
from tests.support.opensearch_server import OpenSearchServer, opensearch
from tests.support.tls_backend import authority, load, serving

INDEX = "kubernetes-pod"


class Followed:
    """As much of an informer as the sink needs."""

    def __init__(self, objects: Iterable[Obj] = ()) -> None:
        self.objects = list(objects)
        self._handlers: list[Callable[[Obj | None, Obj | None], None]] = []

    def list(self) -> list[Obj]:
        return self.objects

    def add_handler(self, handler: Callable[[Obj | None, Obj | None], None]) -> Callable[[], None]:
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def become(self, *objects: Obj) -> None:
        self.objects = list(objects)
        for handler in self._handlers:
            handler(None, {})


class ControlPlane:
    def __init__(self, secrets: dict[str, dict[str, str]]) -> None:
        self.secrets = secrets

    async def get(self, _gvr: Any, name: str, _namespace: str) -> Obj:
        if name not in self.secrets:
            raise NotFound.of(GroupResource("", "secrets"), name)
        return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in self.secrets[name].items()}}


class Fleet:
    """Two clusters whose pods go to one OpenSearch."""

    def __init__(self, server: OpenSearchServer, secrets: dict[str, dict[str, str]] | None = None) -> None:
        self.server = server
        self.clock = FakeClock()
        self.caches = HeldCaches()
        self.destination = Destination((server.url,), "ns", "login")
        self.registries = Followed()
        self.clusters = Followed([{"metadata": {"name": name}} for name in ("member1", "member2")])
        self.control_plane = ControlPlane(secrets or {})
        made = self
        informers = type(
            "Informers", (), {"of": lambda _s, gvr: made.registries if "reg" in str(gvr) else made.clusters}
        )()
        self.sink = OpenSearchSink(self.caches, cast(Any, informers), cast(Any, self.control_plane), self.clock)
        self.caches.add_sink(self.sink)
        self.register()

    def register(self, *registries: Obj) -> None:
        self.registries.become(*(registries or (registry(pods(), store=self.destination),)))

    def expected(self) -> dict[str, Obj]:
        return {
            obj.uid: document(obj.object(), cluster)
            for cluster in self.caches.clusters(PODS)
            for obj in self.caches.cache(cluster, PODS).list()
        }

    async def settled(self) -> dict[str, Obj]:
        """The documents once everything was sent; time passes where somebody waits for it."""

        def done() -> bool:
            if self.clock.next_due() is not None:
                self.clock.wake_next()
            return self.sink.idle

        await eventually(done)
        return self.server.documents(INDEX)


@asynccontextmanager
async def fleet(**given: Any) -> AsyncIterator[Fleet]:
    secrets = given.pop("secrets", None)
    async with opensearch(**given) as server:
        made = Fleet(server, secrets)
        try:
            yield made
        finally:
            await made.sink.stop()


async def test_objects_are_documents_under_their_uids_in_the_index_of_their_kind() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        made.caches.put("member2", PODS, pod("web", uid="u2"))
        assert await made.settled() == made.expected()
        assert made.server.mappings[INDEX]["mappings"]["properties"]["spec"]["enabled"] is False
        made.caches.put("member1", PODS, pod("web", uid="u1", phase="Failed"))
        made.caches.remove("member2", PODS, "default", "web")
        assert list(await made.settled()) == ["u1"]
        assert '"Failed"' in made.server.documents(INDEX)["u1"]["status"]


async def test_an_object_made_anew_under_its_name_takes_the_place_of_the_old_document() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        await made.settled()
        made.caches.put("member1", PODS, pod("web", uid="u2"))
        assert list(await made.settled()) == ["u2"]


async def test_many_changes_of_one_object_are_one_write() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web"))
        await made.settled()
        made.server.bulks.clear()
        for number in range(50):
            made.caches.put("member1", PODS, pod("web", labels={"n": str(number)}))
        await made.settled()
        assert sum(made.server.bulks) == 1


async def test_documents_that_a_list_does_not_have_are_deleted_and_those_of_others_stay() -> None:
    async with fleet() as made:
        cluster = {"metadata": {"annotations": {"resource.karmada.io/cached-from-cluster": "member1"}}}
        made.server.indexes[INDEX] = {"old": {**cluster, "apiVersion": "v1"}, "of-another": {"metadata": {}}}
        made.caches.listed("member1", PODS, [pod(f"web-{number}", uid=f"u{number}") for number in range(5)])
        assert sorted(await made.settled()) == ["of-another", "u0", "u1", "u2", "u3", "u4"]
        assert made.server.open_scrolls == 0


@pytest.mark.parametrize("failure", [429, 503, 502, 401, "reset", "some"])
async def test_nothing_is_lost_when_requests_fail(failure: int | str) -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("a", uid="a"))
        await made.settled()
        made.server.fail.extend([failure] * 3)
        for name in "bcdefg":
            made.caches.put("member1", PODS, pod(name, uid=name))
        made.caches.remove("member1", PODS, "default", "a")
        assert sorted(await made.settled()) == list("bcdefg")


async def test_a_document_that_is_refused_for_good_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with fleet() as made:
        made.server.rejected = {"bad"}
        for name in ("bad", "good"):
            made.caches.put("member1", PODS, pod(name, uid=name))
        assert list(await made.settled()) == ["good"]
        assert "An object does not get into OpenSearch" in caplog.text
        labels = {"cluster": "member1", "opensearch": made.server.url}
        assert (labels, 1) in made.sink.refused()
        assert (labels, 0) in made.sink.waiting()


async def test_an_object_that_cannot_be_read_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(obj: Obj, cluster: str) -> Obj:
        if obj["metadata"]["name"] == "odd":
            raise ValueError("no JSON")
        return document(obj, cluster)

    monkeypatch.setattr(writing, "document", odd)
    async with fleet() as made:
        for name in ("odd", "good"):
            made.caches.put("member1", PODS, pod(name, uid=name))
        assert list(await made.settled()) == ["good"]
        made.caches.put("member1", PODS, pod("odd", uid="odd", labels={"a": "b"}))
        assert list(await made.settled()) == ["good"]


async def test_an_error_of_our_own_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = iter([KeyError("odd")])

    def fails_once(obj: Obj, cluster: str) -> Obj:
        for error in errors:
            raise error
        return document(obj, cluster)

    monkeypatch.setattr(writing, "document", fails_once)
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        assert list(await made.settled()) == ["u1"]
        assert "Objects could not be handed on" in caplog.text


async def test_connections_are_closed_when_nothing_goes_there_any_more() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        await made.settled()
        made.registries.become()
        await made.settled()
        made.registries.become(registry(pods(), store=None))
        assert not made.sink._stores
        assert not made.sink._writers


async def test_a_request_that_is_too_large_is_sent_in_parts() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("first", uid="first"))
        await made.settled()
        made.server.most_bytes = 4_000
        for number in range(40):
            made.caches.put("member1", PODS, pod(f"web-{number}", uid=str(number)))
        assert len(await made.settled()) == 41
        assert len(made.server.bulks) > 2


async def test_what_waits_while_it_is_down_is_bounded_and_complete_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_PENDING", 20)
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("gone"))
        await made.settled()
        made.server.down = True
        made.caches.remove("member1", PODS, "default", "gone")
        for number in range(100):
            made.caches.put("member1", PODS, pod(f"web-{number}"))
        (waiting,) = {len(writer._pending) for writer in made.sink._writers.values() if len(writer._pending)}
        assert waiting == 1
        made.server.down = False
        assert await made.settled() == made.expected()


async def test_documents_go_when_their_registry_or_cluster_or_namespace_does() -> None:
    async with fleet() as made:
        for cluster in ("member1", "member2"):
            made.caches.put(cluster, PODS, pod("web", "a", uid=f"{cluster}-a"))
            made.caches.put(cluster, PODS, pod("web", "b", uid=f"{cluster}-b"))
        await made.settled()
        made.register(registry(pods("a"), store=made.destination))
        assert sorted(await made.settled()) == ["member1-a", "member2-a"]
        made.clusters.become({"metadata": {"name": "member1"}})
        assert sorted(await made.settled()) == ["member1-a"]
        made.registries.become()
        assert await made.settled() == {}
        made.register()
        assert sorted(await made.settled()) == ["member1-a", "member1-b"]


async def test_documents_of_a_cluster_that_is_not_cached_for_a_while_stay() -> None:
    async with fleet() as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        await made.settled()
        made.caches.drop("member1", PODS)
        assert list(await made.settled()) == ["u1"]
        made.caches.listed("member1", PODS, [pod("other", uid="u2")])
        assert list(await made.settled()) == ["u2"]


@pytest.mark.parametrize("key", ["username", "userName"])
async def test_credentials_come_from_the_secret_and_are_read_again_when_they_are_refused(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with fleet(
        user="admin", password="right-pa55", secrets={"login": {key: "admin", "password": "wrong-pa55"}}
    ) as made:
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        await eventually(lambda: "OpenSearch does not take objects" in caplog.text)
        made.control_plane.secrets["login"]["password"] = "right-pa55"
        assert list(await made.settled()) == ["u1"]
    assert "pa55" not in caplog.text


async def test_credentials_in_an_address_are_used_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with opensearch(user="admin", password="right-pa55") as server:
        server.url = server.url.replace("://", "://admin:right-pa55@")
        made = Fleet(server)
        server.fail.append(503)
        made.caches.put("member1", PODS, pod("web", uid="u1"))
        assert list(await made.settled()) == ["u1"]
        await made.sink.stop()
    assert "OpenSearch does not take objects" in caplog.text
    assert "pa55" not in caplog.text


async def test_certificates_are_verified_with_the_authority_of_the_secret() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(tls, serving("127.0.0.1"))
    async with fleet(tls=tls, secrets={"login": {}}) as made:
        store = Store(made.destination, made.sink._secret)
        with pytest.raises(Unavailable, match=r"(?i:certificate)"):
            await store.ensure("Pod")
        made.control_plane.secrets["login"]["caBundle"] = authority().cert_pem.decode()
        assert await store.ensure("Pod") == INDEX
        await store.close()


async def no_secret(namespace: str, name: str) -> Obj:
    raise NotFound.of(GroupResource("", "secrets"), name)


async def test_without_the_package_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    store = Store(Destination(("http://127.0.0.1:1",), "", ""), no_secret)
    with pytest.raises(Unavailable, match=r"pip install 'pykarmada\[opensearch\]'"):
        await store.ensure("Pod")


_NAMES, _CLUSTERS = st.sampled_from("abc"), st.sampled_from(["member1", "member2"])
_STEP = st.one_of(
    st.tuples(st.just("put"), _CLUSTERS, _NAMES),
    st.tuples(st.just("anew"), _CLUSTERS, _NAMES),
    st.tuples(st.just("remove"), _CLUSTERS, _NAMES),
    st.tuples(st.just("listed"), _CLUSTERS, st.sets(_NAMES)),
    st.tuples(st.just("fail"), st.none(), st.sampled_from([429, 503, "reset", "some"])),
    st.tuples(st.just("down"), st.none(), st.booleans()),
    st.tuples(st.just("turn"), st.none(), st.none()),
)


@given(st.lists(_STEP, max_size=25))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_after_any_history_of_failures_the_documents_equal_the_cache(steps: list[tuple[str, Any, Any]]) -> None:
    asyncio.run(_follow(steps))


async def _follow(steps: list[tuple[str, Any, Any]]) -> None:
    async with fleet() as made:
        for number, (step, cluster, what) in enumerate(steps):
            await _take(made, step, cluster, what, number)
        made.server.down = False
        assert await made.settled() == made.expected()


async def _take(made: Fleet, step: str, cluster: str, what: Any, number: int) -> None:
    caches = made.caches
    cache = caches.cache(cluster, PODS) if cluster else None
    known = cache.get("default", what) if cache is not None and isinstance(what, str) else None
    if step == "put":
        uid = known.uid if known else f"{cluster}-{what}-{number}"
        caches.put(cluster, PODS, pod(what, uid=uid, labels={"n": str(number)}))
    elif step == "anew":
        caches.put(cluster, PODS, pod(what, uid=f"{cluster}-{what}-{number}"))
    elif step == "remove" and known is not None:
        caches.remove(cluster, PODS, "default", what)
    elif step == "listed":
        caches.listed(cluster, PODS, [pod(name, uid=f"{cluster}-{name}-{number}") for name in what])
    elif step == "fail":
        made.server.fail.append(what)
    elif step == "down":
        made.server.down = what
    elif step == "turn":
        made.clock.wake_next()
        await asyncio.sleep(0.002)
