"""Waiting for one object to become as it should be: by watching it, from a list on, without polling."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import Expired, Gone
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import with_timeout

T = TypeVar("T")


async def wait_for(
    client: Client,
    kind: GVR,
    name: str,
    namespace: str,
    look: Callable[[Obj | None], T | None],
    *,
    clock: Clock,
    seconds: float,
) -> T:
    """Return the first value `look` finds in the object, which is None while there is no such object.

    TimeoutError else.
    """
    return await with_timeout(clock, _found(client, kind, name, namespace, look, clock), seconds)


async def _found(
    client: Client, kind: GVR, name: str, namespace: str, look: Callable[[Obj | None], T | None], clock: Clock
) -> T:
    only = f"metadata.name={name}"
    while True:
        items, version = await client.list_all(kind, namespace, field_selector=only)
        found = look(items[0] if items else None)
        if found is not None:
            return found
        try:
            found = await _watched(client, kind, namespace, only, version, look)
        except (ConnectionFailed, Expired, Gone):
            found = None
        if found is not None:
            return found
        await clock.sleep(_PAUSE)


_PAUSE = 0.2
"""Between a watch that ended too early and the next."""


async def _watched(
    client: Client, kind: GVR, namespace: str, only: str, version: str, look: Callable[[Obj | None], T | None]
) -> T | None:
    stream = await client.watch(kind, namespace, field_selector=only, resource_version=version)
    async with contextlib.AsyncExitStack() as stack:
        close = getattr(stream, "aclose", None)
        if close is not None:
            stack.push_async_callback(close)
        async for event, obj in stream:
            if event == "BOOKMARK":
                continue
            found = look(None if event == "DELETED" else obj)
            if found is not None:
                return found
    return None
