"""What comes back from members: status, health, and what somebody changed over there."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, JOBS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.support.eventually import eventually
from tests.support.fleet import Fleet, brief, condition, config_map, deployment, is_applied
from tests.support.objects import kube_object

RUNNING = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1}

pytestmark = pytest.mark.asyncio(loop_scope="module")


def report(work: Obj) -> Obj:
    reports = (work.get("status") or {}).get("manifestStatuses") or [{}]
    assert len(reports) == 1
    return dict(reports[0])


def followed(two: Fleet, cluster: str) -> set[GVR]:
    member = two.plane.context.members.known(cluster)
    return set() if member is None else {informer.gvr for informer in member.informers.all()}  # type: ignore[misc]


async def set_status(two: Fleet, cluster: str, gvr: GVR, name: str, status: Obj) -> None:
    await two.members[cluster].client.patch(gvr, name, "default", {"status": status}, subresource="status")


async def test_status_and_health_come_back(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    work = await two.until_work("m1", template, is_applied)
    assert report(work)["health"] == "Unhealthy"
    await set_status(two, "m1", DEPLOYMENTS, "web", RUNNING)
    work = await two.until_work("m1", template, lambda w: report(w)["health"] == "Healthy")
    found = report(work)
    assert found["identifier"] == {
        "ordinal": 0,
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "resource": "",
        "namespace": "default",
        "name": "web",
    }
    assert {key: found["status"][key] for key in ("replicas", "readyReplicas", "availableReplicas")} == {
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    name = meta.name(work)
    reflected = ("Normal", "ReflectStatusSucceed", "Reflect status for object(Deployment/default/web) succeed.")
    await two.until_event(name, reflected, "karmada-es-m1")
    for word in ("unhealthy", "healthy"):
        message = f"Interpret health of object(Deployment/default/web) as {word}."
        await two.until_event(name, ("Normal", "InterpretHealthSucceed", message), "karmada-es-m1")


async def test_what_nobody_can_judge_is_healthy_without_a_word(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    work = await two.until_work("m1", template, is_applied)
    identifier = {
        "ordinal": 0,
        "version": "v1",
        "kind": "ConfigMap",
        "resource": "",
        "namespace": "default",
        "name": "settings",
    }
    assert report(work) == {"identifier": identifier, "health": "Healthy"}
    assert not [
        event for event in await two.events(meta.name(work), "karmada-es-m1") if event[1].startswith("Interpret")
    ]


async def test_status_is_read_while_dispatching_is_suspended(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    await two.until_work("m1", template, is_applied)
    await two.set_binding("web-deployment", {"suspension": {"dispatching": True}})
    await two.until_work("m1", template, lambda w: condition(w, "Dispatching") == "False")
    await set_status(two, "m1", DEPLOYMENTS, "web", RUNNING)
    await two.until_work("m1", template, lambda w: report(w)["health"] == "Healthy")


async def test_a_deleted_object_comes_back(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_work("m1", template, is_applied)
    first = await member.until(CONFIG_MAPS, "settings")
    await two.rest()
    await member.client.delete(CONFIG_MAPS, "settings", "default")
    await member.until(CONFIG_MAPS, "settings", lambda c: meta.uid(c) != meta.uid(first))
    work = await two.until_work("m1", template, lambda w: brief(w, "Applied")[1] == "ReCreateSuccessful")
    assert brief(work, "Applied") == ("True", "ReCreateSuccessful", "Manifest has been successfully applied")


async def test_a_deleted_object_that_cannot_come_back_is_reported(two: Fleet) -> None:
    member = two.members["m1"]

    space = kube_object("v1", "Namespace", "shop")
    for client in (two.client, member.client):
        await client.create(NAMESPACES, space)
    template = await two.propagate(CONFIG_MAPS, config_map(namespace="shop"), ["m1"])
    await two.until_work("m1", template, is_applied)
    await two.rest()
    await member.client.delete(NAMESPACES, "shop")
    work = await two.until_work("m1", template, lambda w: condition(w, "Applied") == "False")
    assert brief(work, "Applied")[1] == "ReCreateFailed"
    await member.until_gone(NAMESPACES, "shop", namespace="")
    await member.client.create(NAMESPACES, space)
    await member.until(CONFIG_MAPS, "settings", namespace="shop")


async def test_edits_in_a_member_are_reverted(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    other = await two.propagate(CONFIG_MAPS, config_map(labels={"a": "1"}, annotations={"b": "1"}), ["m1"])
    for each in (template, other):
        await two.until_work("m1", each, is_applied)
    await two.rest()
    await member.client.patch(
        DEPLOYMENTS, "web", "default", {"spec": {"replicas": 9}, "metadata": {"labels": {"app": None}}}
    )
    await member.until(DEPLOYMENTS, "web", lambda d: d["spec"]["replicas"] == 2 and meta.labels(d)["app"] == "web")
    edit: Any = {"data": {"more": "x"}, "metadata": {"labels": {"a": "2"}, "annotations": {"b": None}}}
    await member.client.patch(CONFIG_MAPS, "settings", "default", edit)
    await member.until(
        CONFIG_MAPS,
        "settings",
        lambda c: c["data"] == {"a": "1"} and meta.labels(c)["a"] == "1" and meta.annotations(c)["b"] == "1",
    )


async def test_status_alone_is_no_reason_to_send_anything(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    await two.until_work("m1", template, is_applied)
    await two.rest()
    before = member.writes()
    mark = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}
    marked = await member.client.patch(DEPLOYMENTS, "web", "default", mark)
    await set_status(two, "m1", DEPLOYMENTS, "web", {**RUNNING, "observedGeneration": meta.generation(marked)})
    await two.until_work("m1", template, lambda w: report(w)["health"] == "Healthy")
    await two.rest()
    assert member.writes() == before


async def test_many_changes_at_once_are_few_writes(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    await two.until_work("m1", template, is_applied)
    await two.rest()
    works: list[str] = []
    informer = two.plane.context.informers.of(Work.gvr)
    remove = informer.add_handler(lambda _old, _new: works.append("change"))
    works.clear()
    for ready in range(1, 9):
        await set_status(two, "m1", DEPLOYMENTS, "web", {"replicas": 8, "readyReplicas": ready})
    await two.until_work("m1", template, lambda w: (report(w).get("status") or {}).get("readyReplicas") == 8)
    await two.rest()
    remove()
    assert len(works) <= 4


async def test_only_kinds_that_have_works_are_followed(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    other = await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_applied("web-deployment")
    await two.until_applied("settings-configmap")
    assert followed(two, "m1") == {DEPLOYMENTS, CONFIG_MAPS}
    assert followed(two, "m2") == {CONFIG_MAPS}
    await two.client.delete(DEPLOYMENTS, "web", "default")
    await two.until_work_gone("m1", template)
    await eventually(lambda: followed(two, "m1") == {CONFIG_MAPS})
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    await two.until_work_gone("m1", other)
    await eventually(lambda: not followed(two, "m1"))
    again = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    await two.until_work("m1", again, is_applied)
    await set_status(two, "m1", DEPLOYMENTS, "web", RUNNING)
    await two.until_work("m1", again, lambda w: report(w)["health"] == "Healthy")


async def test_only_managed_objects_are_kept_in_memory(two: Fleet) -> None:
    member = two.members["m1"]
    await member.client.create(CONFIG_MAPS, config_map("theirs"))
    await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_applied("settings-configmap")
    known = two.plane.context.members.get("m1").informers.all()
    await eventually(lambda: [meta.name(obj) for informer in known for obj in informer.list()] == ["settings"])
    [kept] = [obj for informer in known for obj in informer.list()]
    assert "managedFields" not in kept["metadata"]


async def test_a_copy_that_a_user_made_over_there_is_none_of_our_business(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_work("m1", template, is_applied)
    obj = await member.until(CONFIG_MAPS, "settings")
    metadata: Obj = {
        "name": "copy",
        "namespace": "default",
        "labels": meta.labels(obj),
        "annotations": meta.annotations(obj),
    }
    copy = await member.client.create(CONFIG_MAPS, {**obj, "metadata": metadata, "data": {"x": "y"}})
    elsewhere = {
        **metadata,
        "name": "elsewhere",
        "annotations": {**metadata["annotations"], "work.karmada.io/namespace": "karmada-es-m2"},
    }
    await member.client.create(CONFIG_MAPS, {**obj, "metadata": elsewhere})
    await two.rest()
    assert await member.get(CONFIG_MAPS, "copy") == copy
    assert report(await two.until_work("m1", template))["identifier"]["name"] == "settings"


async def test_status_flows_again_after_a_member_was_away(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
    await two.until_work("m1", template, is_applied)
    await two.rest()
    cluster = await two.client.get(Cluster.gvr, "m1")
    nowhere = {"spec": {"apiEndpoint": "https://127.0.0.1:1"}}
    await two.client.patch(Cluster.gvr, "m1", "", nowhere)
    [informer] = two.plane.context.members.get("m1").informers.all()
    await eventually(lambda: informer.last_error is not None)
    await two.plane.set_ready("m1", "False")
    await set_status(two, "m1", DEPLOYMENTS, "web", RUNNING)
    await two.client.patch(Cluster.gvr, "m1", "", {"spec": {"apiEndpoint": cluster["spec"]["apiEndpoint"]}})
    await two.plane.set_ready("m1", "True")
    await two.until_work("m1", template, lambda w: report(w)["health"] == "Healthy")


async def test_jobs_report_what_their_clusters_say(two: Fleet) -> None:
    pod = {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "Never"}
    job = kube_object(
        "batch/v1", "Job", "sum", "default", spec={"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    )
    template = await two.client.create(JOBS, job)
    await two.bind(template, {"m1": 1}, replicas=1)
    await two.until_work("m1", template, is_applied)
    await set_status(two, "m1", JOBS, "sum", {"active": 1, "startTime": "2024-01-01T00:00:00Z"})
    await two.until_work("m1", template, lambda w: (report(w).get("status") or {}).get("active") == 1)
    before = two.members["m1"].writes()
    await two.rest()
    assert two.members["m1"].writes() == before
