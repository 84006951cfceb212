"""Objects that are made of a prototype are, byte for byte, what the steps of a create lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call
from karmada.kube.kinds.free_fields import Free
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.objects.variants import Pattern, Variant, Variants
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.handlers import prototypes
from karmada.kube.server.handlers.prototypes import Outlines, Prototypes
from karmada.kube.server.handlers.writes import WriteScope

EVENTS, NAMESPACES = GVR("", "v1", "events"), GVR("", "v1", "namespaces")
UID = "0b5b9f0e-3c7e-4f6e-9d53-5a3d4e1c2b7a"
ABOUT = {"kind": "Work", "namespace": "default", "name": "web", "uid": UID, "apiVersion": "v1", "resourceVersion": "7"}


class Server:
    def __init__(self, runner: asyncio.Runner, server: ApiServer, clock: FakeClock) -> None:
        self.run, self.api, self.clock = runner.run, server, clock
        self.client = server.client(user_agent="writer")
        self.made = 0
        self.completed = 0
        """Events that passed every step."""
        original = server.handlers.writes.admitted

        async def admitted(scope: WriteScope, obj: Obj) -> Any:
            self.completed += scope.resource.plural == "events"
            return await original(scope, obj)

        server.handlers.writes.admitted = admitted  # type: ignore[method-assign]

    def name(self) -> str:
        self.made += 1
        return f"event-{self.made:09d}"

    def create_all(self, objects: Sequence[Obj], namespace: str = "default", client: Client | None = None) -> list[Any]:
        given = objects if isinstance(objects, Variants) else copy_json(objects)
        return list(self.run((client or self.client).create_all(EVENTS, given, namespace)))

    def create(self, obj: Obj, namespace: str) -> ApiError | None:
        try:
            self.run(self.client.create(EVENTS, copy_json(obj), namespace))
        except ApiError as error:
            return error
        return None

    def stored(self, name: str, namespace: str = "default") -> bytes:
        found = self.run(self.api.store.get(f"core/events/{namespace}/{name}"))
        assert found is not None
        return found.value

    def comparable(self, name: str, namespace: str) -> bytes:
        """What is stored, without the uid and the name that are an object's own."""
        uid = self.run(self.client.get(EVENTS, name, namespace))["metadata"]["uid"]
        return self.stored(name, namespace).replace(uid.encode(), b"uid").replace(name.encode(), b"name")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with asyncio.Runner() as runner:
        config = ServerConfig(data_dir=tmp_path_factory.mktemp("server"), storage="memory://", port=0)
        clock = FakeClock()
        api = ApiServer(config, clock)
        runner.run(api.start())
        found = Server(runner, api, clock)
        for namespace in ("one", "two"):
            runner.run(found.client.create(NAMESPACES, {"metadata": {"name": namespace}}))
        yield found
        runner.run(api.stop())


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
    ("metadata", "name"): st.sampled_from(["", "a b", "-", "a" * 300, "é"]),
    ("metadata", "namespace"): st.sampled_from([_NO, None, "", "default", "two"]),
    ("metadata", "labels"): st.dictionaries(st.sampled_from(["a", "not a key"]), _text, max_size=1),
    ("metadata", "uid"): _text,
    ("metadata", "resourceVersion"): _text,
    ("metadata", "unknown"): _text,
    ("involvedObject",): st.sampled_from([_NO, None, {}, "", []]),
    ("involvedObject", "name"): _text | _wrong,
    ("involvedObject", "uid"): _text | _wrong | st.uuids().map(str) | st.sampled_from([UID.upper(), UID[:-1]]),
    ("involvedObject", "resourceVersion"): _text | _wrong,
    ("involvedObject", "namespace"): st.sampled_from([_NO, None, "", "default", "two"]),
    ("involvedObject", "fieldPath"): _text,
}
_change = st.sampled_from(sorted(_VALUES)).flatmap(lambda path: st.tuples(st.just(path), _VALUES[path]))


_PLACES = (
    ("metadata", "name"),
    ("", "message"),
    ("involvedObject", "uid"),
    ("involvedObject", "name"),
    ("", "count"),
    ("", "firstTimestamp"),
    ("involvedObject", "resourceVersion"),
    ("", "lastTimestamp"),
)


def variants(objects: Sequence[Obj], places: Sequence[tuple[str, str]] = _PLACES) -> Variants:
    """As their pattern and their values, in those of the places that they have."""
    parts = {"": objects[0], **objects[0]}
    found = [(member, key) for member, key in places if key in (parts.get(member) or ())]
    rows = [[(obj[member] if member else obj)[key] for member, key in found] for obj in objects]
    pattern = Pattern(objects[0], found)
    return Variants([Variant(pattern, row) for row in rows])


def _put(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    part = obj.get(path[0]) if len(path) > 1 else obj
    if not isinstance(part, dict):
        return
    if value is _NO:
        part.pop(path[-1], None)
    else:
        part[path[-1]] = value


@settings(max_examples=250, deadline=None)
@given(namespace=st.sampled_from(["default", "one"]), changes=st.lists(_change, max_size=2), varied=st.booleans())
def test_what_is_stored_of_a_group_is_what_is_stored_of_each_alone(
    server: Server, namespace: str, changes: list[tuple[tuple[str, ...], Any]], varied: bool
) -> None:
    def one() -> Obj:
        made = event(server.name(), namespace)
        for path, value in changes:
            _put(made, path, value)
        return made

    def outcome_of(obj: Obj, error: ApiError | None) -> tuple[str, bytes]:
        """Its error, or what is stored."""
        name = obj["metadata"]["name"]
        if error is None:
            return "", server.comparable(name, namespace)
        return (str(error).replace(name, "name") if name else str(error)), b""

    server.create_all([event(server.name(), "default") for _ in range(3)])
    alone, some = one(), [one() for _ in range(3)]
    expected = outcome_of(alone, server.create(alone, namespace))
    outcomes = server.create_all(variants(some) if varied else some, namespace)
    assert [outcome_of(obj, error) for obj, error in zip(some, outcomes, strict=True)] == [expected] * 3


def made_of_prototypes(server: Server, objects: Sequence[Obj], namespace: str = "default", **more: Any) -> int:
    before = server.completed
    assert server.create_all(objects, namespace, **more) == [None] * len(objects)
    return len(objects) - (server.completed - before)


def test_from_the_third_of_a_sort_on_objects_are_made_of_a_prototype_in_any_namespace(server: Server) -> None:
    def group(namespace: str, count: int) -> list[Obj]:
        texts = [f'{number} of "100%" \n é' for number in range(count)]
        return [event(server.name(), namespace, {"name": text}, reason="A", message=text) for text in texts]

    assert made_of_prototypes(server, group("default", 5)) == 3
    assert made_of_prototypes(server, group("one", 5), "one") == 5


@pytest.mark.parametrize(
    "missing", [("", "count"), ("", "message"), ("involvedObject", "uid"), ("involvedObject", "resourceVersion")]
)
def test_what_lacks_a_free_field_has_a_prototype_with_others_that_lack_it(
    server: Server, missing: tuple[str, str]
) -> None:
    def group(lacking: bool) -> list[Obj]:
        events = [event(server.name(), reason=f"K {missing}") for _ in range(4)]
        for one in events if lacking else ():
            del (one[missing[0]] if missing[0] else one)[missing[1]]
        return events

    assert made_of_prototypes(server, group(lacking=False)) == 2
    (alone, *some), more = group(lacking=True), group(lacking=True)
    assert server.create(alone, "default") is None
    assert made_of_prototypes(server, some) == 1
    assert made_of_prototypes(server, variants(more)) == 4
    same = [server.comparable(one["metadata"]["name"], "default") for one in (alone, *some, *more)]
    assert same == same[:1] * 8


def test_of_a_known_pattern_only_the_values_are_read(server: Server) -> None:
    events = [event(server.name(), reason="G", message=str(number), count=number + 1) for number in range(5)]
    assert made_of_prototypes(server, variants(events)) == 3
    for number, one in enumerate(events):
        found = server.run(server.client.get(EVENTS, one["metadata"]["name"], "default"))
        assert (found["message"], found["count"]) == (str(number), number + 1)


@pytest.mark.parametrize(
    "places", [(("metadata", "name"), ("", "message")), (*_PLACES, ("", "type")), (*_PLACES[1:], ("", "reason"))]
)
def test_a_pattern_with_other_values_than_the_free_ones_is_divided_object_by_object(
    server: Server, places: Sequence[tuple[str, str]]
) -> None:
    kept = server.name()
    events = [event(server.name(), reason="H", type=kind) for kind in ("Normal", "Normal", "Normal", "Warning")]
    if ("metadata", "name") not in places:
        events = [event(kept, reason="H")]
    assert server.create_all(variants(events, places)) == [None] * len(events)
    found = [server.run(server.client.get(EVENTS, one["metadata"]["name"], "default")) for one in events]
    assert [one["type"] for one in found] == [one["type"] for one in variants(events, places)]


@pytest.mark.parametrize("value", [None, [], {}, "", "\ud800", 1.5, 2**40])
def test_a_value_that_does_not_belong_in_its_place_of_a_known_pattern_is_judged_by_every_step(
    server: Server, value: object
) -> None:
    def outcome(error: ApiError | None, name: str) -> str:
        return "" if error is None else str(error).replace(name, "name")

    pattern, good = variants([event(server.name(), reason="J") for _ in range(3)]).variants[0]
    assert server.create_all(Variants([Variant(pattern, [server.name(), *good[1:]]) for _ in range(3)])) == [None] * 3
    for at in range(1, len(_PLACES)):
        one, other = server.name(), server.name()
        rows = [[name, *good[1:at], value, *good[at + 1 :]] for name in (one, other)]
        made = server.create_all(Variants([Variant(pattern, rows[0])]))[0]
        assert outcome(made, one) == outcome(server.create(pattern.object(rows[1]), "default"), other)


def test_a_pattern_is_known_in_the_namespace_that_it_has(server: Server) -> None:
    events = variants([event(server.name(), reason="I") for _ in range(3)])
    assert made_of_prototypes(server, events) == 1
    assert ["does not match the namespace" in str(error) for error in server.create_all(events, "one")] == [True] * 3


def test_an_event_without_the_namespace_of_what_it_is_about_belongs_in_the_default_one(server: Server) -> None:
    def group(namespace: str) -> list[Obj]:
        events = [event(server.name(), namespace, reason="E") for _ in range(3)]
        for one in events:
            del one["involvedObject"]["namespace"]
        return events

    assert made_of_prototypes(server, group("default")) == 1
    assert ["does not match" in str(outcome) for outcome in server.create_all(group("one"), "one")] == [True] * 3


def test_a_namespace_that_is_left_out_in_one_place_is_not_taken_for_one_that_is_left_out_in_another(
    server: Server,
) -> None:
    for place in ("metadata", "involvedObject"):
        alone, *some = (event(server.name(), reason="F") for _ in range(4))
        for one in (alone, *some):
            one[place]["namespace"] = None
        assert server.create(alone, "default") is None
        assert made_of_prototypes(server, some) == 1
        same = [server.comparable(one["metadata"]["name"], "default") for one in (alone, *some)]
        assert same == same[:1] * 4


def test_each_writer_and_each_moment_has_its_own(server: Server) -> None:
    def group() -> list[Obj]:
        return [event(server.name(), reason="B") for _ in range(3)]

    assert made_of_prototypes(server, group()) == 1
    server.run(server.clock.advance(5))
    later = group()
    assert made_of_prototypes(server, later) == 3
    other = group()
    assert made_of_prototypes(server, other, client=server.api.client(user_agent="another")) == 1
    found = [server.run(server.client.get(EVENTS, one[-1]["metadata"]["name"], "default")) for one in (later, other)]
    now = "2023-11-14T22:13:25Z"
    assert [one["metadata"]["managedFields"][0]["manager"] for one in found] == ["writer", "another"]
    assert [one["metadata"]["managedFields"][0]["time"] for one in found] == [now, now]
    assert [one["metadata"]["creationTimestamp"] for one in found] == [now, now]


def test_a_namespace_that_ends_or_is_missing_refuses_each_with_its_own_error(server: Server) -> None:
    assert made_of_prototypes(server, [event(server.name(), "two", reason="C") for _ in range(3)], "two") == 1
    meta = {"name": "ending", "finalizers": ["a.io/b"]}
    server.run(server.client.create(NAMESPACES, {"metadata": meta}))
    server.run(server.client.delete(NAMESPACES, "ending"))
    for namespace, expected in (("ending", "being terminated"), ("missing", 'namespaces "missing" not found')):
        refused = server.create_all([event("a", namespace, reason="C"), event("b", namespace, reason="C")], namespace)
        assert [expected in str(error) for error in refused] == [True, True]
        assert ('"b"' in str(refused[1])) == (namespace == "ending")


def test_a_name_that_is_taken_is_refused(server: Server) -> None:
    first = [event(server.name(), reason="D") for _ in range(3)]
    assert made_of_prototypes(server, first) == 1
    fresh = event(server.name(), reason="D")
    outcomes = server.create_all([first[0], fresh, fresh])
    assert [outcome if outcome is None else outcome.reason for outcome in outcomes] == [
        "AlreadyExists",
        None,
        "AlreadyExists",
    ]


def test_a_dry_run_is_no_group(server: Server) -> None:
    handlers = server.api.handlers
    resource = server.api.registry.get(EVENTS)
    assert resource is not None
    transport: Any = server.client.transport
    path = "/api/v1/namespaces/default/events"
    objects = [event(server.name())]
    for dry_run in (True, False):
        request = transport._request(Call("POST", path, {"dryRun": "All"} if dry_run else {}))
        expected = None if dry_run else [None]
        assert server.run(handlers.create_all(request, resource, copy_json(objects))) == expected


def test_how_many_are_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prototypes, "_KEPT", 3)
    found = Prototypes(Outlines({"": {"message": Free.TEXT}}))
    for number in range(10):
        [(outline, _)] = found.find([{"reason": str(number), "message": "a", "metadata": {"name": "b"}}], "c")
        assert outline is not None
        found.learn(outline, {"metadata": {}}, b"", "c")
        assert len(found._known) <= 3
        found.learn(outline, {"metadata": {}}, bytes(5_000), "c")
        assert found._known[outline.sort] is None, "what is large is not kept"


def test_long_values_are_compressed_as_any_object(server: Server) -> None:
    group = [event(server.name(), reason="L", message="long " * size) for size in (1, 1, 1, 1000)]
    assert made_of_prototypes(server, group) == 1


def test_a_prototype_serves_many_namespaces(server: Server) -> None:
    names = [f"many-{number}" for number in range(12)]
    for name in names:
        server.run(server.client.create(NAMESPACES, {"metadata": {"name": name}}))
    groups = {name: [event(server.name(), name, reason="M") for _ in range(3)] for name in (*names, names[0])}
    made = [made_of_prototypes(server, group, name) for name, group in groups.items()]
    assert made == [1] + [3] * 11
    for name, group in groups.items():
        for one in group:
            found = server.run(server.client.get(EVENTS, one["metadata"]["name"], name))
            assert (found["metadata"]["namespace"], found["involvedObject"]["namespace"]) == (name, name)
