"""Lazy policies: what they change takes effect when a user changes the template."""

from __future__ import annotations

import pytest

from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from tests.support.propagation import POLICIES, Propagation, cluster_policy, config_map, placed, policy, selecting

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = selecting("ConfigMap")


def lazy(name: str = "lazy", *clusters: str) -> Obj:
    return policy(name, ALL, activationPreference="Lazy", placement=placed(*(clusters or ("m1",))))


async def test_a_template_that_comes_after_a_lazy_policy_is_propagated_at_once(plane: Propagation) -> None:
    await plane.apply(lazy())
    await plane.apply(config_map())
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_a_template_that_was_there_is_claimed_and_waits_for_its_user(plane: Propagation) -> None:
    await plane.apply(config_map())
    await plane.apply(lazy())
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/lazy"
    assert plane.writes == ["PATCH configmaps settings"]
    await plane.change(CONFIG_MAPS, "settings", {"metadata": {"annotations": {"work.karmada.io/x": "ours"}}})
    assert await plane.binding("settings-configmap") is None
    await plane.change(CONFIG_MAPS, "settings", {"metadata": {"labels": {"mine": "x"}}})
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_it_is_the_same_with_a_cluster_policy(plane: Propagation) -> None:
    await plane.apply(config_map())
    await plane.apply(cluster_policy("wide", ALL, activationPreference="Lazy"))
    assert await plane.claim(CONFIG_MAPS, "settings") == "wide"
    assert await plane.binding("settings-configmap") is None
    await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_a_changed_lazy_policy_waits_for_a_change_of_the_template(plane: Propagation) -> None:
    await plane.apply(lazy())
    await plane.apply(config_map())
    plane.writes.clear()
    await plane.change(POLICIES, "lazy", {"spec": {"placement": placed("m2")}})
    assert plane.writes == []
    await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert await plane.clusters("settings-configmap") == ["m2"]


async def test_a_policy_that_is_lazy_no_longer_takes_effect_at_once(plane: Propagation) -> None:
    await plane.apply(config_map())
    await plane.apply(lazy())
    await plane.change(POLICIES, "lazy", {"spec": {"activationPreference": None}})
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_a_deleted_lazy_policy_leaves_everything_as_it_is(plane: Propagation) -> None:
    await plane.apply(lazy())
    await plane.apply(config_map())
    await plane.delete(POLICIES, "lazy")
    assert await plane.claim(CONFIG_MAPS, "settings") is None
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_what_waits_takes_effect_when_the_controllers_start_again(plane: Propagation) -> None:
    await plane.apply(config_map())
    await plane.apply(lazy())
    assert await plane.binding("settings-configmap") is None
    async with plane.another(lambda context: detector_parts(context, Interpreter())):
        await plane.rest()
    assert await plane.clusters("settings-configmap") == ["m1"]
