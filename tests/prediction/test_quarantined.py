"""What controllers leave alone of a resource, found by the objects of its way."""

from __future__ import annotations

from karmada.api.quarantine import to_map
from karmada.api.well_known import POLICY_NAME, execution_namespace, work_name
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.quarantine import WHOLE, Entry
from karmada.prediction.quarantined import of_binding
from karmada.prediction.world import World
from tests.support.cases import cases
from tests.support.objects import kube_object

BINDING = {
    "kind": "ResourceBinding",
    "metadata": {"name": "web-deployment", "namespace": "shop", "annotations": {POLICY_NAME: "all"}},
    "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}},
}


@cases(
    (kube_object("work.karmada.io/v1alpha2", "ResourceBinding", "web-deployment", "shop"), True),
    (kube_object("apps/v1", "Deployment", "web", "shop"), True),
    (kube_object("policy.karmada.io/v1alpha1", "PropagationPolicy", "all", "shop"), True),
    (
        kube_object(
            "work.karmada.io/v1alpha1", "Work", work_name("Deployment", "web", "shop"), execution_namespace("m1")
        ),
        True,
    ),
    (kube_object("apps/v1", "Deployment", "web", "other"), False),
    (kube_object("apps/v1", "StatefulSet", "web", "shop"), False),
    (kube_object("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "all"), False),
    ({}, False),
)
async def test_a_binding_is_concerned_by_what_is_on_its_way(entry: Obj, concerns: bool) -> None:
    world = World()
    world.put(CONFIG_MAPS, to_map(Entry(controller="some", key="key", object=entry)))
    assert bool(await of_binding(world, BINDING)) is concerns


async def test_a_whole_controller_concerns_every_binding() -> None:
    world = World()
    world.put(CONFIG_MAPS, to_map(Entry(controller="some", key=WHOLE, seconds=30)))
    (said,) = await of_binding(world, BINDING)
    assert said.startswith("some leaves all keys alone since ")
