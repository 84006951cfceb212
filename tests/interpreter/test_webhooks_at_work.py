"""Webhooks that users run are what the controllers use; what goes wrong is shown, and loses nothing."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Awaitable, Callable, Container
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from examples.interpreter_webhook.server import PATH, interpret
from karmada.api.config import ResourceInterpreterWebhookConfiguration
from karmada.controllers.execution.controller import Execution
from karmada.interpreter.operations import OPERATIONS
from karmada.interpreter.webhook_server import answer
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import events
from karmada.kube.server.auth.pki import SERVER_USAGES
from tests.interpreter.workloads import CUSTOMIZATIONS, MEMBERS, WORKLOADS, CustomKinds, customization, played, workload
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.propagation import config_map
from tests.support.tls_backend import TlsBackend, authority

CONFIGURATIONS = ResourceInterpreterWebhookConfiguration.gvr
ROOT = Path(__file__).parents[2]


def configuration(port: int, kind: str = "Workload", **more: Any) -> Obj:
    ca = base64.b64encode(authority().cert_pem).decode()
    group = "workload.example.io" if kind == "Workload" else "apps"
    rule = {"operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "kinds": [kind]}
    return kube_object(CONFIGURATIONS.api_version, "ResourceInterpreterWebhookConfiguration", "examples") | {
        "webhooks": [
            {
                "name": "workloads.example.com",
                "rules": [rule],
                "clientConfig": {"url": f"https://127.0.0.1:{port}{PATH}", "caBundle": ca},
                "interpreterContextVersions": ["v1alpha1"],
                **more,
            }
        ],
    }


async def until(kinds: CustomKinds, condition: Callable[[], Awaitable[Any]]) -> Any:
    """Time of the fleet passes while calls are awaited, which take their own."""

    async def look() -> Any:
        await kinds.fleet.run(2)
        return await condition()

    return await eventually(look)


async def replicas_in(kinds: CustomKinds, member: str, name: str = "app") -> int | None:
    try:
        found: int = (await kinds.in_member(member, name))["spec"]["replicas"]
    except NotFound:
        return None
    return found


async def until_replicas(kinds: CustomKinds, expected: int) -> None:
    await until(kinds, lambda: _is(replicas_in(kinds, "m1"), expected))


async def until_message(kinds: CustomKinds, reason: str, text: str, namespace: str = "default") -> None:
    """Until there is an event of this reason with this text in it."""

    async def emitted() -> bool:
        events = (await kinds.client.list_all(GVR("", "v1", "events"), namespace)).items
        return any(event["reason"] == reason and text in event["message"] for event in events)

    await until(kinds, emitted)


class ExampleServer:
    """The example, as a process."""

    def __init__(self, folder: Path) -> None:
        self._certificates = folder / "certs"
        self._certificates.mkdir()
        pair = authority().issue("hook", sans=("127.0.0.1",), usages=SERVER_USAGES)
        (self._certificates / "tls.key").write_bytes(pair.key_pem)
        (self._certificates / "tls.crt").write_bytes(pair.cert_pem)
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, str(ROOT / "examples/interpreter_webhook/server.py"), "--bind-address", "127.0.0.1"]
        command += ["--secure-port", str(self.port), "--cert-dir", str(self._certificates)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.port = int(line.split(":")[-1].split("/")[0])

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(30) == 0


@pytest.mark.e2e
def test_a_workload_is_propagated_through_a_webhook_that_comes_and_goes(tmp_path: Path) -> None:
    server = ExampleServer(tmp_path)
    server.start()

    async def scenario(kinds: CustomKinds) -> None:
        await kinds.client.create(CONFIG_MAPS, config_map("settings"))
        container = {"name": "main", "envFrom": [{"configMapRef": {"name": "settings"}}]}
        template = {"spec": {"containers": [container]}}
        await kinds.propagate(workload(replicas=4, template=template), propagateDeps=True)
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 4, "nobody knows what replicas are"

        await kinds.client.create(CONFIGURATIONS, configuration(server.port))
        await until_replicas(kinds, 2)
        await until(kinds, lambda: kinds.fleet.members["m2"].client.list_all(CONFIG_MAPS, "default"))
        binding = await kinds.binding()
        assert binding["spec"]["replicas"] == 4
        assert {target["name"]: target["replicas"] for target in binding["spec"]["clusters"]} == {"m1": 2, "m2": 2}

        await kinds.report("m1", {"readyReplicas": 2, "noise": "x"})
        await kinds.report("m2", {"readyReplicas": 1})
        await until(kinds, lambda: _is(kinds.health(), {"m1": "Healthy", "m2": "Unhealthy"}))
        await until(kinds, lambda: _is(_status(kinds), {"readyReplicas": 3}))

        await kinds.fleet.members["m1"].client.patch(WORKLOADS, "app", "default", {"spec": {"paused": True}})
        server.stop()
        await kinds.client.patch(WORKLOADS, "app", "default", {"spec": {"replicas": 6}})
        await until_message(kinds, "GetReplicasFailed", "connect: connection refused")
        assert await replicas_in(kinds, "m1") == 2, "the copy stays as it was"

        server.start()
        await until_replicas(kinds, 3)
        assert (await kinds.in_member("m1"))["spec"]["paused"] is True, "what the cluster decided is kept"

        await kinds.client.delete(CONFIGURATIONS, "examples")
        await until_replicas(kinds, 6)
        server.stop()

    played(tmp_path / "fleet", scenario)


async def _is(value: Awaitable[Any], expected: Any) -> bool:
    return bool(await value == expected)


async def _status(kinds: CustomKinds) -> Obj | None:
    return (await kinds.client.get(WORKLOADS, "app", "default")).get("status")


class Misbehaving:
    """The example's function behind a server that can do wrong."""

    def __init__(self) -> None:
        self.operations: set[tuple[str, str]] = set()
        self.how = "correct"
        self.hangs: Container[str] = OPERATIONS
        self.waiting = 0
        self.answering = asyncio.Event()

    async def __call__(self, raw: web.BaseRequest) -> web.Response:
        body = await raw.read()
        request = orjson.loads(body)["request"]
        self.operations.add((request["kind"]["kind"], request["operation"]))
        made = orjson.loads(await answer(interpret, body, "application/json"))
        response = made["response"]
        if self.how == "hanging" and request["operation"] in self.hangs:
            self.waiting += 1
            await self.answering.wait()
        elif self.how == "wrong uid":
            response["uid"] = "other"
        elif self.how == "unsuccessful":
            made["response"] = {"uid": request["uid"], "successful": False, "status": {"code": 403, "message": "no"}}
        elif self.how == "bad patch":
            patch = base64.b64encode(b'[{"op":"remove","path":"/spec/absent"}]').decode()
            response |= {"patch": patch, "patchType": "JSONPatch"}
        return web.Response(body=orjson.dumps(made))


FAILURES = {
    "hanging": ("GetReplicasFailed", "context deadline exceeded"),
    "wrong uid": ("GetReplicasFailed", 'got "other"'),
    "unsuccessful": ("GetReplicasFailed", "webhook call failed, get status code: 403, msg: no"),
    "bad patch": ("SyncWorkFailed", "the patch that webhook"),
}


def test_a_webhook_that_fails_is_reported_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_BURST", 10_000)  # retries by the fast clock use up what an object may have

    async def scenario(kinds: CustomKinds) -> None:
        async with TlsBackend() as backend:
            backend.handler = hook = Misbehaving()
            await kinds.client.create(CONFIGURATIONS, configuration(backend.port, timeoutSeconds=1))
            await kinds.propagate(workload(replicas=2))
            await until_replicas(kinds, 1)
            for share, (how, (reason, text)) in enumerate(FAILURES.items(), 2):
                hook.how = how
                await kinds.client.patch(WORKLOADS, "app", "default", {"spec": {"replicas": 2 * share}})
                await until_message(kinds, reason, text)
                assert await replicas_in(kinds, "m1") == share - 1, "the copy stays as it was"
                hook.how = "correct"
                hook.answering.set()
                await until_replicas(kinds, share)

            await kinds.report("m1", {"readyReplicas": 5})
            await until(kinds, lambda: _has_health(kinds, "Healthy"))
            hook.how = "unsuccessful"
            await kinds.report("m1", {"readyReplicas": 1})
            await until_message(kinds, "ReflectStatusFailed", "msg: no", "karmada-es-m1")
            hook.how = "correct"
            await until(kinds, lambda: _has_health(kinds, "Unhealthy"))

    played(tmp_path, scenario)


async def _has_health(kinds: CustomKinds, health: str, name: str = "app") -> bool:
    return (await kinds.health(name)).get("m1") == health


def test_a_script_has_precedence_and_only_matching_kinds_are_sent(tmp_path: Path) -> None:
    async def scenario(kinds: CustomKinds) -> None:
        async with TlsBackend() as backend:
            backend.handler = hook = Misbehaving()
            sick = "function InterpretHealth(obj) return false end"
            await kinds.client.create(CUSTOMIZATIONS, customization(healthInterpretation=sick))
            await kinds.client.create(CONFIGURATIONS, configuration(backend.port))
            await kinds.propagate(config_map("plain"), CONFIG_MAPS)
            await kinds.propagate(workload(replicas=2))
            await until_replicas(kinds, 1)
            await kinds.report("m1", {"readyReplicas": 1})
            await until(kinds, lambda: _is(_status(kinds), {"readyReplicas": 1}))
            assert (await kinds.health())["m1"] == "Unhealthy", "the script decides"
            sent = {operation for kind, operation in hook.operations if kind == "Workload"}
            assert {kind for kind, _ in hook.operations} == {"Workload"}
            assert sent >= {"InterpretReplica", "ReviseReplica", "InterpretStatus", "AggregateStatus"}
            assert "InterpretHealth" not in sent

            await kinds.client.delete(CUSTOMIZATIONS, "workload")
            await until(kinds, lambda: _has_health(kinds, "Healthy"))

    played(tmp_path, scenario)


def test_a_webhook_that_is_slow_does_not_hold_up_other_kinds(tmp_path: Path) -> None:
    async def scenario(kinds: CustomKinds) -> None:
        async with TlsBackend() as backend:
            backend.handler = hook = Misbehaving()
            hook.how = "hanging"
            await kinds.client.create(CONFIGURATIONS, configuration(backend.port, timeoutSeconds=30))
            workers = kinds.fleet.settings.concurrent_resource_template_syncs
            for number in range(2 * workers):
                await kinds.propagate(workload(f"app-{number}"))
            await eventually(lambda: hook.waiting >= workers)
            await kinds.propagate(config_map("plain"), CONFIG_MAPS)
            assert await kinds.in_member("m1", "plain", CONFIG_MAPS)
            hook.answering.set()
            await until(kinds, lambda: _is(replicas_in(kinds, "m1", f"app-{2 * workers - 1}"), 2))

    played(tmp_path, scenario)


def test_the_status_of_other_kinds_in_a_cluster_is_reported_while_a_webhook_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Execution, "workers", 4)
    works = 8

    async def scenario(kinds: CustomKinds) -> None:
        async with TlsBackend() as backend:
            backend.handler = hook = Misbehaving()
            hook.how, hook.hangs = "hanging", ("InterpretStatus", "InterpretHealth")
            await kinds.client.create(CONFIGURATIONS, configuration(backend.port, timeoutSeconds=30))
            for number in range(works):
                await kinds.propagate(workload(f"app-{number}"))
            await eventually(lambda: hook.waiting == len(MEMBERS))
            await kinds.propagate(config_map("plain"), CONFIG_MAPS)
            await until(kinds, lambda: _is(kinds.health("plain", "configmap"), dict.fromkeys(MEMBERS, "Healthy")))
            assert hook.waiting == len(MEMBERS), "one of four workers in each cluster"
            hook.answering.set()
            for number in range(works):
                await kinds.report("m1", {"readyReplicas": 2}, f"app-{number}")
            for number in range(works):
                await until(kinds, partial(_has_health, kinds, "Healthy", f"app-{number}"))

    played(tmp_path, scenario)
