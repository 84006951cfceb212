"""An admission webhook on loopback: a real TLS server whose verdict a test sets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.integration.samples import ok
from tests.support.tls_backend import TlsBackend, authority
from tests.support.wire import Http

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
Verdict = dict[str, Any]


class Hook:
    """`verdict` gets the AdmissionRequest and gives the members of the response, or None: never answer."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.verdict: Callable[[Any], Verdict | None] = lambda _request: {"allowed": True}
        self._backend = TlsBackend()
        self._backend.handler = self._serve
        self._released = asyncio.Event()

    async def __aenter__(self) -> Hook:
        await self._backend.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._released.set()
        await self._backend.__aexit__()

    @property
    def port(self) -> int:
        return self._backend.port

    async def _serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        request = json.loads(await raw.read())["request"]
        self.seen.append(request)
        verdict = self.verdict(request)
        if verdict is None:
            await self._released.wait()
            verdict = {"allowed": True}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response(review | {"response": {"uid": request["uid"], **verdict}})

    async def install(self, http: Http, kind: str, resources: list[str], **more: Any) -> None:
        """`kind` is "mutating" or "validating"."""
        webhook = {
            "name": "hook.example.io",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/check",
                "caBundle": base64.b64encode(authority().cert_pem).decode(),
            },
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            **more,
        }
        body = {"metadata": {"name": f"{kind}-hook"}, "webhooks": [webhook]}
        ok(await http("POST", f"{CONFIGURATIONS}{kind}webhookconfigurations", body), 201)


def patching(*operations: Any) -> Verdict:
    """A verdict that lets through with changes."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}
