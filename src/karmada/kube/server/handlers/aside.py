"""Which work of a request is done aside: that on a large body, on a large live object, and on YAML with aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from karmada.kube.runtime.aside import ASIDE, LARGE
from karmada.kube.server.http.request import Request

T = TypeVar("T")


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Return the result of the work: done here at once, or in the thread if the request may take long."""
    if request.live_bytes < LARGE and not (request.body and _may_take_long(request)):
        return work(*arguments)
    return await ASIDE.run(request.user.name, work, *arguments)


def _may_take_long(request: Request) -> bool:
    """Return whether the work on a body may take long: it is large, or YAML with aliases."""
    body = request.body
    if len(body) >= LARGE:
        return True
    return (b"&" in body or b"*" in body) and "yaml" in request.headers.get("Content-Type", "").lower()
