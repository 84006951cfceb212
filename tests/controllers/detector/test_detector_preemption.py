"""Policies take templates away from each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from karmada.controllers.context import Context
from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.cases import cases
from tests.support.control_plane import running
from tests.support.propagation import (
    BINDINGS,
    CLUSTER_POLICIES,
    POLICIES,
    Propagation,
    cluster_policy,
    config_map,
    placed,
    policy,
    selecting,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = selecting("ConfigMap")
BY_NAME = selecting("ConfigMap", name="settings")


def parts(context: Context) -> list[Reconciler]:
    context.gates.set("PropagationPolicyPreemption=true")
    return detector_parts(context, Interpreter())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def preempting_plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, parts) as control_plane:
        yield Propagation(control_plane)


@pytest_asyncio.fixture(loop_scope="module")
async def preempting(preempting_plane: Propagation) -> AsyncIterator[Propagation]:
    await preempting_plane.clear()
    yield preempting_plane


def taking(name: str, priority: int, **spec: Any) -> Obj:
    return policy(name, BY_NAME, priority=priority, preemption="Always", placement=placed("m2"), **spec)


def taking_widely(name: str, priority: int) -> Obj:
    selector = {**BY_NAME, "namespace": "default"}
    return cluster_policy(name, selector, priority=priority, preemption="Always", placement=placed("m2"))


@cases(
    (
        policy("old", ALL, priority=1),
        taking("new", 2),
        "default/new",
        "Propagation policy(default/new) preempted propagation policy(default/old) successfully",
    ),
    (policy("old", ALL, priority=2), taking("new", 2), "default/old", None),
    (policy("old", ALL, priority=3), taking("new", 2), "default/old", None),
    (
        cluster_policy("old", ALL, priority=9),
        taking("new", 0),
        "default/new",
        "Propagation policy(default/new) preempted cluster propagation policy(old) successfully",
    ),
    (
        cluster_policy("old", ALL, priority=1),
        taking_widely("new", 2),
        "new",
        "Cluster propagation policy(new) preempted cluster propagation policy(old) successfully",
    ),
    (cluster_policy("old", ALL, priority=2), taking_widely("new", 2), "old", None),
    (policy("old", ALL, priority=1), taking_widely("new", 2), "default/old", None),
    (policy("old", ALL, priority=1), policy("new", BY_NAME, priority=2), "default/old", None),
)
async def test_who_takes_what(
    first: Obj, second: Obj, winner: str, emitted: str | None, preempting: Propagation
) -> None:
    await preempting.apply(config_map(), first)
    await preempting.apply(second)
    assert await preempting.claim(CONFIG_MAPS, "settings") == winner
    assert await preempting.claim(BINDINGS, "settings-configmap") == winner
    expected = ["m2"] if emitted else ["m1"]
    assert await preempting.clusters("settings-configmap") == expected
    events = [(kind, text) for kind, reason, text in await preempting.events("settings") if "Preempt" in reason]
    assert events == ([("Normal", emitted)] if emitted else [])


async def test_nobody_takes_anything_while_the_feature_is_off(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("old", ALL))
    await plane.apply(taking("new", 9))
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/old"


async def test_a_lazy_policy_takes_the_claim_and_waits_with_the_rest(preempting: Propagation) -> None:
    await preempting.apply(config_map(), policy("old", ALL))
    await preempting.apply(taking("new", 9, activationPreference="Lazy"))
    assert await preempting.claim(CONFIG_MAPS, "settings") == "default/new"
    assert await preempting.claim(BINDINGS, "settings-configmap") == "default/old"
    await preempting.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert await preempting.claim(BINDINGS, "settings-configmap") == "default/new"


@cases(1, 3)
async def test_when_a_priority_falls_the_highest_of_those_below_it_takes(lowered: int, preempting: Propagation) -> None:
    await preempting.apply(policy("top", ALL, priority=9), config_map())
    await preempting.apply(taking("low", 2), taking("high", 5), taking("middle", 4))
    assert await preempting.claim(CONFIG_MAPS, "settings") == "default/top"
    await preempting.change(POLICIES, "top", {"spec": {"priority": lowered}})
    assert await preempting.claim(CONFIG_MAPS, "settings") == "default/high"


async def test_cluster_policies_follow_a_falling_priority_too(preempting: Propagation) -> None:
    await preempting.apply(cluster_policy("top", ALL, priority=9), config_map())
    await preempting.apply(taking_widely("next", 5))
    assert await preempting.claim(CONFIG_MAPS, "settings") == "top"
    await preempting.change(CLUSTER_POLICIES, "top", {"spec": {"priority": 1}}, "")
    assert await preempting.claim(CONFIG_MAPS, "settings") == "next"


async def test_a_template_that_is_not_there_or_on_its_way_out_is_nothing_to_take(preempting: Propagation) -> None:
    await preempting.apply(config_map(finalizers=["test.io/hold"]), policy("old", ALL))
    await preempting.delete(CONFIG_MAPS, "settings")
    await preempting.apply(taking("new", 9, resourceSelectors=[BY_NAME, selecting("ConfigMap", name="none")]))
    assert await preempting.claim(CONFIG_MAPS, "settings") == "default/old"
