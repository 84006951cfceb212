"""Watching an aggregated resource from inside the process: the backend's events as a subscription like any other.

In-process clients read subscriptions, so a task reads the backend's lines and pushes what they say. It ends with the
subscription, and ends it when the stream ends; the watcher then resumes from the last version it saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError, ServiceUnavailable, error_from_status
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.schema.node import Node
from karmada.kube.server.http.request import RequestInfo
from karmada.kube.server.http.results import WatchResult
from karmada.kube.server.watchcache.entry import Change
from karmada.kube.server.watchcache.subscription import Subscription

_BUFFER = 10_000


class _Nowhere:
    """The backend's revisions mean nothing here."""

    revision = 0


class _RemoteSubscription(Subscription):
    """Ends with what the backend said went wrong, if it did."""

    __slots__ = ("failure",)

    def __init__(self, leave: Callable[[Subscription], None]) -> None:
        super().__init__(_Nowhere(), leave, namespace="", name="", matches=None, buffer=_BUFFER)
        self.failure: ApiError | None = None

    async def __anext__(self) -> list[Change]:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            if self.failure is not None:
                raise self.failure from None
            raise


def remote_watch(info: RequestInfo, response: aiohttp.ClientResponse) -> WatchResult:
    """Take the response over: it is closed when the watch ends."""
    task: asyncio.Task[None] | None = None

    def leave(_subscription: Subscription) -> None:
        response.close()
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    subscription = _RemoteSubscription(leave)
    task = asyncio.create_task(_feed(response, subscription), name=f"watch {info.path}")
    return WatchResult(
        resource=_stand_in(info),
        initial=[],
        subscription=subscription,
        revision=0,
        bookmarks=False,
        end_of_initial=False,
        timeout=0,
    )


def _stand_in(info: RequestInfo) -> Resource:
    gvk = GVK(info.group, info.version, info.resource)
    return Resource(
        gvk=gvk,
        plural=info.resource,
        namespaced=bool(info.namespace),
        schema=lambda: Node(type="object", preserve=True),
        storage=gvk,
        storage_resource=GroupResource(info.group, info.resource),
    )


async def _feed(response: aiohttp.ClientResponse, subscription: _RemoteSubscription) -> None:
    try:
        async for line in _lines(response):
            _push(orjson.loads(line), subscription)
    except ApiError as error:
        subscription.failure = error
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        subscription.failure = ServiceUnavailable(f"the watch broke off: {error}")
    finally:
        subscription.close()


def _push(event: Any, subscription: Subscription) -> None:
    kind, obj = event["type"], event["object"]
    if kind == "ERROR":
        raise error_from_status(obj)
    meta = obj["metadata"]
    namespace, name = meta.get("namespace") or "", meta.get("name") or ""
    entry = Doc(f"{namespace}/{name}", namespace, name, 0, orjson.dumps(obj))
    subscription.push(Change(kind, entry, None))


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in response.content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
