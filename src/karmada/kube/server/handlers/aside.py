"""Long work on one object, off the event loop.

Decoding, defaulting, validating or merging an object of megabytes takes seconds in Python. In a thread of its own it
gives way to the loop every few milliseconds, so that others are served meanwhile. There is one such thread: large
requests wait for one another, and the loop keeps at least every second turn of the interpreter.

What is done aside has its object for itself, and reads nothing that the loop changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from karmada.kube.server.http.request import Request

LARGE = 64 * 1024
"""Bytes of a body, or of the live object that is written, from which on the work is done aside."""

T = TypeVar("T")
_worker = ThreadPoolExecutor(1, thread_name_prefix="large-objects")


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Return the result of the work: done here at once, or in the thread if the request may take long."""
    if request.live_bytes < LARGE and not (request.body and _may_take_long(request)):
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_worker, work, *arguments)


def _may_take_long(request: Request) -> bool:
    """Return whether the work on a body may take long: it is large, or YAML with aliases."""
    body = request.body
    if len(body) >= LARGE:
        return True
    return (b"&" in body or b"*" in body) and "yaml" in request.headers.get("Content-Type", "").lower()
