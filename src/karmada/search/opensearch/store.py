"""One OpenSearch, through its Python client: the few requests that are sent to it, and what its errors mean.

The client is a package that only users of OpenSearch install. It is imported and connected by the first request, with
the credentials that the Secret has then; a refusal of them makes the next request read the Secret again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from karmada.kube.client.tls import client_context
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj
from karmada.search.opensearch.documents import INDEX, index_name
from karmada.search.opensearch.routes import Destination

SECONDS: Final = 30
PAGE: Final = 1_000
SCROLL: Final = "2m"
MISSING: Final = (
    "a ResourceRegistry names an OpenSearch, but the package opensearch-py is not installed: "
    "pip install 'pykarmada[opensearch]'"
)
ReadSecret = Callable[[str, str], Awaitable[Obj]]
"""(namespace, name) → the Secret; NotFound."""


class Unavailable(Exception):
    """It could not be reached, or refused a request as a whole; it makes sense to try again later."""

    def __init__(self, message: str, status: object = None) -> None:
        super().__init__(message)
        self.status = status


class Action(NamedTuple):
    """Index a document, or (None) delete it."""

    into: str
    id: str
    document: bytes | None


class Refused(NamedTuple):
    """An action that was not done; `again` if it may be later."""

    action: Action
    again: bool
    why: str


class Store:
    def __init__(self, destination: Destination, secret: ReadSecret) -> None:
        self.destination = destination
        self._secret = secret
        self._client: Any = None
        self._made: set[str] = set()
        self._connecting = asyncio.Lock()

    async def ensure(self, kind: str) -> str:
        """Return the index of a kind, which is made unless it is there."""
        name = index_name(kind)
        if name not in self._made:
            await self._request(lambda client: _create(client, name))
            self._made.add(name)
        return name

    async def bulk(self, actions: Sequence[Action]) -> list[Refused]:
        """Send changes; return those that were not done."""
        body = b"".join(_lines(action) for action in actions)
        try:
            response = await self._request(lambda client: client.bulk(body=body))
        except Unavailable as error:
            if error.status != 413:
                raise
            if len(actions) == 1:
                return [Refused(actions[0], False, str(error))]
            half = len(actions) // 2
            return [*await self.bulk(actions[:half]), *await self.bulk(actions[half:])]
        return [
            Refused(action, status == 429 or status >= 500, _why(result))
            for action, item in zip(actions, response["items"], strict=True)
            for result in item.values()
            if (status := int(result.get("status", 500))) >= 300 and not (action.document is None and status == 404)
        ]

    async def scan(self, index: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield the ids of all documents, with the fields that say which cluster they are of.

        Searches find what was written before the last refresh, by default a second ago; so there is one first.
        """
        await self._request(lambda client: client.indices.refresh(index=index))
        body = {"query": {"match_all": {}}, "sort": ["_doc"], "_source": ["apiVersion", "metadata.annotations"]}
        page = await self._request(lambda client: client.search(index=index, body=body, scroll=SCROLL, size=PAGE))
        while page["hits"]["hits"]:
            for hit in page["hits"]["hits"]:
                yield hit["_id"], hit.get("_source")
            more = {"scroll_id": page["_scroll_id"], "scroll": SCROLL}
            page = await self._request(lambda client, more=more: client.scroll(body=more))  # type: ignore[misc]
        if "_scroll_id" in page:
            done = {"scroll_id": [page["_scroll_id"]]}
            await self._request(lambda client: client.clear_scroll(body=done))

    async def close(self) -> None:
        client, self._client = self._client, None
        self._made.clear()
        if client is not None:
            await client.close()

    async def _request(self, send: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            from opensearchpy import exceptions
        except ImportError as error:
            raise Unavailable(MISSING) from error
        try:
            return await send(await self._connected())
        except exceptions.TransportError as error:
            self._made.clear()  # when it is back, it may be another one
            if error.status_code in (401, 403):
                await self.close()
            raise Unavailable(_short(error), error.status_code) from error
        except (exceptions.OpenSearchException, exceptions.ImproperlyConfigured, OSError, ValueError) as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from error

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None:
                client = await self._connect()
                try:
                    await client.info()
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            return self._client

    async def _connect(self) -> Any:
        from opensearchpy import AsyncOpenSearch

        logging.getLogger("opensearch").setLevel(logging.CRITICAL)  # it logs documents; errors are reported here
        secret = await self._read_secret()
        user = secret.get("username") or secret.get("userName") or ""
        given: dict[str, Any] = {"http_auth": (user, secret.get("password") or "")} if user else {}
        authority = secret.get("caBundle") or secret.get("ca.crt")
        if authority and any(address.startswith("https:") for address in self.destination.addresses):
            given["ssl_context"] = client_context(authority.encode(), b"", b"", insecure=False)
        nodes = list(self.destination.addresses)
        return AsyncOpenSearch(nodes, timeout=SECONDS, max_retries=len(nodes) - 1, http_compress=True, **given)

    async def _read_secret(self) -> dict[str, str]:
        """Return nothing where there is none: an OpenSearch may be open to all."""
        namespace, name = self.destination.secret_namespace, self.destination.secret_name
        if not name:
            return {}
        try:
            secret = await self._secret(namespace, name)
        except NotFound:
            return {}
        except ApiError as error:
            raise Unavailable(f"the Secret {namespace}/{name} cannot be read: {error}") from error
        return {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}


async def _create(client: Any, name: str) -> None:
    from opensearchpy.exceptions import RequestError

    try:
        await client.indices.create(index=name, body=INDEX)
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


def _lines(action: Action) -> bytes:
    head = orjson.dumps({("delete" if action.document is None else "index"): {"_index": action.into, "_id": action.id}})
    return head + b"\n" if action.document is None else b"%b\n%b\n" % (head, action.document)


def _why(result: Obj) -> str:
    error = result.get("error")
    return (
        f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error or result.get("result"))
    )


def _short(error: Any) -> str:
    """Without the body of the response, which may be anything."""
    return f"{error.status_code} {error.error}"[:500]
