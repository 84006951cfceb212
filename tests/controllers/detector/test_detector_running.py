"""The detector as a whole: over HTTPS, after a restart, and with many templates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from karmada.api.work import ResourceBinding
from karmada.components.assembly import Assembly
from karmada.controllers.context import Context, Settings
from karmada.controllers.detector import detector_parts
from karmada.controllers.detector.detector import DETECTOR, Detector
from karmada.controllers.templates import Ref
from karmada.interpreter.interpreter import Interpreter
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.control_plane import running
from tests.support.eventually import eventually
from tests.support.propagation import BINDINGS, POLICIES, Propagation, config_map, deployment, placed
from tests.support.propagation import policy as a_policy


def parts(context: Context) -> Sequence[Reconciler]:
    return detector_parts(context, Interpreter())


async def test_it_works_over_https(folder: Path) -> None:
    async with running(folder, clock=RealClock()) as plane:
        remote = Client(HttpTransport(load_config(plane.server.kubeconfig)))
        assembly = Assembly(lambda _name: remote)
        assembly.add(parts(assembly.context))
        async with assembly.manager:
            bindings = plane.context.informers.of(ResourceBinding.gvr)
            await plane.client.create(DEPLOYMENTS, deployment("first"))
            await plane.client.create(POLICIES, a_policy())
            await plane.client.create(DEPLOYMENTS, deployment("second"))
            await eventually(lambda: len(bindings) == 2)
            await plane.client.patch(POLICIES, "pp", "default", {"spec": {"placement": placed("m2")}})
            wanted = placed("m2")
            await eventually(lambda: all(each["spec"]["placement"] == wanted for each in bindings.list()))
            await plane.client.delete(POLICIES, "pp", "default")
            await eventually(lambda: not any("annotations" in each["metadata"] for each in bindings.list()))
        await remote.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_after_a_restart_nothing_is_written_again(plane: Propagation) -> None:
    await plane.apply(*(deployment(f"d{number}") for number in range(5)), config_map("unclaimed"), a_policy())
    plane.writes.clear()
    async with plane.another(parts) as context:
        await plane.rest()
        assert plane.writes == []
        assert context.recorder("resource-detector").dropped == 0
        assert await plane.claim(DEPLOYMENTS, "d0") == "default/pp"
    assert len(await plane.events("d0")) == 2


async def test_changes_while_it_was_away_are_made_up_for(folder: Path) -> None:
    async with running(folder) as control_plane:
        plane = Propagation(control_plane)
        async with plane.another(parts):
            await plane.apply(deployment("kept"), deployment("left"), deployment("gone"), a_policy())
        await plane.change(DEPLOYMENTS, "kept", {"spec": {"replicas": 9}})
        await plane.change(POLICIES, "pp", {"spec": {"resourceSelectors": [_named("kept"), _named("gone")]}})
        await plane.delete(DEPLOYMENTS, "gone")
        async with plane.another(parts):
            await plane.rest()
            assert (await plane.get(BINDINGS, "kept-deployment"))["spec"]["replicas"] == 9
            assert await plane.claim(DEPLOYMENTS, "left") is None
            assert await plane.claim(BINDINGS, "left-deployment") is None


def _named(name: str) -> Obj:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


async def test_skipped_apis_are_a_setting(folder: Path) -> None:
    async with running(
        folder, parts, settings=Settings(skipped_propagating_apis="apps/v1/Deployment")
    ) as control_plane:
        plane = Propagation(control_plane)
        both = a_policy("pp", _named("nginx"), {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"})
        await plane.apply(deployment(), config_map(), both)
        assert await plane.claim(DEPLOYMENTS, "nginx") is None
        assert await plane.claim(CONFIG_MAPS, "settings") == "default/pp"


@pytest.mark.parametrize("one_policy", [True, False])
async def test_a_thousand_templates_cost_two_writes_each(folder: Path, one_policy: bool) -> None:
    """With one policy for all of them, or each with its own."""
    count = 1000
    async with running(folder, parts, clock=RealClock()) as plane:
        for number in range(count):
            await plane.client.create(DEPLOYMENTS, deployment(f"d{number}"))
        calls = _count_calls(plane.context.client.transport)
        bindings = plane.context.informers.of(ResourceBinding.gvr)
        controllers = plane.manager.controllers.values()
        detector = plane.manager.controllers[DETECTOR].reconciler
        assert isinstance(detector, Detector)
        templates = [Ref(GVK("apps", "v1", "Deployment"), "default", f"d{number}") for number in range(count)]
        await eventually(lambda: all(ref in detector.waiting for ref in templates))
        await eventually(lambda: all(controller.queue.idle for controller in controllers))
        started = time.perf_counter()
        if one_policy:
            await plane.client.create(POLICIES, a_policy())
        else:
            for number in range(count):
                await plane.client.create(POLICIES, a_policy(f"p{number}", _named(f"d{number}")))
        await eventually(lambda: len(bindings) == count)
        print(f"{count} templates bound in {time.perf_counter() - started:.2f} s")
        await eventually(lambda: all(controller.queue.idle for controller in controllers))
        assert calls == {"PATCH deployments": count, "POST resourcebindings": count}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_claim_that_the_informer_lacks_is_not_made_again(plane: Propagation) -> None:
    """The informers have no time to keep up here: the policy changes while its claims are still under way to them."""
    names = [f"d{number}" for number in range(100)]
    for name in names:
        await plane.client.create(DEPLOYMENTS, deployment(name))
    await plane.client.create(POLICIES, a_policy())
    for clusters in ("m2", "m3"):
        await plane.client.patch(POLICIES, "pp", "default", {"spec": {"placement": placed(clusters)}})
    await plane.rest()
    assert sorted(write for write in plane.writes if "deployments" in write) == sorted(
        f"PATCH deployments {name}" for name in names
    )
    assert [await plane.clusters(f"{name}-deployment") for name in names] == [["m3"]] * len(names)


def _count_calls(transport: Any) -> Counter[str]:
    """Requests by verb and resource, without events and discovery."""
    counts: Counter[str] = Counter()
    call = transport.call

    async def counted(request: Any) -> Any:
        segments = request.path.split("/")
        if "events" not in segments and len(segments) > 4:
            counts[f"{request.method} {segments[-1 if request.method == 'POST' else -2]}"] += 1
        return await call(request)

    transport.call = counted
    return counts
