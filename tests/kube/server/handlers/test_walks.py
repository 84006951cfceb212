"""Requests that look at all objects of a kind let others run in between, and see one state of them all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from karmada.kube.server.addresses.service_routing import ServiceRouter
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.http.list_encoding import list_parts
from karmada.kube.server.http.negotiation import YAML, Form
from karmada.kube.server.http.pieces import in_pieces
from karmada.kube.server.http.results import ListResult
from karmada.kube.server.watchcache.cache import encode_value, storage_key

CONFIG_MAPS, PODS, NAMESPACES = GVR("", "v1", "configmaps"), GVR("", "v1", "pods"), GVR("", "v1", "namespaces")
SERVICES, SLICES = GVR("", "v1", "services"), GVR("discovery.k8s.io", "v1", "endpointslices")
BUDGETS = GVR("policy", "v1", "poddisruptionbudgets")
AUTOSCALERS = GVR("autoscaling", "v1", "horizontalpodautoscalers")
OBJECTS_OF_A_SLICE = 20
TWO_SLICES = 2 * OBJECTS_OF_A_SLICE + 5
"""Where one loop ends and another begins in the same turn."""


WALKING = ContextVar("walking", default=False)


class Looks:
    """A clock that goes on by each look of a walk, of which a loop has one for each object."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> float:
        self.number += WALKING.get()
        return self.number * time_slice.SLICE_SECONDS / OBJECTS_OF_A_SLICE


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks()
    monkeypatch.setattr(time_slice, "perf_counter", looks)
    return looks


@pytest.fixture(params=[100, 200])
def number(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
async def server(tmp_path: Path, number: int) -> AsyncIterator[ApiServer]:
    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory:", port=0), FakeClock())
    await server.start()
    await server.client().create(NAMESPACES, {"metadata": {"name": "many"}})
    await store(server, CONFIG_MAPS, "ConfigMap", number)
    yield server
    await server.stop()


@pytest.fixture
def client(server: ApiServer) -> Client:
    return server.client()


async def store(server: ApiServer, kind: GVR, name: str, number: int, **content: Any) -> None:
    """As if they had been there for long."""
    api_version = kind.api_version.replace("autoscaling/v1", "autoscaling/v2")
    for n in range(number):
        labels = {"app": "web", "odd": str(n % 2)}
        meta: Obj = {"name": f"o{n:04}", "namespace": "many", "uid": f"{name}-{n}", "labels": labels}
        obj = {"apiVersion": api_version, "kind": name, "metadata": meta, **content}
        key = storage_key(kind.group_resource, "many", meta["name"])
        await server.cache.store.write(key, encode_value(obj), expected=0)


async def most_at_once(looks: Looks, walk: Awaitable[object]) -> int:
    """How many objects are looked at in one turn of the event loop."""
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(looks.number)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    WALKING.set(True)
    await walk
    turns.append(looks.number)
    task.cancel()
    return max(after - before for before, after in pairwise(turns))


async def test_lists_by_selectors(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    await store(server, PODS, "Pod", number, spec={"nodeName": "n"}, status={"phase": "Running"})
    for kind, labels, fields in [
        (CONFIG_MAPS, "odd=1", ""),
        (PODS, "", "status.phase=Running"),
        (PODS, "", "spec.nodeName=n"),
    ]:
        before = looks.number
        listing = client.list(kind, "many", label_selector=labels, field_selector=fields)
        assert await most_at_once(looks, listing) <= TWO_SLICES
        assert looks.number - before >= number


async def test_lists_in_another_version(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 2}
    await store(server, AUTOSCALERS, "HorizontalPodAutoscaler", number, spec=spec)
    before = looks.number
    assert await most_at_once(looks, client.list(AUTOSCALERS, "many")) <= TWO_SLICES
    assert looks.number - before >= number


async def test_deletions_of_all(client: Client, looks: Looks, number: int) -> None:
    before = looks.number
    deletion = client.delete_collection(CONFIG_MAPS, "many", label_selector="odd=1")
    assert await most_at_once(looks, deletion) <= TWO_SLICES
    assert looks.number - before >= number * 1.5
    assert len((await client.list(CONFIG_MAPS, "many", label_selector="app=web"))["items"]) == number / 2


async def test_evictions_among_many_budgets(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    await store(server, PODS, "Pod", 1, spec={}, status={"phase": "Running"})
    await store(server, BUDGETS, "PodDisruptionBudget", number, spec={"selector": {"matchLabels": {"app": "other"}}})
    before = looks.number
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "o0000", "namespace": "many"}}
    evicted = client.create_subresource(PODS, "o0000", "many", "eviction", eviction)
    assert await most_at_once(looks, evicted) <= TWO_SLICES
    assert looks.number - before >= number


async def test_the_endpoints_of_a_service(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    await store(server, SERVICES, "Service", 1, spec={"clusterIP": "10.0.0.7", "ports": [{"port": 443}]})
    await store(server, SLICES, "EndpointSlice", number, endpoints=[], ports=[])
    before = looks.number
    assert await most_at_once(looks, ServiceRouter(server.cache).resolve("many", "o0000", 443)) <= TWO_SLICES
    assert looks.number - before >= number


async def test_a_stricter_pod_security(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    await store(server, PODS, "Pod", number, spec={"hostNetwork": True, "containers": []})
    before = looks.number
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
    assert await most_at_once(looks, client.patch(NAMESPACES, "many", "", labels)) <= TWO_SLICES
    assert looks.number - before >= 2 * number


async def test_a_watch_from_further_back(client: Client, server: ApiServer, looks: Looks, number: int) -> None:
    since = (await client.list(CONFIG_MAPS, "many"))["metadata"]["resourceVersion"]
    for n in range(number):
        await client.patch(CONFIG_MAPS, f"o{n:04}", "many", {"metadata": {"annotations": {"changed": "yes"}}})
    before = looks.number
    assert await most_at_once(looks, anext_of(client, since)) <= TWO_SLICES
    assert looks.number - before >= number


@pytest.mark.parametrize("form", [Form(), Form(transform="Table"), Form(YAML), Form(transform="PartialObjectMetadata")])
async def test_the_bytes_of_a_list(server: ApiServer, looks: Looks, number: int, form: Form) -> None:
    resource = server.registry.get(CONFIG_MAPS)
    assert resource is not None
    listed = ListResult(resource, {}, server.cache.collection(CONFIG_MAPS.group_resource).list("many"))
    before = looks.number
    parts = list_parts(listed, form, "Metadata", False, 0.0)

    async def written() -> None:
        async for _ in in_pieces(parts):
            pass

    assert await most_at_once(looks, written()) <= TWO_SLICES
    assert looks.number - before >= number


# --- one state


async def writes(client: Client) -> int:
    """Write some of them; return the revision of the first write."""
    first = await client.create(CONFIG_MAPS, {"metadata": {"name": "first", "labels": {"odd": "1"}}}, "many")
    for n in range(0, 100, 3):
        await client.patch(CONFIG_MAPS, f"o{n:04}", "many", {"metadata": {"labels": {"odd": "2"}}})
        await client.create(CONFIG_MAPS, {"metadata": {"name": f"new{n}", "labels": {"odd": "1"}}}, "many")
    return int(first["metadata"]["resourceVersion"])


def versions(objects: list[Obj]) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in objects}


async def test_a_list_is_of_its_revision_whatever_is_written_meanwhile(client: Client, looks: Looks) -> None:
    before = await client.list(CONFIG_MAPS, "many", label_selector="odd=1")
    WALKING.set(True)
    listing = asyncio.create_task(client.list(CONFIG_MAPS, "many", label_selector="odd=1"))
    await asyncio.sleep(0)
    assert not listing.done()
    first = await writes(client)
    found = await listing
    assert int(found["metadata"]["resourceVersion"]) < first
    assert versions(found["items"]) == versions(before["items"])


async def test_a_watch_misses_and_repeats_nothing_of_what_is_written_meanwhile(client: Client, looks: Looks) -> None:
    WALKING.set(True)
    watching = asyncio.create_task(anext_of(client))
    await asyncio.sleep(0)
    assert not watching.done()
    await writes(client)
    await watching
    expected = versions((await client.list(CONFIG_MAPS, "many", label_selector="odd=1"))["items"])
    seen: dict[str, str] = {}
    first, events = watching.result()
    event = first
    while True:
        meta = event.object["metadata"]
        if event.type in ("ADDED", "MODIFIED"):
            assert int(seen.get(meta["name"], 0)) < int(meta["resourceVersion"])
            seen[meta["name"]] = meta["resourceVersion"]
        elif event.type == "DELETED":
            del seen[meta["name"]]
        if seen == expected:
            return
        event = await asyncio.wait_for(anext(events), 60)


async def anext_of(client: Client, since: str = "") -> tuple[Any, AsyncIterator[Any]]:
    events = await client.watch(CONFIG_MAPS, "many", label_selector="odd=1", resource_version=since)
    return await anext(events), events
