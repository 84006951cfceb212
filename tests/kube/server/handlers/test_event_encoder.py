"""Events that the encoder takes are, byte for byte, what the steps of a create lead to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.kube.server.admission.interface import Attributes, Plugin
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.handlers import event_encoder
from karmada.kube.server.handlers.writes import WriteScope
from karmada.kube.server.storage.packing import UUID_HOLE
from tests.support.counting import counted_turns

EVENTS, NAMESPACES = GVR("", "v1", "events"), GVR("", "v1", "namespaces")
UID = "0b5b9f0e-3c7e-4f6e-9d53-5a3d4e1c2b7a"
ABOUT = {"kind": "Work", "namespace": "default", "name": "web", "uid": UID, "apiVersion": "v1", "resourceVersion": "7"}


class Server:
    def __init__(self, server: ApiServer, clock: FakeClock) -> None:
        self.api, self.clock = server, clock
        self.client = server.client(user_agent="writer")
        self.made = 0
        self.completed = 0
        """Events that passed every step."""
        original = server.handlers.writes.admitted

        async def admitted(scope: WriteScope, obj: Obj) -> Any:
            self.completed += scope.resource.plural == "events"
            return await original(scope, obj)

        server.handlers.writes.admitted = admitted  # type: ignore[method-assign]

    @classmethod
    async def start(cls, folder: Path, storage: str) -> Server:
        clock = FakeClock()
        api = ApiServer(ServerConfig(data_dir=folder, storage=storage, port=0), clock)
        await api.start()
        server = cls(api, clock)
        for namespace in ("one", "two"):
            await server.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        return server

    def name(self) -> str:
        self.made += 1
        return f"event-{self.made:09d}"

    async def create_all(self, objects: Sequence[Obj], namespace: str = "default", client: Client | None = None) -> Any:
        return await (client or self.client).create_all(EVENTS, copy_json(objects), namespace)

    async def encoded(self, objects: Sequence[Obj], namespace: str = "default", client: Client | None = None) -> int:
        """Create them; return how many did not pass every step."""
        before = self.completed
        assert await self.create_all(objects, namespace, client) == [None] * len(objects)
        return len(objects) - (self.completed - before)

    async def create(self, obj: Obj, namespace: str = "default") -> ApiError | None:
        try:
            await self.client.create(EVENTS, copy_json(obj), namespace)
        except ApiError as error:
            return error
        return None

    async def found(self, obj: Obj) -> Obj:
        meta = obj["metadata"]
        return await self.client.get(EVENTS, meta["name"], meta["namespace"])

    async def stored(self, name: str, namespace: str = "default") -> bytes:
        """What is stored, without the uid and the name that are an object's own."""
        found = await self.api.store.get(f"core/events/{namespace}/{name}")
        assert found is not None
        uid = (await self.client.get(EVENTS, name, namespace))["metadata"]["uid"]
        return found.value.replace(uid.encode(), b"uid").replace(name.encode(), b"name")


@pytest.fixture(params=["memory", "sqlite"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    storage = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/s.db?sync=off"
    found = await Server.start(tmp_path, storage)
    yield found
    await found.api.stop()


def event(name: str, namespace: str = "default", about: Obj | None = None, **more: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": {**ABOUT, "namespace": namespace, **(about or {})},
        "reason": "Synced",
        "message": "It works",
        "source": {"component": "controller", "host": "here"},
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:25Z",
        "count": 1,
        "type": "Normal",
        "reportingComponent": "controller",
        "reportingInstance": "here",
        **more,
    }


_NO = object()
_text = st.text(max_size=12) | st.sampled_from(
    ["", "100%", "%b", 'a "quote"', "\x7f", "\0now\0", "\\u00003\\u0000", "é"]
)
_mistyped: st.SearchStrategy[Any] = st.sampled_from([None, 0, -1, True, 1.0, 2**31, [], {}, ["a"], "\ud800"])
_wrong = _mistyped | st.just(_NO)
_time = st.sampled_from(["2023-11-14T22:13:21Z", "2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20.5Z", "today", ""])
_VALUES: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("message",): _text | _wrong,
    ("reason",): _text | _wrong,
    ("count",): st.integers(1, 5) | st.sampled_from([2**31 - 1, "1"]) | _wrong,
    ("firstTimestamp",): _time | _wrong,
    ("lastTimestamp",): _time | _wrong,
    ("eventTime",): st.sampled_from([None, "2023-11-14T22:13:20.000001Z"]),
    ("source",): st.fixed_dictionaries({}, optional={"component": _text, "host": _text | _mistyped}),
    ("reportingInstance",): _text | _wrong,
    ("unknown",): _text,
    ("apiVersion",): st.sampled_from([_NO, "v2", "events.k8s.io/v1"]),
    ("kind",): st.sampled_from([_NO, "Events", ""]),
    ("type",): _text | _wrong,
    ("reportingComponent",): _text | _wrong,
    ("metadata", "name"): st.sampled_from(["", "a b", "-", "a" * 300, "é"]),
    ("metadata", "namespace"): st.sampled_from([_NO, None, "", "default", "two"]),
    ("metadata", "labels"): st.dictionaries(st.sampled_from(["a", "not a key"]), _text, max_size=1),
    ("metadata", "uid"): _text,
    ("metadata", "resourceVersion"): _text,
    ("metadata", "unknown"): _text,
    ("involvedObject",): st.sampled_from([_NO, None, {}, "", []]),
    ("involvedObject", "kind"): _text | _wrong,
    ("involvedObject", "apiVersion"): _text | _wrong,
    ("involvedObject", "name"): _text | _wrong,
    ("involvedObject", "uid"): _text | _wrong | st.uuids().map(str) | st.sampled_from([UID.upper(), UID[:-1]]),
    ("involvedObject", "resourceVersion"): _text | _wrong,
    ("involvedObject", "namespace"): st.sampled_from([_NO, None, "", "default", "two"]),
    ("involvedObject", "fieldPath"): _text,
}
_seldom = st.sampled_from([False] * 7 + [True])
_change = st.sampled_from(sorted(_VALUES)).flatmap(lambda path: st.tuples(st.just(path), _VALUES[path]))


def _put(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    part = obj.get(path[0]) if len(path) > 1 else obj
    if not isinstance(part, dict):
        return
    if value is _NO:
        part.pop(path[-1], None)
    else:
        part[path[-1]] = value


async def _compare(server: Server, namespace: str, changes: list[tuple[tuple[str, ...], Any]], *, moved: bool) -> None:
    """Create an Event with these changes alone, and two in a group."""

    def one() -> Obj:
        made = event(server.name(), namespace)
        for path, value in changes:
            _put(made, path, value)
        return dict(reversed(made.items())) if moved else made

    async def outcome_of(obj: Obj, error: ApiError | None) -> tuple[str, bytes]:
        """Its error, or what is stored."""
        name = obj["metadata"]["name"]
        if error is None:
            return "", await server.stored(name, namespace)
        return (str(error).replace(name, "name") if name else str(error)), b""

    alone, some = one(), [one(), one()]
    expected = await outcome_of(alone, await server.create(alone, namespace))
    outcomes = await server.create_all(some, namespace)
    assert [await outcome_of(obj, error) for obj, error in zip(some, outcomes, strict=True)] == [expected] * 2


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_what_is_stored_of_a_group_is_what_is_stored_of_each_alone(tmp_path: Path, store: str) -> None:
    with asyncio.Runner() as runner:
        storage = "memory://" if store == "memory" else f"sqlite://{tmp_path}/s.db?sync=off"
        server = runner.run(Server.start(tmp_path, storage))

        @settings(max_examples=150, deadline=None)
        @given(namespace=st.sampled_from(["default", "one"]), changes=st.lists(_change, max_size=2), moved=_seldom)
        def check(namespace: str, changes: list[tuple[tuple[str, ...], Any]], moved: bool) -> None:
            runner.run(_compare(server, namespace, changes, moved=moved))

        check()
        runner.run(server.api.stop())


async def test_events_of_a_recorder_do_not_pass_every_step(server: Server) -> None:
    for namespace in ("default", "one"):
        texts = [f'{number} of "100%" \n é' for number in range(3)]
        events = [event(server.name(), namespace, {"name": text}, message=text) for text in texts]
        assert await server.encoded(events, namespace) == 3
        for text, one in zip(texts, events, strict=True):
            found = await server.found(one)
            assert (found["involvedObject"]["name"], found["message"]) == (text, text)


async def test_the_encoder_takes_what_a_recorder_writes(server: Server) -> None:
    recorder = EventRecorder(server.client, "controller", clock=server.clock)
    await recorder.start()
    known = {"name": "web", "namespace": "one", "uid": UID, "resourceVersion": "7"}
    for metadata in (known, {"name": "web", "namespace": "one"}, {"name": "member1", "uid": UID}):
        obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        recorder.event(obj, NORMAL, "Synced", "text")
        recorder.event(obj, WARNING, "Failed", "text", host="there")
    await recorder.flush()
    await recorder.stop()
    assert len((await server.client.list(EVENTS))["items"]) == 6
    assert server.completed == 0


async def test_others_have_their_turn_while_a_group_is_created(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", -1.0)
    with counted_turns() as turns:
        assert await server.encoded([event(server.name()) for _ in range(100)]) == 100
    assert turns.count >= 100


@pytest.mark.parametrize("missing", ["uid", "resourceVersion", "host", "namespace"])
async def test_what_a_recorder_may_not_know_is_left_out(server: Server, missing: str) -> None:
    events = [event(server.name()) for _ in range(3)]
    for one in events:
        for part in ("involvedObject", "source"):
            one[part].pop(missing, None)
        one["reportingInstance"] = one["source"].get("host", "")
    alone, *some = events
    assert await server.create(alone) is None
    assert await server.encoded(some) == 2
    same = [await server.stored(one["metadata"]["name"]) for one in events]
    assert same == same[:1] * 3


@pytest.mark.parametrize("more", [{"message": ""}, {"action": "Bind"}, {"message": "long " * 1000}, {"reason": "\0"}])
async def test_another_event_passes_every_step(server: Server, more: Obj) -> None:
    alone, *some = (event(server.name(), **more) for _ in range(3))
    assert await server.encoded(some) == 0
    assert await server.create(alone) is None
    same = [await server.stored(one["metadata"]["name"]) for one in (alone, *some)]
    assert same == same[:1] * 3


async def test_an_event_without_the_namespace_of_what_it_is_about_belongs_in_the_default_one(server: Server) -> None:
    events = [event(server.name(), "one") for _ in range(2)]
    for one in events:
        del one["involvedObject"]["namespace"]
    assert ["does not match" in str(outcome) for outcome in await server.create_all(events, "one")] == [True] * 2


async def test_each_writer_and_each_moment_has_its_own_metadata(server: Server) -> None:
    first, later, other = (event(server.name()) for _ in range(3))
    assert await server.encoded([first]) == 1
    await server.clock.advance(5)
    assert await server.encoded([later]) == 1
    assert await server.encoded([other], client=server.api.client(user_agent="another")) == 1
    found = [(await server.found(one))["metadata"] for one in (first, later, other)]
    assert [one["managedFields"][0]["manager"] for one in found] == ["writer", "writer", "another"]
    times = ["2023-11-14T22:13:20Z", "2023-11-14T22:13:25Z", "2023-11-14T22:13:25Z"]
    assert [one["managedFields"][0]["time"] for one in found] == times
    assert [one["creationTimestamp"] for one in found] == times
    assert len({one["uid"] for one in found}) == 3


async def test_a_namespace_that_ends_or_is_missing_refuses_each_with_its_own_error(server: Server) -> None:
    await server.client.create(NAMESPACES, {"metadata": {"name": "ending", "finalizers": ["a.io/b"]}})
    assert await server.encoded([event(server.name(), "ending")], "ending") == 1
    await server.client.delete(NAMESPACES, "ending")
    for namespace, expected in (("ending", "being terminated"), ("missing", 'namespaces "missing" not found')):
        refused = await server.create_all([event("a", namespace), event("b", namespace)], namespace)
        assert [expected in str(error) for error in refused] == [True, True]
        assert ('"b"' in str(refused[1])) == (namespace == "ending")


class Labels(Plugin):
    """Changes Events, but not all of them alike."""

    name = "Labels"
    static = True
    mutates = True

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.plural == "events"

    async def admit(self, attributes: Attributes) -> None:
        obj = attributes.obj
        assert obj is not None
        obj["metadata"]["labels"] = {"reason": obj["reason"]}


async def test_a_plug_in_that_handles_events_sees_each_of_them(server: Server) -> None:
    server.api.admission.add(Labels())
    one, other = event(server.name()), event(server.name(), reason="Failed")
    assert await server.encoded([one, other]) == 0
    labels = [(await server.found(obj))["metadata"]["labels"] for obj in (one, other)]
    assert labels == [{"reason": "Synced"}, {"reason": "Failed"}]


async def test_a_name_that_is_taken_is_refused(server: Server) -> None:
    first, fresh = event(server.name()), event(server.name())
    assert await server.encoded([first]) == 1
    outcomes = await server.create_all([first, fresh, fresh])
    reasons = [outcome if outcome is None else outcome.reason for outcome in outcomes]
    assert reasons == ["AlreadyExists", None, "AlreadyExists"]


async def test_a_dry_run_is_no_group(server: Server) -> None:
    resource = server.api.registry.get(EVENTS)
    assert resource is not None
    transport: Any = server.client.transport
    objects = [event(server.name())]
    for dry_run in (True, False):
        call = Call("POST", "/api/v1/namespaces/default/events", {"dryRun": "All"} if dry_run else {})
        outcomes = await server.api.handlers.create_all(transport._request(call), resource, copy_json(objects))
        assert outcomes == (None if dry_run else [None])


async def test_there_are_no_more_texts_than_an_encoder_may_keep(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_encoder, "_TEXTS", 3)
    encoder = event_encoder.EventEncoder("writer", "default", "2023-11-14T22:13:20Z")
    for number in range(10):
        assert encoder.write("", event("a", reason=str(number)), pack=False) is not None
        assert len(encoder._texts) <= 3
    encoder = event_encoder.EventEncoder("writer", "default", "2023-11-14T22:13:20Z")
    assert encoder.write("", event("a", reason="long" * 5_000), pack=False) is None
    assert not encoder._texts


def test_only_a_value_of_its_own_is_a_hole() -> None:
    encoder = event_encoder.EventEncoder("writer", "default", "2023-11-14T22:13:20Z")
    for text in ("\0", UUID_HOLE.decode(), "\\u0000"):
        assert encoder.write("", event("a", reason=text), pack=False) is None
        assert encoder.write("", event("a", message=text), pack=False) is not None
