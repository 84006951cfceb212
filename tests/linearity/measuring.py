"""What a request costs: CPU seconds of the thread that serves it, and the most memory it holds."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from typing import Any

import orjson

from karmada.kube.objects.errors import ApiError
from karmada.kube.schema.yamlio import load_strict
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.kube.server.http.results import RawResult
from tests.linearity.shapes import YAML, Sent

ADMIN = User("admin", groups=("system:masters", "system:authenticated"))


async def create(server: ApiServer, sent: Sent) -> int:
    return await serve(server, sent, dry_run=False)


async def serve(server: ApiServer, sent: Sent, *, dry_run: bool = True) -> int:
    """As the HTTP front does it, without the network; the code of the answer."""
    query = Query.parse("&".join(filter(None, (sent.query, "dryRun=All" if dry_run else ""))))
    info = parse_path(sent.method, sent.path, query)
    headers = {"Content-Type": sent.media, "Accept": "application/json", "User-Agent": "tests"}
    raw: Any = object()
    request = Request(sent.method, info, query, headers, ADMIN, body=sent.body, raw=raw, in_process=False)
    try:
        result = await server.pipeline.run(request)
    except ApiError as error:
        error.status()
        request.warnings.headers()
        return error.http_code
    request.warnings.headers()
    return result.status if isinstance(result, RawResult) else 200


async def seconds(server: ApiServer, sent: Sent, repeats: int = 2) -> float:
    """The least CPU time of a few runs: what else the machine does only adds to it."""
    least = float("inf")
    for _ in range(repeats):
        await asyncio.sleep(0)
        gc.collect()
        gc.disable()
        try:
            began = time.process_time()
            await serve(server, sent)
            least = min(least, time.process_time() - began)
        finally:
            gc.enable()
    return least


async def held_up(server: ApiServer, sent: Sent) -> float:
    """CPU seconds that the loop's own thread spent on it: the time in which nobody else was served."""
    began = time.thread_time()
    await serve(server, sent)
    return time.thread_time() - began


async def memory(server: ApiServer, sent: Sent) -> int:
    """The most bytes that Python held at once for it."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await serve(server, sent)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def parsed_size(sent: Sent) -> int:
    """The bytes of the body as Python objects, which no request can do without; at least its own."""
    tracemalloc.start()
    try:
        kept = _parsed(sent)
        return max(tracemalloc.get_traced_memory()[0], len(sent.body), len(sent.query)) if kept is not None else 1
    finally:
        tracemalloc.stop()


def _parsed(sent: Sent) -> Any:
    try:
        return load_strict(sent.body) if sent.media == YAML else orjson.loads(sent.body)
    except ValueError:
        return sent.body
