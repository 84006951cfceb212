"""Manifests and small requests that many tests of this room share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.support.custom_kinds import definition, version
from tests.support.eventually import LIMIT, eventually
from tests.support.objects import kube_object
from tests.support.rights import binding, user
from tests.support.wire import Answer, Http
from tests.support.workloads import one_container, workload

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
CONFIGMAPS, PODS, SERVICES, SECRETS = f"{CORE}/configmaps", f"{CORE}/pods", f"{CORE}/services", f"{CORE}/secrets"
DEPLOYMENTS = f"{APPS}/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.io/v1/namespaces/default/widgets"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def configmap(name: str = "c", data: dict[str, str] | None = None, **meta: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": {"a": "1"} if data is None else data,
    }


def editors(*names: str) -> Any:
    return binding("editors", *map(user, names), to="edit")


def deployment(name: str = "web", replicas: int = 2, image: str = "nginx:1", **meta: Any) -> Any:
    return workload("Deployment", name, replicas, one_container(image, "c"), **meta)


def pod(name: str = "p", node: str = "", labels: dict[str, str] | None = None, **meta: Any) -> Any:
    spec: Any = {"containers": [{"name": "c", "image": "nginx:1"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, **meta},
        "spec": spec,
    }


def widget(name: str = "w", spec: Any = None, **more: Any) -> Any:
    return kube_object("example.io/v1", "Widget", name, spec={"size": 1} if spec is None else spec, **more)


WIDGET_SCHEMA: Any = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "replicas": {"type": "integer"},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                    },
                },
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed may not change"}],
                },
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.replicas) || self.replicas <= self.size * 10", "message": "too many replicas"}
            ],
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}


def crd(*, subresources: bool = True, schema: Any = None, plural: str = "widgets", kind: str = "Widget") -> Any:
    more: Any = {}
    if subresources:
        more["subresources"] = {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        }
    made = version("v1", WIDGET_SCHEMA if schema is None else schema, **more)
    return definition("example.io", kind, made, plural=plural)


async def install(http: Http, definition: Any) -> None:
    """Create a CRD and wait until its objects are served."""
    ok(await http("POST", CRDS, definition), 201)
    names = definition["spec"]["names"]

    async def served() -> bool:
        return (await http("GET", f"/apis/{definition['spec']['group']}/v1/{names['plural']}")).code == 200

    await eventually(served)


def interleave(server: ApiServer) -> None:
    """Make every write to the store give way to other requests first, as a store on disk or on a network does."""
    write = server.store.write

    async def slow(*args: Any, **named: Any) -> int:
        await asyncio.sleep(0.002)
        return await write(*args, **named)

    server.store.write = slow  # type: ignore[method-assign]


def ok(answer: Answer, code: int = 200) -> Any:
    assert answer.code == code, answer.body
    return answer.json()


def refused(answer: Answer, code: int, reason: str, *parts: str) -> Any:
    """A Status with this code and reason whose message holds every one of `parts`."""
    status = answer.json()
    assert (answer.code, status["kind"], status["status"]) == (code, "Status", "Failure"), status
    assert (status["code"], status.get("reason", "")) == (code, reason), status
    for part in parts:
        assert part in status["message"], status["message"]
    return status


async def patch(http: Http, path: str, body: Any, kind: str = MERGE, query: str = "") -> Answer:
    return await http("PATCH", path + query, body, content_type=kind)


async def apply(http: Http, path: str, body: Any, manager: str = "me", query: str = "") -> Answer:
    return await http("PATCH", f"{path}?fieldManager={manager}{query}", body, content_type=APPLY)


async def revision(http: Http, path: str = CONFIGMAPS) -> str:
    """The resourceVersion of the whole server, as a list returns it: it rises with every stored write."""
    return str(ok(await http("GET", path))["metadata"]["resourceVersion"])


async def quiet_revision(http: Http) -> str:
    """The same once the server's own controllers have nothing more to write."""
    seen = [""]

    async def settled() -> bool:
        seen.append(await revision(http))
        await asyncio.sleep(0.03)
        return seen[-1] == await revision(http)

    await eventually(settled)
    return seen[-1]


@asynccontextmanager
async def watching(http: Http, path: str, since: str) -> AsyncIterator[Callable[[], Any]]:
    """A watch from `since`; the function it gives awaits the next event."""
    async with http.stream(f"{path}?watch=1&resourceVersion={since}") as response:
        assert response.status == 200

        async def following() -> Any:
            async with asyncio.timeout(LIMIT):
                return json.loads(await response.content.readline())

        yield following
