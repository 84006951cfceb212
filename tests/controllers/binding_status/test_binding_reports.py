"""What a binding's status says of its Works, and the template's of its copies."""

from __future__ import annotations

import pytest

from karmada.api.work import ResourceBinding
from karmada.controllers.works import Works
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.support.fleet import Fleet, brief, condition, config_map, deployment, until

FULLY = ("True", "FullyAppliedSuccess", "All works have been successfully applied")
NOT_FULLY = ("False", "FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_binding_sums_up_its_works_and_the_template_too(two: Fleet) -> None:
    await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2, "m2": 2})
    binding = await two.until_applied("web-deployment")
    assert brief(binding, "FullyApplied") == FULLY
    assert binding["status"]["lastScheduledTime"]
    status = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1}
    for member in two.members.values():
        await member.client.patch(DEPLOYMENTS, "web", "default", {"status": status}, subresource="status")

    async def template() -> Obj | None:
        return await two.plane.get(DEPLOYMENTS, "web", "default")

    found = await until(template, lambda t: (t.get("status") or {}).get("readyReplicas") == 4)
    assert {k: found["status"][k] for k in ("replicas", "updatedReplicas", "availableReplicas")} == {
        "replicas": 4,
        "updatedReplicas": 4,
        "availableReplicas": 4,
    }
    assert meta.generation(found) == 1
    binding = await two.until_binding(
        "web-deployment", lambda b: all(i["health"] == "Healthy" for i in b["status"]["aggregatedStatus"])
    )
    assert [item["clusterName"] for item in binding["status"]["aggregatedStatus"]] == ["m1", "m2"]
    assert all(item["applied"] and item["status"]["replicas"] == 2 for item in binding["status"]["aggregatedStatus"])
    message = "Update ResourceBinding(default/web-deployment) with AggregatedStatus successfully."
    assert ("Normal", "AggregateStatusSucceed", message) in await two.events("web-deployment")
    message = "Update Resource with AggregatedStatus successfully."
    assert ("Normal", "AggregateStatusSucceed", message) in await two.events("web")


async def test_two_clusters_are_one_write_of_the_binding(two: Fleet) -> None:
    await two.propagate(CONFIG_MAPS, config_map("warm"), ["m1", "m2"])
    await two.until_applied("warm-configmap")
    await two.rest()
    seen: list[Obj] = []
    bindings = two.plane.context.informers.of(ResourceBinding.gvr)
    remove = bindings.add_handler(lambda _old, new: seen.append(new or {}))
    seen.clear()
    await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_applied("settings-configmap")
    await two.rest()
    remove()
    assert [condition(binding, "FullyApplied") for binding in seen] == ["", "", "True"]


async def test_a_cluster_that_does_not_report_does_not_hide_the_others(two: Fleet) -> None:
    await two.plane.set_ready("m2", "False")
    await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    binding = await two.until_binding("settings-configmap", lambda b: condition(b, "FullyApplied") == "False")
    assert brief(binding, "FullyApplied") == NOT_FULLY
    assert binding["status"]["aggregatedStatus"] == [
        {"clusterName": "m1", "applied": True, "health": "Healthy"},
        {"clusterName": "m2", "health": "Unknown"},
    ]
    await two.plane.set_ready("m2", "True")
    await two.until_applied("settings-configmap")


async def test_a_cluster_that_left_is_forgotten(two: Fleet) -> None:
    await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_applied("settings-configmap")
    await two.set_binding("settings-configmap", {"clusters": [{"name": "m1"}]})
    binding = await two.until_binding("settings-configmap", lambda b: len(b["status"]["aggregatedStatus"]) == 1)
    assert brief(binding, "FullyApplied") == FULLY
    await two.set_binding("settings-configmap", {"clusters": []})
    binding = await two.until_binding("settings-configmap", lambda b: not b["status"].get("aggregatedStatus"))
    assert brief(binding, "FullyApplied") == NOT_FULLY


async def test_conditions_of_others_survive(two: Fleet) -> None:
    template = await two.client.create(CONFIG_MAPS, config_map())
    await two.bind(template, ["m1"])
    scheduled = {
        "type": "Scheduled",
        "status": "True",
        "reason": "Success",
        "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    for attempt in range(20):
        await two.client.patch(
            ResourceBinding.gvr,
            "settings-configmap",
            "default",
            {"status": {"schedulerObservedGeneration": attempt}},
            subresource="status",
        )
    binding = await two.until_applied("settings-configmap")
    conditions = [*binding["status"]["conditions"], scheduled]
    await two.client.patch(
        ResourceBinding.gvr,
        "settings-configmap",
        "default",
        {"status": {"conditions": conditions}},
        subresource="status",
    )
    await two.set_binding("settings-configmap", {"clusters": [{"name": "m1"}, {"name": "m2"}]})
    binding = await two.until_binding("settings-configmap", lambda b: len(b["status"]["aggregatedStatus"]) == 2)
    assert condition(binding, "Scheduled") == "True"
    assert binding["status"]["schedulerObservedGeneration"] == 19


async def test_a_binding_nobody_has_scheduled_gets_no_verdict(two: Fleet) -> None:
    template = await two.client.create(CONFIG_MAPS, config_map())
    await two.bind(template, [])
    await two.rest()
    binding = await two.binding("settings-configmap")
    assert binding is not None
    assert not condition(binding, "FullyApplied")


async def test_the_binding_of_an_object_that_is_in_its_clusters_already_reports_at_once(two: Fleet) -> None:
    """Namespace sync makes the Works of namespaces before a policy may select them."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "early"}}
    template = await two.client.create(NAMESPACES, space)
    try:
        written = await Works(two.plane.context).ensure("m1", template)
        await two.until_work("m1", template, lambda work: condition(work, "Applied") == "True")
        await two.rest()
        await two.bind(template, ["m1"])
        binding = await two.until_applied("early-namespace", "")
        assert [item["clusterName"] for item in binding["status"]["aggregatedStatus"]] == ["m1"]
        assert (await two.until_work("m1", template))["metadata"]["uid"] == meta.uid(written.object)
    finally:
        await two.client.delete(NAMESPACES, "early")
