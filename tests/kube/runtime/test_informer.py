from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound, ServiceUnavailable
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS, PODS
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers, Limit
from karmada.kube.runtime.keys import Key, key_of
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport


def config_map(name: str, value: str = "1", namespace: str = "default", **labels: str) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Seen:
    """What a handler received, as (verb, name, value)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.state: dict[Key, Obj] = {}
        self.errors: list[str] = []

    def __call__(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        key = key_of(obj)
        if (old is None) != (key not in self.state):
            self.errors.append(f"{key}: delivered {old is None=} but has {key in self.state=}")
        verb = "update" if old is not None and new is not None else "add" if new is not None else "delete"
        self.events.append((verb, key.name, (obj.get("data") or {}).get("value", "")))
        if new is None:
            del self.state[key]
        else:
            self.state[key] = new


@pytest.fixture
async def informer(client: Client, clock: FakeClock) -> Any:
    informer = Informer(client, CONFIG_MAPS, clock=clock)
    yield informer
    await informer.stop()


async def test_it_lists_then_follows_every_change(client: Client, informer: Informer) -> None:
    seen = Seen()
    informer.add_handler(seen)
    await client.create(CONFIG_MAPS, config_map("a"))
    informer.start()
    await informer.wait_synced()
    created = await client.create(CONFIG_MAPS, config_map("b"))
    await client.update(CONFIG_MAPS, {**created, "data": {"value": "2"}})
    await client.delete(CONFIG_MAPS, "a", "default")
    await informer.until(lambda: len(seen.events) == 4)
    assert seen.events == [("add", "a", "1"), ("add", "b", "1"), ("update", "b", "2"), ("delete", "a", "1")]
    assert informer.get(Key("default", "b")) == await client.get(CONFIG_MAPS, "b", "default")


async def test_it_keeps_the_objects_the_transport_returned(client: Client, fake: FakeApi, informer: Informer) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    informer.start()
    await informer.wait_synced()
    await client.create(CONFIG_MAPS, config_map("b"))
    await informer.until(lambda: len(informer) == 2)
    for obj in informer.list():
        assert any(obj is stored for stored in fake.objects.values())


async def test_a_handler_added_late_gets_the_existing_objects_and_can_be_removed(
    client: Client, informer: Informer
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    informer.start()
    await informer.wait_synced()
    seen = Seen()
    remove = informer.add_handler(seen)
    assert seen.events == [("add", "a", "1")]
    remove()
    await client.create(CONFIG_MAPS, config_map("b"))
    await informer.until(lambda: len(informer) == 2)
    assert len(seen.events) == 1


async def test_a_handler_that_fails_does_not_stop_the_others(client: Client, informer: Informer) -> None:
    def broken(old: Obj | None, new: Obj | None) -> None:
        raise RuntimeError("broken")

    seen = Seen()
    informer.add_handler(broken)
    informer.add_handler(seen)
    informer.start()
    await client.create(CONFIG_MAPS, config_map("a"))
    await informer.until(lambda: len(informer) == 1)
    assert seen.events == [("add", "a", "1")]


async def test_indexes_follow_the_objects(client: Client, informer: Informer) -> None:
    informer.add_index("value", lambda obj: [obj["data"]["value"]])
    informer.start()
    await informer.wait_synced()
    a = await client.create(CONFIG_MAPS, config_map("a", "x"))
    await client.create(CONFIG_MAPS, config_map("b", "x", namespace="other"))
    await client.update(CONFIG_MAPS, {**a, "data": {"value": "y"}})
    await informer.until(lambda: bool(informer.by_index("value", "y")))
    assert [o["metadata"]["name"] for o in informer.by_index("value", "x")] == ["b"]
    assert [o["metadata"]["name"] for o in informer.list("other")] == ["b"]
    await client.delete(CONFIG_MAPS, "b", "other")
    await informer.until(lambda: len(informer) == 1)
    assert informer.by_index("value", "x") == []
    assert informer.list("other") == []
    assert list(informer.index_values("value")) == ["y"]


async def test_a_selected_object_that_stops_matching_is_deleted(client: Client, clock: FakeClock) -> None:
    informer = Informer(client, CONFIG_MAPS, label_selector="app=web", clock=clock)
    seen = Seen()
    informer.add_handler(seen)
    informer.start()
    web = await client.create(CONFIG_MAPS, config_map("web", app="web"))
    await client.create(CONFIG_MAPS, config_map("db", app="db"))
    await informer.until(lambda: len(informer) == 1)
    await client.update(CONFIG_MAPS, {**web, "metadata": {**web["metadata"], "labels": {"app": "db"}}})
    await informer.until(lambda: len(informer) == 0)
    assert [event[:2] for event in seen.events] == [("add", "web"), ("delete", "web")]
    await informer.stop()


async def test_metadata_only_informers_hold_nothing_but_metadata(client: Client, clock: FakeClock) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    informer = Informer(client, CONFIG_MAPS, shape=METADATA, clock=clock)
    informer.start()
    await informer.wait_synced()
    await client.create(CONFIG_MAPS, config_map("b"))
    await informer.until(lambda: len(informer) == 2)
    assert {frozenset(obj) for obj in informer.list()} == {frozenset({"apiVersion", "kind", "metadata"})}
    await informer.stop()


async def test_a_kind_can_name_the_resource(client: Client, clock: FakeClock) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    informer = Informer(client, GVK("", "v1", "ConfigMap"), clock=clock)
    informer.start()
    await informer.wait_synced()
    assert len(informer) == 1
    await informer.stop()


async def test_a_broken_watch_resumes_without_listing_again(
    client: Client, fake: FakeApi, informer: Informer, clock: FakeClock
) -> None:
    seen = Seen()
    informer.add_handler(seen)
    informer.start()
    await informer.wait_synced()
    await eventually(lambda: fake.watchers)
    fake.break_watches()
    await client.create(CONFIG_MAPS, config_map("a"))
    await clock.advance(1)
    await eventually(lambda: len(informer) == 1)
    lists = [call for call in fake.calls if call.method == "GET" and "watch" not in call.query]
    assert len(lists) == 1
    assert seen.events == [("add", "a", "1")]


async def test_a_bookmark_moves_the_version_to_resume_from(client: Client, fake: FakeApi, informer: Informer) -> None:
    informer.start()
    await informer.wait_synced()
    await eventually(lambda: fake.watchers)
    await client.create(PODS, {"metadata": {"name": "p", "namespace": "default"}})
    fake.bookmark()
    await eventually(lambda: informer.resource_version == str(fake.revision))
    fake.compact()
    fake.break_watches(cleanly=True)
    await client.create(CONFIG_MAPS, config_map("a"))
    await informer.until(lambda: len(informer) == 1)
    assert len([c for c in fake.calls if c.path.endswith("configmaps") and c.method == "GET"]) == 3


async def test_lost_history_makes_it_list_again_and_emit_the_difference(
    client: Client, fake: FakeApi, informer: Informer, clock: FakeClock
) -> None:
    seen = Seen()
    informer.add_handler(seen)
    for name in ("stays", "changes", "goes", "replaced"):
        await client.create(CONFIG_MAPS, config_map(name))
    informer.start()
    await informer.wait_synced()
    await eventually(lambda: fake.watchers)
    fake.break_watches()
    await client.patch(CONFIG_MAPS, "changes", "default", {"data": {"value": "2"}})
    await client.delete(CONFIG_MAPS, "goes", "default")
    await client.delete(CONFIG_MAPS, "replaced", "default")
    await client.create(CONFIG_MAPS, config_map("replaced", "new"))
    await client.create(CONFIG_MAPS, config_map("comes"))
    fake.compact()
    seen.events.clear()
    await clock.advance(2)
    await eventually(lambda: informer.get(Key("default", "comes")))
    assert sorted(seen.events) == [
        ("add", "comes", "1"),
        ("add", "replaced", "new"),
        ("delete", "goes", "1"),
        ("delete", "replaced", "1"),
        ("update", "changes", "2"),
    ]
    assert fake.calls[-2].query["resourceVersion"] != "0", "a relist must not go back in time"


async def test_a_server_restored_to_an_older_state_is_followed(
    client: Client, fake: FakeApi, informer: Informer, clock: FakeClock
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    fake.backup = (dict(fake.objects), fake.revision)
    informer.start()
    await informer.wait_synced()
    await client.create(CONFIG_MAPS, config_map("b"))
    await informer.until(lambda: len(informer) == 2)
    fake.restore()
    await clock.advance(5)
    await eventually(lambda: len(informer) == 1)


async def test_equal_versions_of_another_history_are_not_taken_for_equal_objects(
    client: Client, fake: FakeApi, informer: Informer, clock: FakeClock
) -> None:
    await client.create(CONFIG_MAPS, config_map("a"))
    fake.backup = (dict(fake.objects), fake.revision)
    informer.start()
    await informer.wait_synced()
    before = await client.patch(CONFIG_MAPS, "a", "default", {"data": {"value": "lost"}})
    await client.create(CONFIG_MAPS, config_map("b"))
    await informer.until(lambda: len(informer) == 2)
    fake.restore()
    after = await client.patch(CONFIG_MAPS, "a", "default", {"data": {"value": "kept"}})
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    await clock.advance(5)
    assert [obj["data"]["value"] for obj in informer.list()] == ["kept"]


async def test_a_kind_that_the_server_may_not_have_is_empty_until_it_has_it(
    client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    informers = Informers(client, clock=clock, optional={CONFIG_MAPS})
    informer, seen = informers.of(CONFIG_MAPS), Seen()
    informer.add_handler(seen)
    fake.fail = lambda _: NotFound("the server could not find the requested resource")
    informer.start()
    await informer.wait_synced()
    assert (len(informer), informer.last_error) == (0, None)
    fake.fail = lambda _: None
    await client.create(CONFIG_MAPS, config_map("a"))
    await clock.advance(31)
    await informer.until(lambda: len(seen.events) == 1)
    assert seen.events == [("add", "a", "1")]
    await informer.stop()


async def test_it_waits_with_growing_pauses_while_the_server_is_down(
    client: Client, fake: FakeApi, informer: Informer, clock: FakeClock
) -> None:
    fake.fail = lambda _: ServiceUnavailable("down")
    informer.start()
    await clock.advance(120)
    assert not informer.synced
    assert isinstance(informer.last_error, ServiceUnavailable)
    assert 5 <= len(fake.calls) <= 15
    fake.fail = lambda _: None
    await clock.advance(60)
    assert informer.synced
    assert informer.last_error is None


async def test_stopping_leaves_no_task_and_no_watch_behind(client: Client, fake: FakeApi, informer: Informer) -> None:
    before = asyncio.all_tasks()
    informer.start()
    await informer.wait_synced()
    await eventually(lambda: fake.watchers)
    await informer.stop()
    assert asyncio.all_tasks() == before
    assert fake.watchers == []


async def test_informers_are_shared_per_resource_and_selection(client: Client, fake: FakeApi, clock: FakeClock) -> None:
    informers = Informers(client, clock=clock)
    one = informers.of(CONFIG_MAPS, indexes={"value": (by_value := lambda obj: [obj["data"]["value"]])})
    assert informers.of(CONFIG_MAPS, indexes={"value": by_value}) is one
    with pytest.raises(ValueError, match="another function"):
        informers.of(CONFIG_MAPS, indexes={"value": lambda _: []})
    assert informers.of(CONFIG_MAPS, label_selector="a=b") is not one
    informers.start()
    await informers.wait_synced()
    late = informers.of(PODS)
    await late.wait_synced()
    assert informers.synced
    await informers.drop(CONFIG_MAPS)
    assert not one.running
    assert informers.of(CONFIG_MAPS) is not one
    await informers.stop()
    assert fake.watchers == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 4), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.integers(0, 4), st.just(0)),
        st.sampled_from([("break", 0, 0), ("end", 0, 0), ("compact", 0, 0), ("bookmark", 0, 0), ("run", 0, 0)]),
        st.tuples(st.just("down"), st.integers(0, 3), st.just(0)),
        st.sampled_from([("backup", 0, 0), ("restore", 0, 0)]),
    ),
    max_size=30,
)


@settings(max_examples=120)
@given(STEPS)
def test_after_any_sequence_of_changes_and_faults_the_informer_equals_the_server(
    steps: list[tuple[str, int, int]],
) -> None:
    async def run() -> None:
        fake, clock, seen = FakeApi(), FakeClock(), Seen()
        client = Client(FakeTransport(fake))
        selected = Seen()
        informer = Informer(client, CONFIG_MAPS, clock=clock)
        picky = Informer(client, CONFIG_MAPS, label_selector="even=true", clock=clock)
        informer.add_handler(seen)
        picky.add_handler(selected)
        informer.start()
        picky.start()
        for what, number, value in steps:
            await _step(fake, client, clock, what, number, value)
        fake.fail = lambda _: None
        await clock.advance(200)
        latest = fake.listed(CONFIG_MAPS)
        even = [obj for obj in latest if (obj["metadata"].get("labels") or {}).get("even") == "true"]
        for follower, received, wanted in ((informer, seen, latest), (picky, selected, even)):
            expected = {key_of(obj): obj for obj in wanted}
            assert {key_of(obj): obj for obj in follower.list()} == expected
            assert received.state == expected
            assert received.errors == []
        await informer.stop()
        await picky.stop()

    asyncio.run(run())


async def _step(fake: FakeApi, client: Client, clock: FakeClock, what: str, number: int, value: int) -> None:
    name = f"c{number}"
    exists = (CONFIG_MAPS, "default", name) in fake.objects
    if what == "write":
        fake.fail, before = (lambda _: None), fake.fail
        obj = config_map(name, str(value), even="true" if value % 2 == 0 else "false")
        await (client.update(CONFIG_MAPS, obj) if exists else client.create(CONFIG_MAPS, obj))
        fake.fail = before
    elif what == "delete" and exists:
        fake.fail, before = (lambda _: None), fake.fail
        await client.delete(CONFIG_MAPS, name, "default")
        fake.fail = before
    elif what in ("break", "end"):
        fake.break_watches(cleanly=what == "end")
    elif what == "compact":
        fake.compact()
    elif what == "bookmark":
        fake.bookmark()
    elif what == "backup":
        fake.backup = (dict(fake.objects), fake.revision)
    elif what == "restore":
        fake.restore()
        fake.fail = lambda _: None
        await clock.advance(200)
    elif what == "down":
        failures = iter([ServiceUnavailable("down")] * number)
        fake.fail = lambda _: next(failures, None)
    else:
        await clock.advance(1)


async def test_a_process_with_limits_sees_nothing_outside_them(client: Client, fake: FakeApi, clock: FakeClock) -> None:
    for namespace, name in (("own", "a"), ("own", "b"), ("other", "a")):
        await client.create(CONFIG_MAPS, config_map(name, namespace=namespace))
    limits: dict[Any, Limit] = {CONFIG_MAPS: Limit("own", "metadata.name=a")}
    informers = Informers(client, clock=clock, limits=limits)
    limited, others = informers.of(CONFIG_MAPS), informers.of(PODS)
    assert informers.of(CONFIG_MAPS, "own", field_selector="metadata.name=a,metadata.name=a") is not limited
    informers.start()
    await informers.wait_synced()
    assert limited.keys() == [Key("own", "a")]
    assert others.namespace == ""
    await client.create(CONFIG_MAPS, config_map("c", namespace="own"))
    await client.update(CONFIG_MAPS, {**fake.objects[CONFIG_MAPS, "own", "a"], "data": {"value": "2"}})
    await eventually(lambda: (limited.get(Key("own", "a")) or {})["data"]["value"] == "2")
    assert limited.keys() == [Key("own", "a")]
    await informers.stop()


async def test_a_server_that_is_back_is_listed_at_once(client: Client, fake: FakeApi, clock: FakeClock) -> None:
    fake.fail = lambda _call: ServiceUnavailable("away")
    informers = Informers(client, clock=clock)
    informer = informers.of(CONFIG_MAPS)
    informers.start()
    for _ in range(8):
        await clock.advance(30)
    fake.fail = lambda _call: None
    assert not informer.synced
    informers.retry_now()
    await eventually(lambda: informer.synced)
    await informers.stop()
