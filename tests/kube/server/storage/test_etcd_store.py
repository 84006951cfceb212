"""What the contract does not say: lost answers, lost connections, lost members, and an etcd shared with others."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.etcd import TIMEOUT, EtcdStore, TlsFiles
from karmada.kube.server.storage.etcd_connection import Connection, Unanswered
from karmada.kube.server.storage.etcd_messages import PUT, TXN, Method, PutRequest
from karmada.kube.server.storage.etcd_watch import answers_progress_in_order
from karmada.kube.server.storage.interface import (
    Compacted,
    Event,
    NewerFormat,
    Progress,
    RevisionConflict,
    Stored,
    StoreFull,
    StoreUnavailable,
)
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.storage.shared_read import SharedRead
from karmada.kube.server.watchcache.cache import Cache, encode_value
from tests.support.cases import cases
from tests.support.certificates import Authority
from tests.support.etcd_cluster import Certificates, EtcdCluster
from tests.support.eventually import LIMIT, eventually
from tests.support.ports import free_port

Send = Callable[[Method, Any, float], Awaitable[Any]]


@pytest.fixture
async def store(etcd: EtcdCluster, request: pytest.FixtureRequest) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(etcd.addresses, prefix=f"/{request.node.name}/")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(etcd: EtcdCluster, store: EtcdStore) -> AsyncIterator[EtcdStore]:
    """A second server's view of the same keys."""
    other = EtcdStore(etcd.addresses, prefix=store.layout.prefix)
    await other.open()
    yield other
    await other.close()


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    """A member of this test's own, to be killed."""
    cluster = EtcdCluster(tmp_path / "etcd")
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path / "etcd", size=3)
    cluster.start()
    yield cluster
    cluster.stop()


async def take(watch: AsyncIterator[list[Event]], count: int) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(LIMIT):
        while len(events) < count:
            events += await anext(watch)
    assert len(events) == count
    return events


# Lost answers


class LossyWire:
    """Loses answers of writes: `sent` says for each try whether it reaches etcd all the same."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *sent: bool, meanwhile: Callable[[], Awaitable[Any]] | None = None
    ):
        self._real: Send = Connection.send  # type: ignore[assignment]
        self._sent = list(sent)
        self._meanwhile = meanwhile
        self.tries = 0
        wire = self

        async def send(connection: Connection, method: Method, request: Any, deadline: float) -> Any:
            return await wire.send(connection, method, request, deadline)

        monkeypatch.setattr(Connection, "send", send)

    async def send(self, connection: Connection, method: Method, request: Any, deadline: float) -> Any:
        if method is not TXN:
            return await self._real(connection, method, request, deadline)  # type: ignore[call-arg,arg-type]
        self.tries += 1
        if not self._sent:
            return await self._real(connection, method, request, deadline)  # type: ignore[call-arg,arg-type]
        if self._sent.pop(0):
            await self._real(connection, method, request, deadline)  # type: ignore[call-arg,arg-type]
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            await meanwhile()
        raise Unanswered("the answer is lost")


async def test_a_write_whose_answer_is_lost_is_found_and_not_repeated(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = store.revision
    wire = LossyWire(monkeypatch, True)
    created = await store.write("k", b"1", expected=0)
    assert wire.tries == 1
    assert await store.get("k") == Stored("k", b"1", created)
    LossyWire(monkeypatch, True)
    changed = await store.write("k", b"2", expected=created)
    events = await store.history("k", since=start, until=store.revision)
    assert [(e.value, e.revision) for e in events] == [(b"1", created), (b"2", changed)]


async def test_a_write_that_did_not_arrive_is_sent_again(store: EtcdStore, monkeypatch: pytest.MonkeyPatch) -> None:
    start = store.revision
    wire = LossyWire(monkeypatch, False, False)
    created = await store.write("k", b"1", expected=0)
    assert wire.tries == 3
    LossyWire(monkeypatch, False)
    deleted = await store.write("k", None, expected=created)
    events = await store.history("k", since=start, until=store.revision)
    assert [(e.value, e.revision) for e in events] == [(b"1", created), (None, deleted)]


async def test_a_try_that_arrives_late_is_not_taken_for_somebody_elses(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try lies somewhere until the second is on its way, which then finds the key changed."""
    real: Any = Connection.send
    first: list[Any] = []

    async def send(connection: Connection, method: Method, request: Any, deadline: float) -> Any:
        if method is TXN and not first:
            first.append(request)
            raise Unanswered("the answer is lost")
        if method is TXN and len(first) == 1:
            first.append(None)
            await real(connection, method, first[0], deadline)
        return await real(connection, method, request, deadline)

    monkeypatch.setattr(Connection, "send", send)
    start = store.revision
    revision = await store.write("k", b"1", expected=0)
    events = await store.history("k", since=start, until=store.revision)
    assert [(e.value, e.revision) for e in events] == [(b"1", revision)]


async def test_an_equal_write_of_another_client_is_not_taken_for_an_own_one(
    store: EtcdStore, other: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = await store.write("counter", b"5", expected=0)
    theirs: list[int] = []

    async def they_write_the_same() -> None:
        theirs.append(await other.write("counter", b"6", expected=base))

    LossyWire(monkeypatch, False, meanwhile=they_write_the_same)
    with pytest.raises(RevisionConflict) as conflict:
        await store.write("counter", b"6", expected=base)
    assert [conflict.value.revision] == theirs


async def test_a_write_is_found_even_when_somebody_has_overwritten_it(
    store: EtcdStore, other: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def they_delete_it() -> None:
        found = await other.get("k")
        assert found is not None
        await other.write("k", None, expected=found.revision)

    LossyWire(monkeypatch, True, meanwhile=they_delete_it)
    start = store.revision
    revision = await store.write("k", b"1", expected=0)
    events = await store.history("k", since=start, until=store.revision)
    assert [e.value for e in events] == [b"1", None]
    assert events[0].revision == revision
    assert await store.get("k") is None


async def test_whether_a_deletion_was_ones_own_is_not_guessed(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await store.write("k", b"1", expected=0)
    LossyWire(monkeypatch, True)
    with pytest.raises(StoreUnavailable, match="unknown"):
        await store.write("k", None, expected=created)
    assert await store.get("k") is None


# Lost members


def wait_for(store: EtcdStore, seconds: float) -> None:
    """How long its calls may take from now on."""
    assert store._connection is not None
    store.timeout = store._connection.timeout = store._latest._timeout = seconds
    store._connection.attempt = seconds * 0.4


async def test_without_etcd_calls_fail_in_time_and_work_again_when_it_is_back(own_etcd: EtcdCluster) -> None:
    store = EtcdStore(own_etcd.addresses)
    await store.open()
    first = await store.write("k", b"1", expected=0)
    [member] = own_etcd.members
    member.kill()
    wait_for(store, 1.0)
    await eventually(lambda: store.last_error)
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: store.get("k"),
        lambda: store.range(""),
        lambda: store.range("\0"),
        lambda: store.write("k", b"2", expected=first),
        lambda: store.history("", since=0, until=first),
        lambda: store.compact(first),
    ]
    started = time.monotonic()
    for answer in await asyncio.gather(*(call() for call in calls), return_exceptions=True):
        assert isinstance(answer, StoreUnavailable), answer
        assert member.address in str(answer)
    assert time.monotonic() - started < LIMIT
    assert not store.healthy
    wait_for(store, TIMEOUT)
    own_etcd.restart(member)
    await eventually(lambda: store.healthy)
    assert await store.write("k", b"2", expected=first) > first
    await store.close()


async def test_opening_without_etcd_fails_and_says_where_it_was_looked_for(tmp_path: Path) -> None:
    port = free_port()
    store = EtcdStore([f"127.0.0.1:{port}"], timeout=0.3)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match=f"etcd at 127.0.0.1:{port} cannot be reached: .*refused"):
        await store.open()
    assert time.monotonic() - started < LIMIT
    assert not store.healthy


async def test_a_lost_watch_goes_on_where_it_was(own_etcd: EtcdCluster) -> None:
    store = EtcdStore(own_etcd.addresses)
    await store.open()
    start = store.revision
    watch = store.watch("core/", since=start)
    written = [await store.write(f"core/{i}", b"", expected=0) for i in range(3)]
    seen = [e.revision for e in await take(watch, 3)]
    for turn in range(2):
        own_etcd.members[0].kill()
        waiting = asyncio.ensure_future(take(watch, 4))
        own_etcd.restart(own_etcd.members[0])
        written += [await _patiently(store, f"core/{turn}-{i}") for i in range(4)]
        seen += [e.revision for e in await waiting]
    assert seen == written
    await store.close()


async def _patiently(store: EtcdStore, key: str) -> int:
    """A write that waits until etcd is back."""
    while True:
        try:
            return await store.write(key, b"", expected=0)
        except StoreUnavailable:
            await asyncio.sleep(0.05)


async def test_a_watch_that_resumes_after_compaction_gets_an_error(own_etcd: EtcdCluster, tmp_path: Path) -> None:
    store, other = EtcdStore(own_etcd.addresses), EtcdStore(own_etcd.addresses)
    await store.open()
    await other.open()
    first = await store.write("k", b"0", expected=0)
    async with aclosing(store.watch("", since=first - 1)) as watch:  # type: ignore[type-var]
        await take(watch, 1)
        revision = first
        for i in range(3):
            revision = await other.write("k", b"%d" % i, expected=revision)
        await other.compact(revision)
    with pytest.raises(Compacted) as compacted:
        await anext(store.watch("", since=first))
    assert compacted.value.revision == revision
    await store.close()
    await other.close()


async def test_one_member_that_dies_or_hangs_is_not_missed(three: EtcdCluster) -> None:
    store = EtcdStore(three.addresses, timeout=5.0)
    await store.open()
    start = store.revision
    watch = store.watch("", since=start)
    written = [await store.write("before", b"", expected=0)]
    seen = [e.revision for e in await take(watch, 1)]
    for number, member in enumerate(three.members):
        hang = number == 1
        (member.pause if hang else member.kill)()
        waiting = asyncio.ensure_future(take(watch, 5))
        written += [await _patiently(store, f"{number}-{i}") for i in range(5)]
        assert len((await store.range("")).items) == len(written)
        seen += [e.revision for e in await waiting]
        if hang:
            member.resume()
        else:
            three.restart(member)
        three.wait()
    assert seen == written
    await store.close()


async def test_a_minority_does_not_answer(three: EtcdCluster) -> None:
    store = EtcdStore(three.addresses)
    await store.open()
    for member in three.members[:2]:
        member.kill()
    wait_for(store, 1.5)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await store.range("\0")
    with pytest.raises(StoreUnavailable):
        await store.write("unanswered", b"", expected=0)  # it may happen all the same when a second member is back
    assert time.monotonic() - started < LIMIT
    assert not store.healthy
    wait_for(store, TIMEOUT)
    three.restart(three.members[0])
    await eventually(lambda: store.healthy)
    await store.write("answered", b"", expected=0)
    await store.close()


async def test_a_full_etcd_is_unhealthy_and_can_still_be_read(tmp_path: Path) -> None:
    cluster = EtcdCluster(tmp_path / "etcd", arguments=["--quota-backend-bytes", str(300_000)])
    cluster.start()
    store = EtcdStore(cluster.addresses)
    await store.open()
    writes = (store.write(f"k{i}", bytes(50_000), expected=0) for i in range(100))
    answers = await asyncio.gather(*writes, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert refused
    assert all(isinstance(error, StoreFull) and "database space exceeded" in str(error) for error in refused), refused
    await eventually(lambda: store.last_error and "NOSPACE" in str(store.last_error))
    assert isinstance(store.last_error, StoreFull)
    assert "etcdctl alarm disarm" in str(store.last_error)
    assert len((await store.range("")).items) == len(answers) - len(refused)
    await store.close()
    cluster.stop()


async def test_over_a_full_etcd_clients_get_kubernetes_error_and_may_read(tmp_path: Path) -> None:
    cluster = EtcdCluster(tmp_path / "etcd", arguments=["--quota-backend-bytes", str(3_000_000)])
    cluster.start()
    server = ApiServer(ServerConfig(data_dir=tmp_path / "data", storage=cluster.url, port=0))
    await server.start()
    client, names = server.client(), itertools.count()

    async def fill() -> None:
        while True:
            made = {"metadata": {"name": f"c{next(names)}"}, "data": {"text": "x" * 50_000}}
            await client.create(CONFIG_MAPS, made, namespace="default")

    with pytest.raises(ApiError, match="database space exceeded") as info:
        await fill()
    assert info.value.code == 500
    await eventually(lambda: server.health.failing("readyz") == ["storage-space"])
    assert (await client.get(CONFIG_MAPS, "c0", "default"))["metadata"]["name"] == "c0"
    found = [item["metadata"]["name"] for item in (await client.list(CONFIG_MAPS, namespace="default"))["items"]]
    assert {name for name in found if name != "kube-root-ca.crt"} == {f"c{i}" for i in range(next(names) - 1)}
    await server.stop()
    cluster.stop()


async def test_a_value_that_etcd_finds_too_large_is_refused_and_changes_nothing(store: EtcdStore) -> None:
    with pytest.raises(StoreUnavailable, match="too large"):
        await store.write("k", bytes(2_000_000), expected=0)
    assert await store.get("k") is None
    assert store.healthy


# An etcd that others use too


async def test_stores_with_other_prefixes_do_not_see_one_another(etcd: EtcdCluster, store: EtcdStore) -> None:
    longer = EtcdStore(etcd.addresses, prefix=store.layout.prefix.rstrip("/") + "-2")
    await longer.open()
    await longer.write("k", b"theirs", expected=0)
    assert await store.get("k") is None
    await store.write("k", b"ours", expected=0)
    assert [s.value for s in (await longer.range("")).items] == [b"theirs"]
    await longer.close()


async def test_a_watch_reports_how_far_it_is_when_only_others_write(etcd: EtcdCluster, store: EtcdStore) -> None:
    ours = await store.write("k", b"", expected=0)
    watch = store.watch("", since=ours - 1)
    await take(watch, 1)
    for i in range(3):
        etcd.ctl("put", "/somebody/else", str(i))
    latest = (await store.range("\0")).revision
    assert latest >= ours + 3
    async with asyncio.timeout(LIMIT):  # progress may be reported while they write, too
        progress = await anext(watch)
        while isinstance(progress, Progress) and progress.revision < latest:
            progress = await anext(watch)
    assert isinstance(progress, Progress)
    assert await store.history("", since=ours, until=latest) == []
    assert [s.key for s in (await store.range("")).items] == ["k"]
    await watch.aclose()  # type: ignore[attr-defined]


async def test_the_cache_is_fresh_although_the_last_writes_are_not_ours(etcd: EtcdCluster, store: EtcdStore) -> None:
    etcd.ctl("put", "/somebody/else", "0")
    cache = Cache(store, RealClock())
    await cache.start()
    maps = cache.collection(GroupResource("", "configmaps"))
    revision = 0
    for i in range(3):
        value = encode_value({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x"}})
        revision = await store.write("core/configmaps/x/a", value, expected=revision)
        etcd.ctl("put", "/somebody/else", str(i))
        assert await cache.fresh()
        assert cache.revision > revision
        entry = maps.get("x", "a")
        assert entry is not None
        assert entry.revision == revision
    await cache.stop()


async def test_a_second_server_is_fresh_with_what_the_first_was_answered(store: EtcdStore, other: EtcdStore) -> None:
    cache = Cache(other, RealClock())
    await cache.start()
    maps = cache.collection(GroupResource("", "configmaps"))
    for i in range(50):
        value = encode_value({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{i}", "namespace": "x"}})
        await store.write(f"core/configmaps/x/{i}", value, expected=0)
        await cache.fresh()
        assert maps.get("x", str(i)) is not None
    await cache.stop()


@cases(
    ("3.4.24", False), ("3.4.25", True), ("3.5.1", False), ("3.5.7", False), ("3.5.8", True), ("3.5.21", True),
    ("3.6.0", True), ("3.6.0-alpha.0", True), ("4.0.0", True), ("3.3.27", False), ("", False), ("unknown", False),
)  # fmt: skip
def test_progress_requests_are_trusted_from_the_versions_on_that_answer_in_order(version: str, ordered: bool) -> None:
    assert answers_progress_in_order(version) is ordered


# TLS


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def secured(authority: Authority, tmp_path: Path) -> Iterator[EtcdCluster]:
    """A member that speaks TLS with clients of this authority only."""
    files = _files(tmp_path, "server", authority, ["127.0.0.1", "localhost"])
    cluster = EtcdCluster(tmp_path / "etcd", tls=files)
    cluster.start()
    yield cluster
    cluster.stop()


def _files(directory: Path, name: str, authority: Authority, names: list[str] | None = None) -> Certificates:
    pair = authority.issue(name, names)
    files = Certificates(directory / f"{name}-ca.crt", directory / f"{name}.crt", directory / f"{name}.key")
    files.authority.write_bytes(authority.pem)
    files.certificate.write_bytes(pair.certificate)
    files.key.write_bytes(pair.key)
    return files


async def test_client_certificates_open_the_door(secured: EtcdCluster, authority: Authority, tmp_path: Path) -> None:
    mine = _files(tmp_path, "client", authority)
    query = f"cacert={mine.authority}&cert={mine.certificate}&key={mine.key}&prefix=/tls"
    store = open_store(f"{secured.url}?{query}")
    await store.open()
    revision = await store.write("k", b"1", expected=0)
    [event] = await take(store.watch("", since=revision - 1), 1)
    assert event.value == b"1"
    assert "/tls/k" in secured.ctl("get", "/", "--prefix", "--keys-only")
    await store.close()


async def test_without_the_right_certificates_the_door_stays_shut(
    secured: EtcdCluster, authority: Authority, tmp_path: Path
) -> None:
    foreign, mine = _files(tmp_path, "stranger", Authority()), _files(tmp_path, "client", authority)
    for tls in (
        None,
        TlsFiles(mine.authority),
        TlsFiles(mine.authority, foreign.certificate, foreign.key),
        TlsFiles(foreign.authority, mine.certificate, mine.key),
    ):
        store = EtcdStore(secured.addresses, tls=tls, timeout=0.3)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.open()


async def test_a_certificate_file_that_is_missing_is_named(tmp_path: Path) -> None:
    store = open_store(f"etcd://127.0.0.1:1?cacert={tmp_path}/none.crt")
    with pytest.raises(FileNotFoundError, match=r"none\.crt"):
        await store.open()


# Small parts


async def test_a_shared_read_starts_after_every_question_it_answers() -> None:
    starts, gate, deadlines = 0, asyncio.Event(), list[float]()
    loop = asyncio.get_running_loop()

    async def read(deadline: float) -> int:
        nonlocal starts
        starts += 1
        deadlines.append(deadline)
        number = starts
        await gate.wait()
        return number

    latest = SharedRead(read, 5.0)
    early = [asyncio.create_task(latest()) for _ in range(3)]
    await eventually(lambda: starts == 1)
    late = [asyncio.create_task(latest()) for _ in range(3)]
    late[0].cancel()
    await asyncio.sleep(0)
    assert starts == 1
    requested = loop.time()
    gate.set()
    assert await asyncio.gather(*early) == [1, 1, 1]
    assert await asyncio.gather(*late[1:]) == [2, 2]
    assert deadlines[0] <= deadlines[1] <= requested + 5.0
    assert await latest() == 3


async def test_a_shared_read_that_fails_fails_for_all_and_the_next_one_is_new() -> None:
    answers: list[int | Exception] = [StoreUnavailable("gone"), 7]

    async def read(_: float) -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    latest = SharedRead(read, 5.0)
    results = await asyncio.gather(latest(), latest(), return_exceptions=True)
    assert [str(r) for r in results] == ["gone", "gone"]
    assert await latest() == 7


def test_other_stores_do_not_pay_for_grpc() -> None:
    program = (
        "import sys; from karmada.kube.server.storage.open import open_store; open_store('sqlite:///x/y.db'); "
        "import karmada.kube.server.app; sys.exit('grpc' in sys.modules or 'google.protobuf' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# Formats of other versions


async def test_keys_in_a_format_of_a_later_version_are_refused_and_left_alone(store: EtcdStore) -> None:
    await store.write("a", b"{}", expected=0)
    later = EtcdStore(store.addresses, prefix=store.layout.prefix)
    await later.open()
    await later.close()
    put = PutRequest(key=store.layout.raw("\0format"), value=b"7")
    await store._connected().read(PUT, put)
    refused = EtcdStore(store.addresses, prefix=store.layout.prefix)
    with pytest.raises(NewerFormat, match=rf"under {store.layout.prefix} has format 7, .* formats up to 1\. Start the"):
        await refused.open()
    assert [item.key for item in (await store.range("")).items] == ["a"], "the format is not one of the keys"
