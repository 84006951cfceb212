"""Writes under a Lease: the server refuses them once the Lease is gone or has another epoch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.fencing import HEADER, FencingToken
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, Fenced, NotFound
from karmada.kube.objects.gvrs import CONFIG_MAPS, LEASES
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.cases import cases


@dataclass
class SentUnder:
    """A guard that never doubts its Lease, like a process that was suspended after it had checked."""

    header: str = ""
    refusals: list[str] = field(default_factory=list)

    def check(self) -> Mapping[str, str]:
        return {HEADER: self.header}

    def was_refused(self) -> None:
        self.refusals.append(self.header)

    def seconds_left(self) -> float:
        return 30.0


@pytest.fixture
async def lease(client: Client) -> Obj:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3}
    return await client.create(LEASES, {"metadata": {"name": "one", "namespace": "default"}, "spec": spec})


@pytest.fixture
def guard(lease: Obj) -> SentUnder:
    return SentUnder(str(FencingToken("default", "one", meta.uid(lease), 3)))


@pytest.fixture
async def fenced(server: ApiServer, guard: SentUnder) -> AsyncIterator[Client]:
    transport = HttpTransport(load_config(server.kubeconfig))
    transport.guard = guard
    yield Client(transport)
    await transport.close()


def config_map(name: str, value: str = "") -> Obj:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}


async def end(client: Client, lease: Obj) -> None:
    await client.delete(LEASES, "one", "default")


async def replace(client: Client, lease: Obj) -> None:
    await end(client, lease)
    await client.create(LEASES, {"metadata": {"name": "one", "namespace": "default"}, "spec": lease["spec"]})


async def next_epoch(client: Client, lease: Obj) -> None:
    await client.update(LEASES, {**lease, "spec": {**lease["spec"], "leaseTransitions": 4}})


@cases((end, "gone"), (replace, "gone"), (next_epoch, "epoch is 4 and no longer"))
async def test_every_write_is_refused_once_the_lease_has_moved_on(
    change: Callable[[Client, Obj], Awaitable[None]],
    why: str,
    client: Client,
    fenced: Client,
    guard: SentUnder,
    lease: Obj,
    server: ApiServer,
) -> None:
    kept = await fenced.create(CONFIG_MAPS, config_map("kept"))
    await change(client, lease)
    late: list[Callable[[], Awaitable[Any]]] = [
        lambda: fenced.create(CONFIG_MAPS, config_map("late")),
        lambda: fenced.update(CONFIG_MAPS, {**kept, "data": {"value": "late"}}),
        lambda: fenced.patch(CONFIG_MAPS, "kept", "default", {"data": {"value": "late"}}, type="merge"),
        lambda: fenced.apply(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **config_map("late")}),
        lambda: fenced.delete(CONFIG_MAPS, "kept", "default"),
        lambda: fenced.delete_collection(CONFIG_MAPS, "default"),
    ]
    for write in late:
        with pytest.raises(Fenced, match=why):
            await write()
    assert await fenced.get(CONFIG_MAPS, "kept", "default") == kept
    assert len(guard.refusals) == len(late)
    page, _ = server.metrics.expose()
    assert f"apiserver_fenced_writes_total {len(late)}".encode() in page


async def test_a_renewal_changes_nothing_for_the_holder(client: Client, fenced: Client, lease: Obj) -> None:
    await client.update(LEASES, {**lease, "spec": {**lease["spec"], "renewTime": "2026-01-01T00:00:00.000000Z"}})
    assert await fenced.create(CONFIG_MAPS, config_map("timely"))


async def test_a_write_is_refused_when_the_lease_ends_while_it_is_handled(
    client: Client, fenced: Client, lease: Obj, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate = server.admission.validate

    async def slow(attributes: Any) -> None:
        if attributes.name == "late":
            await end(client, lease)
        await validate(attributes)

    monkeypatch.setattr(server.admission, "validate", slow)
    with pytest.raises(Fenced, match="gone"):
        await fenced.create(CONFIG_MAPS, config_map("late"))
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "late", "default")


@cases("", "default/one", "default/one/uid/soon", "a/b/c/d/1")
async def test_a_header_that_names_no_lease_is_a_bad_request(header: str, fenced: Client, guard: SentUnder) -> None:
    guard.header = header
    with pytest.raises(BadRequest, match="must be NAMESPACE/NAME/UID/EPOCH"):
        await fenced.create(CONFIG_MAPS, config_map("odd"))
