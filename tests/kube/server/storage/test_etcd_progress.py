"""Against an etcd that answers progress requests in order: a small one made here, since the packaged one is too old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from karmada.kube.server.storage import etcd_messages as messages
from karmada.kube.server.storage.etcd import EtcdStore
from karmada.kube.server.storage.interface import Progress
from tests.support.eventually import LIMIT

LATEST = 40


class NewerEtcd:
    """Holds one write of ours at revision 12; all others up to LATEST are of somebody else."""

    def __init__(self) -> None:
        self.watches: list[Any] = []
        self.progress_requests = 0
        self.unanswered = 2
        """So many requests find the watch behind, and get no answer."""
        self._server = grpc.aio.server()
        unary, both = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        for service, method, handler, make, answer in (
            ("KV", "Range", self._range, unary, messages.RANGE),
            ("Maintenance", "Status", self._status, unary, messages.STATUS),
            ("Watch", "Watch", self._watch, both, messages.WATCH),
        ):
            request = {"Range": messages.RangeRequest, "Status": messages.StatusRequest, "Watch": messages.WatchRequest}
            handlers = {method: make(handler, request[method].FromString, answer.answer.SerializeToString)}
            self._server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(f"etcdserverpb.{service}", handlers)]
            )
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def _range(self, _request: Any, _context: Any) -> Any:
        answer = messages.RANGE.answer()
        answer.header.revision = LATEST
        return answer

    async def _status(self, _request: Any, _context: Any) -> Any:
        return messages.StatusResponse(version="3.5.21")

    async def _watch(self, requests: Any, _context: Any) -> AsyncIterator[Any]:
        async for request in requests:
            response = messages.WatchResponse()
            response.header.revision = LATEST
            if request.HasField("create"):
                self.watches.append(request.create)
                response.created = True
                yield response
                response = messages.WatchResponse()
                response.header.revision = LATEST
                event = response.events.add()
                event.kv.key, event.kv.value = b"/ours/core/pods/a/x", b"v" + bytes(25)
                event.kv.mod_revision = event.kv.create_revision = 12
                yield response
            else:
                self.progress_requests += 1
                if self.progress_requests > self.unanswered:
                    response.watch_id = -1
                    yield response


@pytest.fixture
async def newer() -> AsyncIterator[NewerEtcd]:
    newer = NewerEtcd()
    await newer.start()
    yield newer
    await newer.stop()


@pytest.fixture
async def store(newer: NewerEtcd) -> AsyncIterator[EtcdStore]:
    store = EtcdStore([f"127.0.0.1:{newer.port}"], prefix="/ours")
    await store.open()
    yield store
    await store.close()


async def test_history_watches_no_more_than_its_prefix_and_requests_the_end(newer: NewerEtcd, store: EtcdStore) -> None:
    events = await store.history("core/pods/", since=10, until=LATEST)
    assert [(e.key, e.value, e.revision) for e in events] == [("core/pods/a/x", b"v", 12)]
    [watch] = newer.watches
    assert (watch.key, watch.range_end) == (b"/ours/core/pods/", b"/ours/core/pods0")
    assert watch.start_revision == 10
    assert newer.progress_requests == newer.unanswered + 1


async def test_a_watch_requests_progress_only_when_a_newer_revision_was_reported(
    newer: NewerEtcd, store: EtcdStore
) -> None:
    watch = store.watch("", since=10)
    async with asyncio.timeout(LIMIT):
        [event] = await anext(watch)
    assert event.revision == 12
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0.3)  # longer than a request would take
    assert newer.progress_requests == 0
    assert (await store.range("\0")).revision == LATEST
    async with asyncio.timeout(LIMIT):
        batch = await waiting
    assert isinstance(batch, Progress)
    assert batch.revision == LATEST
    await watch.aclose()  # type: ignore[attr-defined]
