"""Interpreter webhooks: which one is called, what it is sent, and what of its response is accepted."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.lua.layer import Declarative
from karmada.interpreter.operations import InterpreterError
from karmada.interpreter.sources import Sources
from karmada.interpreter.webhook.calling import Calls
from karmada.interpreter.webhook.hooks import concerned_by
from karmada.interpreter.webhook.layer import Webhooks
from karmada.interpreter.webhook.services import Services
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.addresses.service_routing import Address, Unroutable
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.tls_backend import TlsBackend, authority, service, serving

WORKLOAD = GVK("workload.example.io", "v1alpha1", "Workload")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
CA = base64.b64encode(authority().cert_pem).decode()


def rule(operations: str = "*", groups: str = "*", versions: str = "*", kinds: str = "*") -> Obj:
    names = {"operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": kinds}
    return {name: text.split(",") for name, text in names.items()}


def hook(name: str = "w.example.com", *rules: Obj, **more: Any) -> Obj:
    config = {"url": "https://127.0.0.1:1/hook", "caBundle": CA}
    return {
        "name": name,
        "rules": list(rules) or [rule()],
        "clientConfig": config,
        "interpreterContextVersions": ["v1alpha1"],
        **more,
    }


def configuration(name: str, *hooks: Obj) -> Obj:
    return {"metadata": {"name": name}, "webhooks": list(hooks)}


def workload(**spec: Any) -> Obj:
    return kube_object("workload.example.io/v1alpha1", "Workload", "nginx", "default", spec={"replicas": 1, **spec})


class Answers:
    """A Post that records, and responds with fields of a response."""

    def __init__(self, **response: Any) -> None:
        self.response: Any = {"successful": True, **response}
        self.requests: list[Obj] = []
        self.called: list[str] = []

    async def __call__(self, hook: Any, body: bytes, /) -> Obj:
        sent = orjson.loads(body)
        assert (sent["kind"], sent["apiVersion"]) == ("ResourceInterpreterContext", "config.karmada.io/v1alpha1")
        self.called.append(hook.id)
        self.requests.append(sent["request"])
        if self.response is None:
            return {}
        return {"response": {"uid": sent["request"]["uid"], **self.response}}


def layer(post: Any, *configurations: Obj) -> Webhooks:
    made = Webhooks(post)
    made.load(configurations or [configuration("c", hook())])
    return made


def patch(*operations: Obj) -> Obj:
    return {"patch": base64.b64encode(orjson.dumps(list(operations))).decode(), "patchType": "JSONPatch"}


# matching


@cases(
    (rule(), WORKLOAD, True),
    (rule("InterpretHealth,Retain", "workload.example.io", "v1alpha1", "Workload"), WORKLOAD, True),
    (rule("Retain", "workload.example.io", "v1alpha1", "Workload"), WORKLOAD, False),
    (rule("*", "apps", "v1", "Deployment"), WORKLOAD, False),
    (rule("*", "*", "v2", "*"), WORKLOAD, False),
    (rule("*", "*", "*", "Workloads"), WORKLOAD, False),
    (rule("*", "", "v1", "Pod"), GVK("", "v1", "Pod"), True),
    (rule("*", "", "v1", "Pod"), WORKLOAD, False),
)
def test_a_rule_matches_operation_group_version_and_kind(made: Obj, gvk: GVK, matches: bool) -> None:
    webhooks = layer(Answers(), configuration("c", hook("w.example.com", rule("Prune"), made)))
    assert webhooks.enabled(gvk, "InterpretHealth") is matches


def test_a_configuration_concerns_the_kinds_of_its_rules() -> None:
    some = concerned_by(configuration("c", hook("w.example.com", rule("Retain", "apps", "v1", "Deployment"))))
    assert (some(DEPLOYMENT), some(WORKLOAD)) == (True, False)
    assert concerned_by(configuration("c", hook()))(WORKLOAD)
    assert not concerned_by(configuration("c"))(WORKLOAD)


async def test_of_several_webhooks_the_one_with_the_smallest_id_is_called() -> None:
    post = Answers(healthy=True)
    others = hook("a.example.com", rule("*", "apps"))
    webhooks = layer(post, configuration("b", hook("a.example.com")), configuration("a", hook("z.example.com"), others))
    assert await webhooks.interpret_health(workload())
    assert post.called == ["a/z.example.com"]


def test_before_configurations_are_known_nothing_is_interpreted() -> None:
    interpreter = Interpreter()
    Sources(NoInformers(), interpreter)  # type: ignore[arg-type]
    with pytest.raises(InterpreterError, match=r"^not yet ready to handle request$"):
        interpreter.enabled(WORKLOAD, "InterpretHealth")


async def test_a_script_comes_before_a_webhook_and_a_webhook_before_what_is_built_in() -> None:
    deployment = {**workload(), "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}}
    script = {"luaScript": "function InterpretHealth(o) return true end"}
    target = {"apiVersion": "apps/v1", "kind": "Deployment"}
    customizations = {"healthInterpretation": script}
    scripts = Declarative([{"metadata": {"name": "a"}, "spec": {"target": target, "customizations": customizations}}])
    post = Answers(healthy=False, replicas=7)
    webhooks = layer(post, configuration("c", hook("w.example.com", rule("*", "apps", "v1", "Deployment"))))
    interpreter = Interpreter([scripts, webhooks])
    assert await interpreter.interpret_health(deployment)
    assert (await interpreter.get_replicas(deployment)).replicas == 7
    assert [request["operation"] for request in post.requests] == ["InterpretReplica"]
    webhooks.load([])
    assert (await interpreter.get_replicas(deployment)).replicas == 3


# requests


async def test_a_request_has_the_object_and_what_the_operation_needs() -> None:
    post = Answers(replicas=1)
    webhooks = layer(post)
    desired, observed = workload(), workload(paused=True)
    await webhooks.get_replicas(desired)
    await webhooks.revise_replica(desired, 3)
    await webhooks.retain(desired, observed)
    await webhooks.aggregate_status(desired, [])
    await webhooks.aggregate_status(desired, [{"clusterName": "m1"}])
    uids = [request.pop("uid") for request in post.requests]
    assert len(set(uids)) == 5
    common = {
        "kind": {"group": "workload.example.io", "version": "v1alpha1", "kind": "Workload"},
        "name": "nginx",
        "namespace": "default",
        "object": desired,
        "replicas": 0,
    }
    assert post.requests == [
        {**common, "operation": "InterpretReplica"},
        {**common, "operation": "ReviseReplica", "replicas": 3},
        {**common, "operation": "Retain", "observedObject": observed},
        {**common, "operation": "AggregateStatus"},
        {**common, "operation": "AggregateStatus", "aggregatedStatus": [{"clusterName": "m1"}]},
    ]


# responses


async def test_what_a_webhook_returns_is_what_the_operation_returns() -> None:
    requirements = {"resourceRequest": {"cpu": "0.5", "memory": 1024}, "nodeClaim": {"nodeSelector": {"a": "b"}}}
    component = {"name": "main", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": 1}}}
    dependency = {"apiVersion": "v1", "kind": "Secret", "name": "b"}
    post = Answers(
        replicas=2,
        replicaRequirements=requirements,
        components=[component],
        dependencies=[dependency, dependency],
        rawStatus={"ready": 1},
        healthy=False,
    )
    webhooks = layer(post)
    replicas = await webhooks.get_replicas(workload())
    canonical = {"resourceRequest": {"cpu": "500m", "memory": "1024"}, "nodeClaim": {"nodeSelector": {"a": "b"}}}
    assert (replicas.replicas, replicas.requirements) == (2, canonical)
    assert await webhooks.get_components(workload()) == [
        {"name": "main", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}}
    ]
    assert await webhooks.get_dependencies(workload()) == [dependency, dependency]
    assert await webhooks.reflect_status(workload()) == {"ready": 1}
    assert await webhooks.interpret_health(workload()) is False


@cases(
    ({}, workload()),
    (patch(), workload()),
    (patch({"op": "add", "path": "/spec/paused", "value": True}), workload(paused=True)),
    (patch({"op": "replace", "path": "/spec/replicas", "value": 7}), workload(replicas=7)),
    (patch({"op": "add", "path": "/spec/list/-1", "value": 3}), workload(list=[1, 3])),
)
async def test_a_patch_is_applied_to_the_desired_object(response: Obj, expected: Obj) -> None:
    desired = workload(list=[1]) if "list" in expected["spec"] else workload()
    before = orjson.dumps(desired)
    assert await layer(Answers(**response)).retain(desired, workload(paused=False)) == expected
    assert orjson.dumps(desired) == before


INVALID = "received invalid webhook response: "
Operate = Callable[[Webhooks], Awaitable[Any]]
OPERATIONS: dict[str, Operate] = {
    "health": lambda webhooks: webhooks.interpret_health(workload()),
    "status": lambda webhooks: webhooks.reflect_status(workload()),
    "replicas": lambda webhooks: webhooks.get_replicas(workload()),
    "retain": lambda webhooks: webhooks.retain(workload(), workload()),
}


@cases(
    ("health", None, f"{INVALID}webhook response was absent"),
    ("health", {"uid": "other"}, INVALID + 'expected response.uid "UID", got "other"'),
    ("health", {}, f"{INVALID}webhook returned nil response.healthy"),
    ("status", {}, f"{INVALID}webhook returned nill response.rawStatus"),
    ("replicas", {}, f"{INVALID}webhook returned nil response.replicas"),
    (
        "replicas",
        {"replicas": "3"},
        "failed to call webhook: Expected `int | null`, got `str` - at `$.response.replicas`",
    ),
    (
        "health",
        {"successful": False},
        f"{INVALID}webhook require response.status when response.successful is false",
    ),
    (
        "health",
        {"successful": False, "status": {"code": 403, "message": "no"}},
        "webhook call failed, get status code: 403, msg: no",
    ),
    ("retain", {"patch": "W10="}, f"{INVALID}webhook returned nil response.patchType"),
    ("retain", {"patchType": "JSONPatch"}, f"{INVALID}webhook returned empty response.patch"),
    (
        "retain",
        {"patch": "W10=", "patchType": "Merge"},
        INVALID + 'webhook returned invalid response.patchType of "Merge"',
    ),
)
async def test_a_response_that_cannot_be_used_fails_the_operation(operation: str, response: Any, reason: str) -> None:
    post = Answers()
    post.response = response if response is None else {"successful": True, **response}
    with pytest.raises(InterpreterError) as failure:
        await OPERATIONS[operation](layer(post))
    prefix = 'Internal error occurred: failed calling webhook "c/w.example.com": '
    assert str(failure.value) == prefix + reason.replace("UID", post.requests[0]["uid"])


@cases(
    (patch({"op": "remove", "path": "/spec/absent"}), "does not exist"),
    (patch({"op": "add", "path": "/a/b", "value": 1}), "does not exist"),
    ({"patch": "e30=", "patchType": "JSONPatch"}, "a JSON patch must be an array of objects"),
    ({"patch": "!", "patchType": "JSONPatch"}, "it is no JSON patch in base64"),
    (patch({"op": "remove", "path": "/kind"}), "it leaves an object without a kind"),
)
async def test_a_patch_that_cannot_be_applied_fails_the_operation(response: Obj, reason: str) -> None:
    with pytest.raises(InterpreterError) as failure:
        await layer(Answers(**response)).retain(workload(), workload())
    assert 'the patch that webhook "c/w.example.com" returned cannot be applied' in str(failure.value)
    assert reason in str(failure.value)


async def test_references_that_are_not_fit_fail_the_operation() -> None:
    with pytest.raises(InterpreterError, match="dependency can not leave name and labelSelector all empty"):
        await layer(Answers(dependencies=[{"apiVersion": "v1", "kind": "Secret"}])).get_dependencies(workload())


async def test_a_webhook_of_unknown_versions_only_is_not_called() -> None:
    post = Answers()
    made = layer(post, configuration("c", hook(interpreterContextVersions=["v9"])))
    with pytest.raises(InterpreterError) as failure:
        await made.interpret_health(workload())
    reason = "webhook does not accept known ResourceInterpreterContext versions (v1alpha1)"
    assert str(failure.value).endswith(f"could not create ResourceInterpreterContext objects: {reason}")
    assert not post.called


# transport


class NoInformers:
    """Informers of these Services."""

    def __init__(self, *services: Obj) -> None:
        self._services = {Key(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in services}

    def of(self, _gvr: object) -> NoInformers:
        return self

    def start(self) -> None:
        pass

    async def wait_synced(self) -> None:
        pass

    def get(self, key: Key) -> Obj | None:
        return self._services.get(key)


def through(*services: Obj) -> Calls:
    return Calls(NoInformers(*services))  # type: ignore[arg-type]


async def healthy(raw: web.BaseRequest) -> web.Response:
    request = orjson.loads(await raw.read())["request"]
    answer = {"response": {"uid": request["uid"], "successful": True, "healthy": True}}
    return web.Response(body=orjson.dumps(answer), content_type="text/plain")


async def test_calls_are_posts_over_one_connection_with_a_deadline_and_no_credentials() -> None:
    seen: list[web.BaseRequest] = []

    async def handler(raw: web.BaseRequest) -> web.Response:
        seen.append(raw)
        return await healthy(raw)

    async with TlsBackend() as backend:
        backend.handler = handler
        calls = through()
        config = {"url": f"https://127.0.0.1:{backend.port}/hook", "caBundle": CA}
        webhooks = layer(calls.post, configuration("c", hook(clientConfig=config, timeoutSeconds=3)))
        assert await webhooks.interpret_health(workload())
        webhooks.load([configuration("c", hook(clientConfig=config))])
        assert await webhooks.interpret_health(workload())
        await calls.close()
    assert [raw.path_qs for raw in seen] == ["/hook?timeout=3s", "/hook?timeout=10s"]
    assert {raw.method for raw in seen} == {"POST"}
    assert seen[0].headers["Content-Type"] == "application/json"
    assert "Authorization" not in seen[0].headers
    assert len(backend.connections) == 1


async def test_a_service_is_called_by_its_name_at_its_address() -> None:
    hosts: list[str] = []

    async def handler(raw: web.BaseRequest) -> web.Response:
        hosts.append(raw.headers["Host"])
        return await healthy(raw)

    async with TlsBackend(serving("hook.tools.svc")) as backend:
        backend.handler = handler
        port = backend.port
        known = service("hook", "tools", type="ClusterIP", clusterIP="127.0.0.1", ports=[{"port": port}])
        calls = through(known)
        place = {"namespace": "tools", "name": "hook", "port": port, "path": "/hook"}
        config = {"service": place, "url": "https://127.0.0.1:1", "caBundle": CA}
        assert await layer(calls.post, configuration("c", hook(clientConfig=config))).interpret_health(workload())
        await calls.close()
        assert hosts == [f"hook.tools.svc:{port}"]


@cases(
    ({"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}, Address("10.0.0.1", 443)),
    ({"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 443}]}, Address("10.0.0.1", 443)),
    ({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [{"port": 443}]}, Address("10.0.0.1", 443)),
    ({"type": "ExternalName", "externalName": "hooks.example.com"}, Address("hooks.example.com", 443)),
    ({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}, 'no service port 443 found for service "hook"'),
    ({"clusterIP": "None", "ports": [{"port": 443}]}, 'cannot route to service with ClusterIP "None"'),
    ({"type": "Odd"}, 'unsupported service type "Odd"'),
    (None, Address("hook.tools.svc", 443)),
)
async def test_where_a_service_is_found(spec: Obj | None, expected: Address | str) -> None:
    known = [] if spec is None else [service("hook", "tools", **spec)]
    services = Services(NoInformers(*known))  # type: ignore[arg-type]
    await services.synced()
    if isinstance(expected, Address):
        assert await services.resolve("tools", "hook", 443) == expected
    else:
        with pytest.raises(Unroutable) as failure:
            await services.resolve("tools", "hook", 443)
        assert str(failure.value) == expected


@cases(
    ({"url": "https://127.0.0.1:1/x", "caBundle": CA}, "failed to call webhook: Post"),
    ({"url": "https://127.0.0.1:1/x", "caBundle": CA}, "connect: connection refused"),
    ({"url": "https://127.0.0.1:1/x", "caBundle": "bm9uZQ=="}, "could not get REST client: unable to load root"),
    ({"url": "https://127.0.0.1:1/x", "caBundle": "!"}, "could not get REST client: illegal base64 data"),
)
async def test_a_webhook_that_cannot_be_reached_fails_the_operation(config: Obj, reason: str) -> None:
    calls = through()
    with pytest.raises(InterpreterError) as failure:
        await layer(calls.post, configuration("c", hook(clientConfig=config))).interpret_health(workload())
    await calls.close()
    assert 'failed calling webhook "c/w.example.com"' in str(failure.value)
    assert reason in str(failure.value)


async def test_a_server_with_a_certificate_of_another_authority_is_not_called() -> None:
    async with TlsBackend() as backend:
        calls = through()
        other = base64.b64encode(authority("others").cert_pem).decode()
        config = {"url": f"https://127.0.0.1:{backend.port}/hook", "caBundle": other}
        with pytest.raises(InterpreterError, match="x509: certificate signed by unknown authority"):
            await layer(calls.post, configuration("c", hook(clientConfig=config))).interpret_health(workload())
        await calls.close()


@cases(
    (500, b"oops", "an error on the server"),
    (200, b"<html>", "json parse error"),
    (200, b"[]", "a JSON object is needed"),
)
async def test_a_response_that_is_none_fails_the_operation(status: int, body: bytes, reason: str) -> None:
    async def handler(_raw: web.BaseRequest) -> web.Response:
        return web.Response(status=status, body=body)

    async with TlsBackend() as backend:
        backend.handler = handler
        calls = through()
        config = {"url": f"https://127.0.0.1:{backend.port}/hook", "caBundle": CA}
        with pytest.raises(InterpreterError) as failure:
            await layer(calls.post, configuration("c", hook(clientConfig=config))).interpret_health(workload())
        await calls.close()
    assert "failed to call webhook: " in str(failure.value)
    assert reason in str(failure.value)


async def test_a_webhook_that_does_not_answer_holds_one_caller_and_recovers() -> None:
    answering = asyncio.Event()
    waiting = 0

    async def handler(raw: web.BaseRequest) -> web.Response:
        nonlocal waiting
        waiting += 1
        await answering.wait()
        return await healthy(raw)

    async with TlsBackend() as backend:
        backend.handler = handler
        calls = through()
        config = {"url": f"https://127.0.0.1:{backend.port}/hook", "caBundle": CA}
        webhooks = layer(calls.post, configuration("c", hook(clientConfig=config, timeoutSeconds=1)))
        with pytest.raises(InterpreterError, match=r'/hook": context deadline exceeded$'):
            await webhooks.interpret_health(workload())
        probe = asyncio.create_task(webhooks.interpret_health(workload()))
        await eventually(lambda: waiting == 2)
        with pytest.raises(InterpreterError, match="another call waits"):
            await webhooks.interpret_health(workload())
        assert waiting == 2
        answering.set()
        assert await probe
        assert all(await asyncio.gather(*(webhooks.interpret_health(workload()) for _ in range(3))))
        await calls.close()
