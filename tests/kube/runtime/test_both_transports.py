"""Client and runtime against the real server: every case runs in-process and over HTTPS."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import AlreadyExists, Conflict, Invalid, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import EVENTS, LEASES
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, EventRecorder
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.writes import patch_if_changed, retry_on_conflict, set_status
from karmada.kube.server.app import ApiServer
from tests.kube.runtime.sample_controller import CONFIG_MAPS, SECRETS, Copier
from tests.support.eventually import LIMIT, eventually
from tests.support.objects import kube_object
from tests.support.running import api_server

DEPLOYMENTS = GVR("apps", "v1", "deployments")
CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    async with api_server(folder, controllers=False) as server:
        yield server


@pytest.fixture(params=["in-process", "https"])
async def connect(request: pytest.FixtureRequest, server: ApiServer) -> AsyncIterator[Callable[[], Client]]:
    made: list[Client] = []

    def client() -> Client:
        if request.param == "in-process":
            made.append(server.client(user_agent="tests"))
        else:
            made.append(Client(HttpTransport(load_config(server.kubeconfig))))
        return made[-1]

    yield client
    for each in made:
        await each.close()


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    return connect()


def config_map(name: str, **data: str) -> Obj:
    return kube_object("v1", "ConfigMap", name, "default", data=data)


def deployment(name: str) -> Obj:
    labels = {"app": name}
    return kube_object("apps/v1", "Deployment", name, "default") | {
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }


async def test_the_verbs_do_what_they_say(client: Client) -> None:
    created = await client.create(DEPLOYMENTS, deployment("web"))
    assert created["spec"]["replicas"] == 1
    assert await client.get(DEPLOYMENTS, "web", "default") == created
    scaled = await client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}}, type="strategic")
    assert scaled["metadata"]["generation"] == 2
    jumped = await client.patch(
        DEPLOYMENTS, "web", "default", [{"op": "replace", "path": "/spec/replicas", "value": 4}], type="json"
    )
    assert jumped["spec"]["replicas"] == 4
    status = await client.update_status(DEPLOYMENTS, {**jumped, "status": {"replicas": 4}})
    assert status["status"]["replicas"] == 4
    assert (await client.get(DEPLOYMENTS, "web", "default", subresource="scale"))["kind"] == "Scale"
    await client.delete(DEPLOYMENTS, "web", "default", propagation="Background", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound, match=r'deployments\.apps "web" not found'):
        await client.get(DEPLOYMENTS, "web", "default")


async def test_apply_owns_its_fields(client: Client) -> None:
    first = await client.apply(CONFIG_MAPS, config_map("a", x="1"), field_manager="one")
    assert first["metadata"]["managedFields"][0]["manager"] == "one"
    with pytest.raises(Conflict, match="Apply failed with 1 conflict"):
        await client.apply(CONFIG_MAPS, config_map("a", x="2"), field_manager="two")
    forced = await client.apply(CONFIG_MAPS, config_map("a", x="2"), field_manager="two", force=True)
    assert forced["data"] == {"x": "2"}


async def test_errors_keep_their_reason(client: Client) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, config_map("a"))
    await client.patch(CONFIG_MAPS, "a", "default", {"data": {"x": "1"}})
    with pytest.raises(Conflict):
        await client.update(CONFIG_MAPS, {**created, "data": {"x": "2"}})
    with pytest.raises(Invalid) as caught:
        await client.create(CONFIG_MAPS, config_map("Bad Name"))
    assert caught.value.causes[0]["field"] == "metadata.name"


async def test_lists_come_in_pages_and_by_selector(client: Client) -> None:
    for number in range(7):
        obj = config_map(f"c{number}")
        obj["metadata"]["labels"] = {"odd": str(number % 2)}
        await client.create(CONFIG_MAPS, obj)
    items, version = await client.list_all(CONFIG_MAPS, "default", page_size=3, label_selector="odd in (0,1)")
    assert [item["metadata"]["name"] for item in items] == [f"c{n}" for n in range(7)]
    assert {item["kind"] for item in items} == {"ConfigMap"}
    assert int(version) >= max(int(item["metadata"]["resourceVersion"]) for item in items)
    odd = await client.list_all(CONFIG_MAPS, label_selector="odd=1", field_selector="metadata.name!=c1")
    assert [item["metadata"]["name"] for item in odd.items] == ["c3", "c5"]


async def test_an_informer_follows_the_server(client: Client) -> None:
    await client.create(CONFIG_MAPS, config_map("before"))
    informer = Informer(client, CONFIG_MAPS, "default")
    seen: list[tuple[bool, bool, str]] = []
    informer.start()
    await informer.wait_synced()
    informer.add_handler(lambda old, new: seen.append((old is None, new is None, key_of(new or old or {}).name)))
    assert (True, False, "before") in seen
    seen.clear()
    created = await client.create(CONFIG_MAPS, config_map("a", x="1"))
    await client.update(CONFIG_MAPS, {**created, "data": {"x": "2"}})
    await client.delete(CONFIG_MAPS, "a", "default")
    await eventually(lambda: len(seen) == 3)
    assert seen == [(True, False, "a"), (False, False, "a"), (False, True, "a")]
    await informer.stop()


async def test_a_metadata_informer_knows_the_metadata(client: Client) -> None:
    """Over HTTPS nothing else travels; in-process the server's own object is the cheapest metadata there is."""
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    informer = Informer(client, CONFIG_MAPS, "default", shape=METADATA)
    informer.start()
    await informer.wait_synced()
    await client.create(CONFIG_MAPS, config_map("b", x="1"))
    await eventually(lambda: informer.get(Key("default", "b")))
    for obj in informer.list():
        assert obj["metadata"]["uid"]
        if isinstance(client.transport, HttpTransport):
            assert set(obj) == {"apiVersion", "kind", "metadata"}
            assert obj["kind"] == "PartialObjectMetadata"
    await informer.stop()


async def test_a_custom_resource_is_found_as_soon_as_it_is_served(client: Client) -> None:
    kind = GVK("example.io", "v1", "Widget")
    await client.mapper.catalog()
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await client.create(
        CRDS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.io"},
            "spec": {
                "group": "example.io",
                "names": names,
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        },
    )
    conditions = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
    accepted = {"conditions": conditions, "acceptedNames": names, "storedVersions": ["v1"]}
    await client.patch(CRDS, "widgets.example.io", "", {"status": accepted}, subresource="status")
    informer = Informer(client, kind, "default")
    informer.start()
    await asyncio.wait_for(informer.wait_synced(), LIMIT)
    widget = kube_object("example.io/v1", "Widget", "w", "default")
    await client.create(kind, widget)
    await eventually(lambda: informer.get(Key("default", "w")))
    await informer.stop()


async def test_a_controller_converges(client: Client) -> None:
    manager = Manager(client)
    manager.add(Copier(manager))

    async def copies() -> dict[str, str]:
        items = (await client.list(SECRETS, "default"))["items"]
        return {item["metadata"]["name"]: item["data"]["copy"] for item in items}

    async with manager:
        for number in range(20):
            await client.create(CONFIG_MAPS, config_map(f"c{number}", copy="YQ=="))
        await client.create(CONFIG_MAPS, config_map("other"))
        await eventually(lambda: len(manager.informers.of(SECRETS)) == 20)
        await client.patch(CONFIG_MAPS, "c0", "default", {"data": {"copy": "Yg=="}})
        await client.delete(CONFIG_MAPS, "c1", "default")
        await client.delete(SECRETS, "c2", "default")
        expected = {f"c{n}": "YQ==" for n in range(20) if n != 1} | {"c0": "Yg=="}
        secrets = manager.informers.of(SECRETS)
        await eventually(
            lambda: {o["metadata"]["name"]: o["data"]["copy"] for o in secrets.list("default")} == expected
        )
        assert await copies() == expected


async def test_helpers_write_only_what_changes(client: Client) -> None:
    created = await client.create(DEPLOYMENTS, deployment("web"))
    same = await patch_if_changed(client, DEPLOYMENTS, created, created)
    assert same.outcome == "unchanged"
    status = await set_status(client, DEPLOYMENTS, created, {"replicas": 1})
    assert status.outcome == "updated"

    async def label(value: str) -> Obj:
        current = await client.get(DEPLOYMENTS, "web", "default")
        labels = {**current["metadata"].get("labels", {}), value: "x"}
        return await client.update(DEPLOYMENTS, {**current, "metadata": {**current["metadata"], "labels": labels}})

    await asyncio.gather(*(retry_on_conflict(partial(label, v), tries=20) for v in ("a", "b", "c", "d")))
    final = await client.get(DEPLOYMENTS, "web", "default")
    assert set(final["metadata"]["labels"]) == {"a", "b", "c", "d"}


async def test_events_are_recorded_and_counted(client: Client) -> None:
    obj = await client.create(CONFIG_MAPS, config_map("a"))
    recorder = EventRecorder(client, "tests")
    await recorder.start()
    for _ in range(3):
        recorder.event(obj, NORMAL, "Looked", "at it")
    await recorder.flush()
    await recorder.stop()
    events = (await client.list(EVENTS, "default", field_selector="involvedObject.name=a"))["items"]
    assert [(e["reason"], e["count"]) for e in events] == [("Looked", 3)]


async def test_of_two_candidates_one_leads_and_the_other_takes_over(connect: Callable[[], Client]) -> None:
    clock = FakeClock()
    one, two = (LeaderElector(connect(), "lock", "default", name, clock=clock) for name in ("one", "two"))
    await one.acquire()
    holding = asyncio.ensure_future(one.hold())
    assert not await two.try_acquire()
    before = await connect().get(LEASES, "lock", "default")
    assert before["spec"]["holderIdentity"] == "one"
    await clock.advance(one.retry_period)

    async def renewed() -> bool:
        return (await connect().get(LEASES, "lock", "default"))["spec"]["renewTime"] != before["spec"]["renewTime"]

    await eventually(renewed)
    holding.cancel()
    assert not await two.try_acquire()  # it sees the lease that is renewed no more
    assert one.leading
    await clock.advance(one.renew_deadline)
    assert not one.leading
    assert not await two.try_acquire()
    await clock.advance(15 - one.renew_deadline)
    assert await two.try_acquire()
    assert two.leading
    assert not one.leading


async def test_after_random_writes_and_compactions_every_informer_equals_the_server(
    server: ApiServer, client: Client
) -> None:
    chance = random.Random(5)
    informer = Informer(client, CONFIG_MAPS, "default")
    state: dict[Key, Obj] = {}

    def follow(old: Obj | None, new: Obj | None) -> None:
        key = key_of(new if new is not None else old or {})
        assert (key in state) == (old is not None)
        if new is None:
            del state[key]
        else:
            state[key] = new

    informer.add_handler(follow)
    informer.start()
    names = [f"c{n}" for n in range(8)]
    for step in range(300):
        name = chance.choice(names)
        try:
            if chance.random() < 0.3:
                await client.delete(CONFIG_MAPS, name, "default")
            else:
                await client.apply(CONFIG_MAPS, config_map(name, step=str(step)), field_manager="t", force=True)
        except NotFound:
            continue
        if chance.random() < 0.05:
            await server.store.compact(server.store.revision)
        if chance.random() < 0.05:
            await informer.stop()
            informer.start()
    latest = {key_of(obj): obj for obj in (await client.list(CONFIG_MAPS, "default"))["items"]}
    await eventually(lambda: {key_of(obj): obj for obj in informer.list()} == latest)
    assert state == latest
    await informer.stop()
