"""A server of webhooks with an answer for each path, and writes for admission to judge."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, Attributes
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from karmada.kube.server.auth.user import User
from tests.support.tls_backend import State, TlsBackend, authority, resource_of

CA = base64.b64encode(authority().cert_pem).decode()
Answer = Callable[[Obj], Any]


class Hooks:
    """A webhook server: one answer for each path, and the requests it got."""

    def __init__(self, backend: TlsBackend, state: State) -> None:
        self.port = backend.port
        self.state = state
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, Obj]] = []
        backend.handler = self._serve

    async def _serve(self, raw: web.BaseRequest) -> web.Response:
        review = orjson.loads(await raw.read())
        name = raw.path.strip("/")
        self.requests.append((name, review))
        answer = self.answers.get(name, allow)(review)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, web.Response):
            return answer
        return web.Response(body=orjson.dumps(answer))

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.requests]

    def hook(self, name: str, answer: Answer | None = None, **more: Any) -> Obj:
        if answer is not None:
            self.answers[name] = answer
        rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
        return {
            "name": f"{name}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{name}", "caBundle": CA},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [rule],
        } | more

    def configure(self, kind: str, name: str, *hooks: Obj) -> None:
        meta = {"name": name}
        self.state.put({"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
                        "metadata": meta, "webhooks": list(hooks)})  # fmt: skip


def respond(review: Obj, **response: Any) -> Obj:
    head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    return {**head, "response": {"uid": review["request"]["uid"], "allowed": True} | response}


def allow(review: Obj) -> Obj:
    return respond(review)


def patching(*operations: Obj) -> Answer:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda review: respond(review, patch=patch, patchType="JSONPatch")


def labelling(key: str, value: str = "yes") -> Answer:
    return patching({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


def config_map(**labels: str) -> Obj:
    meta = {"name": "settings", "namespace": "shop", "labels": {"app": "web", **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


def write(
    obj: Obj | None, operation: str = CREATE, old: Obj | None = None, subresource: str = "", dry_run: bool = False
) -> Attributes:
    one = obj or old
    assert one is not None
    meta = one["metadata"]
    user = User("ann", uid="7", groups=("devs",), extra={"team": ("a", "b")})
    return Attributes(
        operation, resource_of(one), subresource, meta.get("namespace", ""), meta["name"], obj, old, user,
        dry_run=dry_run, options=lambda: {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    )  # fmt: skip


async def run(plugin: MutatingWebhooks | ValidatingWebhooks, attributes: Attributes) -> Obj | None:
    if plugin.handles(attributes):
        await plugin.admit(attributes)
        await plugin.validate(attributes)
    return attributes.obj


async def refusal(plugin: MutatingWebhooks | ValidatingWebhooks, attributes: Attributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await run(plugin, attributes)
    return caught.value


def deployment(replicas: int) -> Obj:
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}}
