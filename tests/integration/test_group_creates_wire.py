"""Many creates as one request over the network, each as if it had been made alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import GROUP_HEADER, Call
from karmada.kube.objects.errors import AlreadyExists, BadRequest, Invalid
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, EventRecorder
from karmada.kube.server.app import ApiServer


def event(name: str) -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "web"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "count": 1}


@pytest.fixture
async def afar(server: ApiServer) -> AsyncIterator[Client]:
    """Over the network."""
    client = Client(HttpTransport(load_config(server.kubeconfig)), field_manager="writer")
    yield client
    await client.close()


def requests(server: ApiServer) -> int:
    page = server.metrics.expose()[0].decode()
    return sum(
        int(line.split()[-1]) for line in page.splitlines() if "apiserver_request_total" in line and '"events"' in line
    )


async def test_over_the_network_a_group_is_one_request(server: ApiServer, afar: Client) -> None:
    alone = await afar.create(EVENTS, event("alone"))
    before = requests(server)
    group = [event("one"), event("not a name"), event("alone"), event("two")]
    outcomes = await afar.create_all(EVENTS, group, "default")
    assert requests(server) == before + 1
    assert [None if outcome is None else type(outcome) for outcome in outcomes] == [None, Invalid, AlreadyExists, None]
    assert (await afar.get(EVENTS, "two", "default"))["involvedObject"] == alone["involvedObject"]


async def test_the_encoder_takes_what_a_recorder_writes_over_the_network(
    server: ApiServer, afar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Obj] = []
    monkeypatch.setattr(server.handlers.writes, "admitted", lambda _, obj: steps.append(obj))
    recorder = EventRecorder(afar, "controller")
    await recorder.start()
    for name in ("one", "two"):
        recorder.event(
            {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "apiVersion": "v1"},
            NORMAL,
            "Good",
            "text",
        )
    await recorder.flush()
    await recorder.stop()
    assert len((await afar.list(EVENTS, "default"))["items"]) == 2
    assert not steps


async def test_a_server_that_takes_no_groups_gets_the_objects_one_by_one(server: ApiServer, afar: Client) -> None:
    server.pipeline.takes_groups = False
    for names in (("one", "two"), ("three", "four")):
        assert await afar.create_all(EVENTS, [event(name) for name in names], "default") == [None, None]
    assert len((await afar.list(EVENTS, "default"))["items"]) == 4
    assert requests(server) == 1 + 4 + 1, "the refused group, which is not tried again, each event, and the list"


@pytest.mark.parametrize("body", [{}, {"items": 1}, {"items": [{}]}, {"items": [{"metadata": {"name": 1}}]}, [1], "x"])
async def test_a_body_that_is_no_list_of_named_objects_is_refused(afar: Client, body: Any) -> None:
    call = Call("POST", "/api/v1/namespaces/default/events", body=body)
    with pytest.raises(BadRequest, match="must be a List of objects with names"):
        await afar.transport._successful(call, {GROUP_HEADER: "true"})  # type: ignore[attr-defined]
