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
"""Bytes of a body from which on its work is done aside."""

T = TypeVar("T")
_worker = ThreadPoolExecutor(1, thread_name_prefix="large-objects")


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Return the result of the work: done here at once, or in the thread if the body of the request is large."""
    if len(request.body) < LARGE:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_worker, work, *arguments)
