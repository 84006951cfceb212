"""Which work of a request is done aside: that on a large body, on a large live object, and on YAML with aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import orjson

from karmada.kube.runtime.aside import ASIDE, LARGE
from karmada.kube.server.http.request import Request

T = TypeVar("T")


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Return the result of the work: done here at once, or in the thread if the request may take long."""
    if request.takes_long is None:
        request.takes_long = _takes_long(request)
    if request.takes_long or request.live_bytes >= LARGE:
        return await ASIDE.run(work, *arguments)
    return work(*arguments)


def _takes_long(request: Request) -> bool:
    """Return whether the work on what was sent may take long: it is large, parsed or not, or YAML with aliases."""
    if request.obj is not None:
        try:
            return len(orjson.dumps(request.obj)) >= LARGE
        except TypeError:  # which is refused when it is to be stored
            return False
    body = request.body
    if len(body) >= LARGE:
        return True
    return (b"&" in body or b"*" in body) and "yaml" in request.headers.get("Content-Type", "").lower()
