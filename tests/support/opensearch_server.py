"""An OpenSearch for tests: a real HTTP server with the endpoints that are used of it, in memory, and its failures.

`fail` has responses for the next requests: a status for the whole, "reset" to cut the connection, or "some" to refuse
every second action of a bulk request with 429.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from karmada.kube.objects.types import Obj


class OpenSearchServer:
    def __init__(self, *, user: str = "", password: str = "") -> None:
        self.indexes: dict[str, dict[str, Obj]] = {}
        self.mappings: dict[str, Obj] = {}
        self.fail: deque[int | str] = deque()
        self.down = False
        self.requests: list[str] = []
        self.bulks: list[int] = []
        self.rejected: set[str] = set()
        """Ids of documents that it will never take."""
        self.most_bytes = 0
        self.user, self.password = user, password
        self._refreshed: dict[str, dict[str, Obj]] = {}
        self._scrolls: dict[str, list[tuple[str, Obj]]] = {}
        self._numbers = itertools.count(1)
        self._some = False
        self.url = ""

    def documents(self, index: str) -> dict[str, Obj]:
        return self.indexes.get(index, {})

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        failure = self.fail.popleft() if self.fail and not self.down else ""
        if self.down or failure == "reset":
            assert request.transport is not None
            request.transport.abort()
            await asyncio.sleep(0)
            raise ConnectionResetError
        if self.user and request.headers.get("Authorization") != _basic(self.user, self.password):
            return web.json_response({"error": "Unauthorized"}, status=401)
        if isinstance(failure, int):
            return web.json_response(
                {"error": {"root_cause": [], "type": "refused"}, "status": failure}, status=failure
            )
        self._some = failure == "some"
        response: web.StreamResponse = await handler(request)
        return response

    async def _info(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": {"number": "3.2.0", "distribution": "opensearch"}})

    async def _create(self, request: web.Request) -> web.Response:
        name = request.match_info["index"]
        if name in self.indexes:
            error = {"type": "resource_already_exists_exception", "reason": f"index [{name}] already exists"}
            return web.json_response({"error": {"root_cause": [error], **error}, "status": 400}, status=400)
        self.indexes[name] = {}
        self.mappings[name] = await request.json()
        return web.json_response({"acknowledged": True, "index": name})

    async def _bulk(self, request: web.Request) -> web.Response:
        some, body = self._some, await request.read()
        if self.most_bytes and len(body) > self.most_bytes:
            return web.json_response({"error": "too large"}, status=413)
        lines = iter(body.splitlines())
        items: list[Obj] = []
        for number, line in enumerate(lines):
            ((verb, about),) = orjson.loads(line).items()
            source = orjson.loads(next(lines)) if verb == "index" else None
            status = self._act(verb, about, source, refuse=some and number % 2 == 0)
            result: Obj = {"_index": about["_index"], "_id": about["_id"], "status": status}
            if status in (429, 400):
                result["error"] = {"type": "rejected_execution_exception", "reason": "queue is full"}
            items.append({verb: result})
        self.bulks.append(len(items))
        failed = any(item[verb]["status"] >= 300 for item in items for verb in item)
        return web.json_response({"took": 1, "errors": failed, "items": items})

    def _act(self, verb: str, about: Obj, source: Obj | None, *, refuse: bool) -> int:
        if refuse:
            return 429
        if about["_id"] in self.rejected:
            return 400
        documents = self.indexes.setdefault(about["_index"], {})
        if verb == "delete":
            return 200 if documents.pop(about["_id"], None) is not None else 404
        assert source is not None
        new = about["_id"] not in documents
        documents[about["_id"]] = source
        return 201 if new else 200

    async def _search(self, request: web.Request) -> web.Response:
        name = request.match_info["index"]
        if name not in self.indexes:
            return web.json_response({"error": {"type": "index_not_found_exception"}, "status": 404}, status=404)
        scroll = f"scroll-{next(self._numbers)}"
        self._scrolls[scroll] = list(self._refreshed.get(name, {}).items())
        return self._page(scroll, int(request.query["size"]))

    async def _refresh(self, request: web.Request) -> web.Response:
        """Until then searches do not find what was written."""
        name = request.match_info["index"]
        self._refreshed[name] = dict(self.indexes[name])
        return web.json_response({"_shards": {"successful": 1}})

    async def _scroll(self, request: web.Request) -> web.Response:
        return self._page((await request.json())["scroll_id"], 2)

    def _page(self, scroll: str, size: int) -> web.Response:
        rest = self._scrolls[scroll]
        self._scrolls[scroll] = rest[size:]
        hits = [{"_id": uid, "_source": source} for uid, source in rest[:size]]
        return web.json_response({"_scroll_id": scroll, "hits": {"hits": hits}})

    async def _clear(self, request: web.Request) -> web.Response:
        for scroll in (await request.json())["scroll_id"]:
            del self._scrolls[scroll]
        return web.json_response({"succeeded": True})

    @property
    def open_scrolls(self) -> int:
        return len(self._scrolls)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._gate], client_max_size=1 << 30)
        app.router.add_get("/", self._info)
        app.router.add_post("/_bulk", self._bulk)
        app.router.add_post("/_search/scroll", self._scroll)
        app.router.add_delete("/_search/scroll", self._clear)
        app.router.add_put("/{index}", self._create)
        app.router.add_post("/{index}/_search", self._search)
        app.router.add_post("/{index}/_refresh", self._refresh)
        return app


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@asynccontextmanager
async def opensearch(
    *, user: str = "", password: str = "", tls: ssl.SSLContext | None = None
) -> AsyncIterator[OpenSearchServer]:
    made = OpenSearchServer(user=user, password=password)
    server = TestServer(made.application())
    await server.start_server(ssl=tls)
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    try:
        yield made
    finally:
        await server.close()
