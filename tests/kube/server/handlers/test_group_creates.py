"""Many creates at once: each as if it had been made alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Transport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import User
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.watchcache import unloaded
from tests.support.running import run_server

EVENTS, SERVICES = GVR("", "v1", "events"), GVR("", "v1", "services")
POLICIES = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
BINDINGS = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with run_server(
        ApiServer(ServerConfig(data_dir=tmp_path, storage=f"sqlite://{tmp_path}/s.db?sync=off", port=0), FakeClock())
    ) as server:
        yield server


def event(name: str, **more: object) -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "web"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "count": 1, **more}


def comparable(obj: Obj) -> Obj:
    own = ("name", "uid", "resourceVersion")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in own}}


async def test_each_is_created_as_by_a_request_of_its_own_and_refused_alone(server: ApiServer) -> None:
    client = server.client(user_agent="writer")
    alone = await client.create(EVENTS, event("alone"))
    elsewhere = event("elsewhere", involvedObject={"kind": "Pod", "namespace": "other", "name": "web"})
    outcomes = await client.create_all(
        EVENTS,
        [event("one"), event("not a name"), event("alone"), event("two", count="many"), elsewhere, event("three")],
        "default",
    )
    kinds = [None, Invalid, AlreadyExists, BadRequest, Invalid, None]
    assert [None if outcome is None else type(outcome) for outcome in outcomes] == kinds
    for name in ("one", "three"):
        found = await client.get(EVENTS, name, "default")
        assert comparable(found) == comparable(alone)
        assert found["metadata"]["uid"] != alone["metadata"]["uid"]
    assert len((await client.list(EVENTS, "default"))["items"]) == 3


async def test_what_all_of_them_lack_is_what_each_lacks(server: ApiServer) -> None:
    client = server.client()
    [outcome] = await client.create_all(EVENTS, [{**event("one"), "metadata": {"name": "one"}}], "missing")
    assert isinstance(outcome, NotFound)
    with pytest.raises(Forbidden):
        await server.client(User("somebody")).create_all(EVENTS, [event("one")], "default")


class Recording(Client):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.requested: list[str] = []
        """Names in creates of one object."""

    async def create(self, kind: GVR | GVK, obj: Obj, namespace: str | None = None, **_: Any) -> Obj:
        self.requested.append(obj["metadata"]["name"])
        return await super().create(kind, obj, namespace)


async def test_kinds_with_steps_that_wait_are_created_one_by_one(
    server: ApiServer,
) -> None:
    client = Recording(server.client().transport)
    requested = client.requested
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    assert await client.create_all(SERVICES, [service], "default") == [None]
    assert (await client.get(SERVICES, "a", "default"))["spec"]["clusterIP"]
    assert requested == ["a"], "an address is reserved for it"
    assert await client.create_all(EVENTS, [event("b")], "default") == [None]
    assert requested == ["a"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "object.count < 2"}]}
    for gvr, kind, content in (
        (POLICIES, "ValidatingAdmissionPolicy", spec),
        (BINDINGS, "ValidatingAdmissionPolicyBinding", {"policyName": "few", "validationActions": ["Deny"]}),
    ):
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "few"}}
        await server.client().create(gvr, {**body, "spec": content})
    outcomes = await client.create_all(EVENTS, [event("c"), event("d", count=2)], "default")
    assert [type(outcome) for outcome in outcomes] == [type(None), Forbidden]
    assert requested == ["a", "c", "d"]


def alike(*names: str) -> list[Obj]:
    """As a recorder writes them."""
    about = {"namespace": "default", "name": "web", "uid": "0b5b9f0e-3c7e-4f6e-9d53-5a3d4e1c2b7a"}
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), "2023-11-14T22:13:20Z")
    involved = {"kind": "Pod", "apiVersion": "v1", "resourceVersion": "7", **about}
    return [event(name, involvedObject=involved, message=f"of {name}", **times) for name in names]


async def test_who_watches_sees_an_encoded_event_as_it_is_listed(server: ApiServer) -> None:
    client = server.client(user_agent="writer")
    await client.create_all(EVENTS, alike("a", "b", "c"), "default")
    since = (await client.list(EVENTS))["metadata"]["resourceVersion"]
    assert not server.cache.collection(GroupResource("", "events")).is_idle, "somebody has listed them"
    await client.create_all(EVENTS, alike("d", "e"), "default")
    await client.delete(EVENTS, "d", "default")
    watch = await client.watch(EVENTS, "default", resource_version=since)
    seen = [await anext(watch) for _ in range(3)]
    assert [(one.type, one.object["message"]) for one in seen] == [
        ("ADDED", "of d"),
        ("ADDED", "of e"),
        ("DELETED", "of d"),
    ]
    listed = (await client.list(EVENTS, "default"))["items"]
    assert [one["message"] for one in listed] == ["of a", "of b", "of c", "of e"]
    assert listed[-1] == seen[1].object
    same = [{**comparable(one), "message": ""} for one in listed]
    assert same == same[:1] * 4


async def test_an_event_that_is_encoded_while_events_are_loaded_is_not_missed(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unloaded, "_STEP", 1)
    client = server.client(user_agent="writer")
    await client.create_all(EVENTS, alike("a", "b", "c"), "default")
    events = server.cache.collection(GroupResource("", "events"))
    assert events.unloaded is not None
    assert events.unloaded._step(), "there is more to load"
    await client.create_all(EVENTS, alike("d"), "default")
    assert [one["message"] for one in (await client.list(EVENTS))["items"]] == ["of a", "of b", "of c", "of d"]
