from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.audit.config import AuditWebhookConfig
from karmada.kube.server.audit.webhook import WebhookSink
from karmada.kube.server.outbound.backend import ATTEMPTS
from tests.support.callers import encoded
from tests.support.eventually import eventually
from tests.support.tls_backend import TlsBackend, authority


class Receiver:
    def __init__(self) -> None:
        self.lists: list[Obj] = []
        self.status = 200

    @property
    def sizes(self) -> list[int]:
        return [len(received["items"]) for received in self.lists]

    async def __call__(self, raw: web.BaseRequest) -> web.StreamResponse:
        self.lists.append(json.loads(await raw.read()))
        return web.Response(status=self.status)


@pytest.fixture
async def receiver(tmp_path: Path) -> AsyncIterator[tuple[Receiver, Path]]:
    async with TlsBackend() as backend:
        received = backend.handler = Receiver()
        cluster = {
            "server": f"https://127.0.0.1:{backend.port}",
            "certificate-authority-data": encoded(authority().cert_pem),
        }
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": cluster}],
            "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        }  # fmt: skip
        (tmp_path / "hook").write_text(yaml.safe_dump(config))
        yield received, tmp_path / "hook"


def sink(file: Path, clock: FakeClock, **settings: int) -> WebhookSink:
    return WebhookSink(AuditWebhookConfig(file=file, wait_seconds=30.0, first_pause=10.0, **settings), clock)


async def test_events_are_sent_when_a_batch_is_full_or_has_waited(receiver: tuple[Receiver, Path]) -> None:
    received, file = receiver
    clock = FakeClock()
    events = sink(file, clock, batch=3)
    for number in range(4):
        events.write({"auditID": str(number)})
    await eventually(lambda: received.sizes == [3])
    assert (received.lists[0]["kind"], received.lists[0]["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
    await clock.advance(29)
    assert received.sizes == [3]
    await clock.advance(2)
    await eventually(lambda: received.sizes == [3, 1])
    assert [e["auditID"] for sent in received.lists for e in sent["items"]] == ["0", "1", "2", "3"]
    await events.close()


async def test_a_stop_sends_what_waits(receiver: tuple[Receiver, Path]) -> None:
    received, file = receiver
    events = sink(file, FakeClock(), batch=2)
    events.write({"auditID": "a"})
    await events.close()
    assert received.sizes == [1]


async def test_a_batch_that_fails_is_sent_again_and_then_lost_and_counted(receiver: tuple[Receiver, Path]) -> None:
    received, file = receiver
    received.status = 503
    clock = FakeClock()
    events = sink(file, clock, batch=2)
    for name in ("a", "b"):
        events.write({"auditID": name})

    async def given_up() -> bool:
        await clock.advance(10)
        return events.failed == 2

    await eventually(given_up)
    assert received.sizes == [2] * ATTEMPTS
    received.status = 200
    for name in ("c", "d"):
        events.write({"auditID": name})
    await eventually(lambda: received.sizes == [2] * (ATTEMPTS + 1))
    await events.close()
    assert events.failed == 2


async def test_the_buffer_is_bounded(receiver: tuple[Receiver, Path]) -> None:
    received, file = receiver
    events = sink(file, FakeClock(), batch=100, buffer=5)
    for number in range(8):
        events.write({"auditID": str(number)})
    await asyncio.sleep(0)
    assert events.failed == 3
    await events.close()
    assert received.sizes == [5]
