"""Which work of a request is done aside: that on a large body, on a large live object, and on YAML with aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from karmada.kube.runtime.aside import ASIDE, LARGE
from karmada.kube.server.http.request import Request

T = TypeVar("T")


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Return the result of the work: done here at once, or in the thread if the request may take long."""
    body = request.body
    may_take_long = request.live_bytes >= LARGE or request.sent_bytes >= LARGE
    if not may_take_long and (b"&" in body or b"*" in body):  # YAML with aliases
        may_take_long = "yaml" in request.headers.get("Content-Type", "").lower()
    if not may_take_long:
        return work(*arguments)
    return await ASIDE.run(work, *arguments)
