"""Send the requests of a case to a fresh server and keep the answers, parsed."""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
import string
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from karmada.kube.schema.yamlio import load_yaml
from karmada.kube.server.app import ApiServer
from tests.support.running import api_server
from tests.wire.cases import Case, WireRequest

_KEPT_HEADERS = ("Content-Type", "Retry-After", "Location", "Allow")
_REFERENCE = re.compile(r"<(\d+)\.([^<>]+)>")
_UNTIL_SECONDS = 20.0
_TOKEN = "wire"
_TYPES = {dict: "dict", list: "list", str: "str", bool: "bool", int: "int", float: "float", type(None): "NoneType"}


@asynccontextmanager
async def wire_server(certificates: Path) -> AsyncIterator[ApiServer]:
    """An API server on a free port with an empty store, whose administrator is called `admin`."""
    tokens = certificates / "tokens.csv"
    tokens.write_text(f'{_TOKEN},admin,,"system:masters"\n')
    async with api_server(certificates, token_file=tokens) as server:
        yield server


@asynccontextmanager
async def certificate_directory() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


async def answers_of(case: Case, certificates: Path) -> tuple[str, list[dict[str, Any]]]:
    """Run a case on a server of its own: the random name that `<id>` stood for, and the answers."""
    async with wire_server(certificates) as server, _Session(server) as session:
        if case.namespace:
            await session.make_namespace()
        for request in case.requests:
            await session.exchange(request)
        return session.id, session.answers


class _Session:
    """The requests of one case: each may refer to the answers before it."""

    def __init__(self, server: ApiServer) -> None:
        self._url = server.url
        self._tls = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
        self.id = random.choice(string.ascii_lowercase) + "".join(
            random.choices(string.ascii_lowercase + string.digits, k=5)
        )
        self.answers: list[dict[str, Any]] = []
        self._whole: list[Any] = []
        """Bodies before `pick`, for references."""

    async def __aenter__(self) -> _Session:
        self._http = aiohttp.ClientSession(skip_auto_headers=("User-Agent", "Accept", "Content-Type"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def make_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "<id>"}}
        await self._send(WireRequest("POST", "/api/v1/namespaces", body=body))
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            answer, _ = await self._repeat(WireRequest("GET", f"/api/v1/namespaces/<id>/{path}", until={"status": 200}))
            assert answer["status"] == 200, answer

    async def exchange(self, request: WireRequest) -> None:
        await asyncio.sleep(request.sleep)
        answer, whole = await self._repeat(request)
        self.answers.append(answer)
        self._whole.append(whole)

    async def _repeat(self, request: WireRequest) -> tuple[dict[str, Any], Any]:
        deadline = time.monotonic() + _UNTIL_SECONDS
        while True:
            answer, whole = await self._send(request)
            if request.until is None or _reached(request.until, answer["status"], whole):
                return answer, whole
            if time.monotonic() > deadline:
                return answer, whole
            await asyncio.sleep(0.05)

    async def _send(self, request: WireRequest) -> tuple[dict[str, Any], Any]:
        body = self._filled(request.body)
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        async with self._http.request(
            request.method,
            URL(self._url + self._filled(request.path), encoded=True),
            data=data,
            headers=self._headers(request, data),
            ssl=self._tls,
            allow_redirects=False,
        ) as response:
            raw = await response.read()
            streamed = request.watch and response.status == 200
            whole = _parsed(raw, response.headers.get("Content-Type", ""), streamed=streamed)
            headers: dict[str, Any] = {k: response.headers[k] for k in _KEPT_HEADERS if k in response.headers}
            if warnings := response.headers.getall("Warning", []):
                headers["Warning"] = warnings
            kept = _picked(whole, request.pick)
            if request.unordered:
                kept = sorted_causes(kept)
            return {"status": response.status, "headers": headers, "body": kept}, whole

    def _headers(self, request: WireRequest, data: bytes | None) -> list[tuple[str, str]]:
        headers: dict[str, Any] = {
            "Authorization": f"Bearer {_TOKEN}",
            "User-Agent": "wire/1.0",
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data is not None else {}),
            **request.headers,
        }
        lines = [(k, v if isinstance(v, list) else [v]) for k, v in headers.items() if v is not None]
        return [(name, self._filled(value)) for name, values in lines for value in values]

    def _filled(self, value: Any) -> Any:
        """A part of a request with its placeholders replaced."""
        if isinstance(value, dict):
            return {self._filled(k): self._filled(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._filled(entry) for entry in value]
        if not isinstance(value, str):
            return value
        return _REFERENCE.sub(self._referred, value.replace("<id>", self.id))

    def _referred(self, match: re.Match[str]) -> str:
        value = value_at(self._whole[int(match[1])], match[2])
        return "" if value is ABSENT else str(value)


ABSENT = "<absent>"


def value_at(body: Any, path: str) -> Any:
    """The value at a path of keys and list indexes joined by dots, or `<absent>`."""
    for step in path.split("."):
        if isinstance(body, list) and step.isdigit() and int(step) < len(body):
            body = body[int(step)]
        elif isinstance(body, dict) and step in body:
            body = body[step]
        else:
            return ABSENT
    return body


def _reached(until: dict[str, Any], status: int, body: Any) -> bool:
    if "status" in until:
        return bool(status == until["status"])
    if "absent" in until:
        return bool(value_at(body, until["absent"]) == ABSENT)
    return bool(value_at(body, until["path"]) == until["equals"])


def _parsed(raw: bytes, content_type: str, *, streamed: bool) -> Any:
    if "protobuf" in content_type or "cbor" in content_type:
        return "<binary>"
    if streamed and "json" in content_type:
        return [json.loads(line) for line in raw.splitlines() if line.strip()]
    if "json" in content_type and raw:
        return json.loads(raw)
    if "yaml" in content_type:
        return load_yaml(raw)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "<binary>"


def _picked(body: Any, pick: str) -> Any:
    """The part of a body that is compared; a refusal is compared whole where a part of a list was meant."""
    what, _, path = pick.partition(":")
    if what == "none":
        return "<not kept>"
    if what == "at":
        return value_at(body, path)
    if what == "keys":
        found = value_at(body, path) if path else body
        return sorted(found) if isinstance(found, dict) else found
    if not isinstance(body, dict):
        return body
    if what == "types":
        return {key: _TYPES[type(value)] for key, value in body.items()}
    if what == "names" and "items" in body:
        return [item["metadata"]["name"] for item in body["items"] or []]
    if what == "builtin":
        return _builtin(body)
    return body


def _builtin(body: dict[str, Any]) -> dict[str, Any]:
    def custom(entry: dict[str, Any]) -> bool:
        name = entry.get("name") or entry.get("metadata", {}).get("name") or ""
        return str(name).endswith((".example", ".example.com"))

    return {
        key: [entry for entry in value if not (isinstance(entry, dict) and custom(entry))]
        if key in {"groups", "items"}
        else value
        for key, value in body.items()
    }


def sorted_causes(body: Any) -> Any:
    """A refusal whose causes come in any order, with them sorted in `details` and in `message`."""
    if not isinstance(body, dict) or "causes" not in (body.get("details") or {}):
        return body
    causes = sorted(body["details"]["causes"], key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
    message = body.get("message", "")
    before, opening, listed = message.partition(": [")
    if opening and listed.endswith("]"):
        message = f"{before}: [{', '.join(sorted(_texts(listed[:-1], causes)))}]"
    return {**body, "message": message, "details": {**body["details"], "causes": causes}}


def _texts(listed: str, causes: list[dict[str, Any]]) -> list[str]:
    """The texts of the causes, if they are what the message lists; else the list as it is."""
    texts = [f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes]
    return texts if len(listed) == len(", ".join(texts)) else [listed]
