"""Templates are claimed when they are created, where the policies are in the API server's process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes, Plugin
from tests.support.control_plane import running
from tests.support.propagation import (
    CLUSTER_POLICIES,
    POLICIES,
    Propagation,
    cluster_policy,
    config_map,
    deployment,
    placed,
    policy,
    selecting,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
KIND = GVK("apps", "v1", "Deployment")


class Between(Plugin):
    """Does something while a Deployment is being created: after its follow-up, before it is stored."""

    name = "Between"
    mutates = False

    def __init__(self) -> None:
        self.do: Callable[[], Awaitable[Any]] | None = None

    def handles(self, attributes: Attributes) -> bool:
        return attributes.group_resource == ("apps", "deployments") and attributes.operation == "CREATE"

    async def validate(self, _attributes: Attributes) -> None:
        do, self.do = self.do, None
        if do is not None:
            await do()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_plane(folder: Path) -> AsyncIterator[Propagation]:
    """The controllers are in the server's process."""
    async with running(folder, lambda context: detector_parts(context, Interpreter()), as_one=True) as control_plane:
        yield Propagation(control_plane)


@pytest.fixture
def between(plane: Propagation) -> Between:
    plugin = Between()
    plane.plane.server.admission.add(plugin)
    return plugin


async def test_the_create_of_a_template_has_its_claim(plane: Propagation) -> None:
    await plane.apply(policy())
    [made] = await plane.apply(deployment())
    assert made == await plane.get(DEPLOYMENTS, "nginx")
    assert await plane.claim(DEPLOYMENTS, "nginx") == "default/pp"
    binding = await plane.binding("nginx-deployment")
    assert binding is not None
    assert binding["spec"]["resource"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert [write for write in plane.writes if "policies" not in write] == ["POST resourcebindings nginx-deployment"]


def _comparable(template: Obj) -> Obj:
    """Without what names the object, counts writes and says when they were."""
    found = copy_json(template)
    for key in ("uid", "name", "resourceVersion", "generation", "creationTimestamp"):
        del found["metadata"][key]
    for entry in found["metadata"]["managedFields"]:
        del entry["time"]
    found["metadata"]["managedFields"].sort(key=lambda entry: entry["manager"])
    del found["spec"]["selector"], found["spec"]["template"]["metadata"]
    return found


@pytest.mark.parametrize("of", [policy, cluster_policy])
@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {"app": "web"}},
        {"annotations": {"note": "1"}},
        {"labels": {"app": "web"}, "annotations": {"note": "1"}},
    ],
)
async def test_it_is_the_claim_that_a_patch_makes(
    plane: Propagation, of: Callable[..., Obj], metadata: dict[str, Any]
) -> None:
    await plane.apply(of())
    await plane.apply(deployment("at-creation", **metadata))
    follow_ups = plane.plane.server.follow_ups
    writer = follow_ups.of(KIND)
    assert writer is not None
    follow_ups.unregister(KIND, writer)
    await plane.apply(deployment("by-patch", **metadata))
    follow_ups.register(KIND, writer)
    assert "PATCH deployments by-patch" in plane.writes
    assert "PATCH deployments at-creation" not in plane.writes
    made, patched = await plane.get(DEPLOYMENTS, "at-creation"), await plane.get(DEPLOYMENTS, "by-patch")
    assert _comparable(made) == _comparable(patched)


async def test_a_template_that_existed_before_its_policy_is_claimed_by_a_patch(plane: Propagation) -> None:
    await plane.apply(deployment())
    await plane.apply(policy())
    assert await plane.claim(DEPLOYMENTS, "nginx") == "default/pp"
    assert "PATCH deployments nginx" in plane.writes


async def test_a_policy_that_waits_for_its_overrides_claims_nothing(plane: Propagation) -> None:
    await plane.apply(policy("pp", selecting("ConfigMap"), dependentOverrides=["missing"]))
    [made] = await plane.apply(config_map())
    assert "labels" not in made["metadata"]
    assert await plane.claim(CONFIG_MAPS, "settings") is None


async def test_a_policy_that_comes_during_the_create_and_preempts_gets_the_template(
    plane: Propagation, between: Between
) -> None:
    await plane.apply(policy("low", placement=placed("m1")))
    better = policy("high", selecting(name="nginx"), placement=placed("m2"), priority=1, preemption="Always")

    async def add() -> None:
        await plane.client.create(POLICIES, better)
        await plane.rest()

    between.do = add
    await plane.client.create(DEPLOYMENTS, deployment())
    await plane.rest()
    assert await plane.claim(DEPLOYMENTS, "nginx") == "default/high"
    assert await plane.clusters("nginx-deployment") == ["m2"]


async def test_a_policy_that_selects_the_template_no_more_when_it_is_stored_does_not_keep_it(
    plane: Propagation, between: Between
) -> None:
    await plane.apply(policy("pp"))

    async def change() -> None:
        await plane.change(POLICIES, "pp", {"spec": {"resourceSelectors": [selecting("ConfigMap")]}})

    between.do = change
    await plane.client.create(DEPLOYMENTS, deployment())
    await plane.rest()
    assert await plane.claim(DEPLOYMENTS, "nginx") is None
    assert await plane.binding("nginx-deployment") is None


async def test_a_policy_that_is_deleted_during_the_create_does_not_keep_the_template(
    plane: Propagation, between: Between
) -> None:
    await plane.apply(cluster_policy("cpp"))

    async def delete() -> None:
        await plane.delete(CLUSTER_POLICIES, "cpp", "")

    between.do = delete
    await plane.client.create(DEPLOYMENTS, deployment())
    await plane.rest()
    assert await plane.claim(DEPLOYMENTS, "nginx") is None
