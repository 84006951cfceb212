"""Single passes over members behind real HTTPS: every condition, what is collected, what is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.controllers.context import Settings
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.runtime.controller import Done
from karmada.kube.runtime.keys import Key
from tests.controllers.cluster_status.status_plane import NAMESPACE, FakeMember, Plane, brief, credentials
from tests.support.eventually import eventually
from tests.support.fleet import encoded

READY = ("True", "ClusterReady")
KEY = Key("", "m1")


async def test_a_healthy_member_is_ready_after_its_first_pass(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    status = await plane.look("m1")
    assert [c["type"] for c in status["conditions"]] == ["CompleteAPIEnablements", "Ready"]
    now = rfc3339(plane.clock.now())
    assert status["conditions"] == [
        {
            "type": "CompleteAPIEnablements",
            "status": "True",
            "reason": "Complete",
            "message": "collected complete APIEnablements from the cluster",
            "lastTransitionTime": now,
        },
        {
            "type": "Ready",
            "status": "True",
            "reason": "ClusterReady",
            "message": "cluster is healthy and ready to accept workloads",
            "lastTransitionTime": now,
        },
    ]
    assert status["kubernetesVersion"] == "v1.36.0"
    versions = [entry["groupVersion"] for entry in status["apiEnablements"]]
    assert versions == sorted(versions)
    (apps,) = (entry for entry in status["apiEnablements"] if entry["groupVersion"] == "apps/v1")
    assert {"name": "deployments", "kind": "Deployment"} in apps["resources"]
    names = [resource["name"] for resource in apps["resources"]]
    assert names == sorted(names)
    assert not any("/" in name for name in names)


async def test_the_summary_follows_when_the_informers_have_synced(plane: Plane, member: FakeMember) -> None:
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True", "reason": "Up", "message": ""}]
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
    meta = {"namespace": "default"}
    await member.create(
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"},
         "status": {"allocatable": allocatable, "conditions": conditions}},
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n2"}, "status": {"allocatable": allocatable}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", **meta}, "spec": {**spec, "nodeName": "n1"}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b", **meta}, "spec": spec},
    )  # fmt: skip
    woken: list[Key] = []
    plane.status.attach(woken.append)
    await plane.join("m1", member)
    assert brief(await plane.look("m1"), "Ready") == READY
    await eventually(lambda: woken == [KEY])
    status = await plane.look("m1")
    assert status["nodeSummary"] == {"totalNum": 2, "readyNum": 1}
    summary = status["resourceSummary"]
    assert summary["allocatable"] == {"cpu": "8", "memory": "32Gi", "pods": "220"}
    assert summary["allocated"] == summary["allocating"] == {"cpu": "500m", "memory": "1Gi", "pods": "1"}
    counts = {entry["grade"]: entry["count"] for entry in summary["allocatableModelings"]}
    assert counts == {**dict.fromkeys(range(9), 0), 1: 1, 2: 1}


async def test_a_status_that_stays_the_same_is_not_written(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    await plane.look("m1")
    await plane.synced("m1")
    await plane.look("m1")
    before = await plane.get("m1")
    await plane.clock.advance(10)
    await plane.look("m1")
    assert (await plane.get("m1"))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_unchanged_discovery_is_neither_sent_nor_read_again(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    for _ in range(3):
        await plane.look("m1")
    for page in ("/api", "/apis"):
        assert member.gate.answered[page, 200] == 1
        assert member.gate.answered[page, 304] == 2


async def test_a_stopped_member_is_not_reachable_once_that_has_lasted(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    collected = await plane.look("m1")
    await member.stop()
    for _ in range(3):
        assert await plane.ready("m1") == READY
        await plane.clock.advance(10)
    status = await plane.look("m1")
    ready = get_condition(status["conditions"], "Ready")
    assert ready == {
        "type": "Ready",
        "status": "False",
        "reason": "ClusterNotReachable",
        "message": "cluster is not reachable",
        "lastTransitionTime": rfc3339(plane.clock.now()),
    }
    assert status["apiEnablements"] == collected["apiEnablements"]
    assert status["kubernetesVersion"] == collected["kubernetesVersion"] == "v1.36.0"
    assert brief(status, "CompleteAPIEnablements") == ("True", "Complete")


@pytest.mark.parametrize("code", [400, 401, 403, 429, 500, 503])
async def test_a_health_page_that_fails_means_not_reachable(plane: Plane, member: FakeMember, code: int) -> None:
    member.gate.codes["/readyz"] = code
    await plane.join("m1", member)
    assert await plane.ready("m1") == ("False", "ClusterNotReachable")


@pytest.mark.parametrize("code", [201, 202, 206])
async def test_a_member_that_answers_without_ok_is_not_ready(plane: Plane, member: FakeMember, code: int) -> None:
    member.gate.codes["/readyz"] = code
    await plane.join("m1", member)
    status = await plane.look("m1")
    (ready,) = status["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "ClusterNotReady")
    assert ready["message"] == "cluster is reachable but health endpoint responded without ok"
    assert "apiEnablements" not in status


async def test_healthz_counts_where_there_is_no_readyz(plane: Plane, member: FakeMember) -> None:
    member.gate.codes["/readyz"] = 404
    await plane.join("m1", member)
    assert await plane.ready("m1") == READY
    member.gate.codes["/healthz"] = 500
    await plane.join("m2", member)
    assert await plane.ready("m2") == ("False", "ClusterNotReachable")


async def test_a_member_that_hangs_is_not_reachable_when_the_probe_times_out(plane: Plane, member: FakeMember) -> None:
    member.gate.hanging.add("/readyz")
    await plane.join("m1", member)
    passing = asyncio.create_task(plane.look("m1"))
    await eventually(lambda: member.gate.requests["/readyz"])
    await plane.clock.advance(9.9)
    assert not passing.done()
    await plane.clock.advance(0.1)
    assert brief(await passing, "Ready") == ("False", "ClusterNotReachable")


async def test_a_member_that_is_healthy_but_reports_nothing_keeps_its_last_status(
    plane: Plane, member: FakeMember
) -> None:
    await plane.join("m1", member)
    before = await plane.look("m1")
    member.gate.hanging.add("/apis")
    passing = asyncio.create_task(plane.look("m1"))
    await eventually(lambda: member.gate.requests["/apis"] == 2)
    await plane.clock.advance(32)
    status = await passing
    assert brief(status, "Ready") == READY
    assert brief(status, "CompleteAPIEnablements") == ("True", "Complete")
    assert status["apiEnablements"] == before["apiEnablements"]


NO_ACCESS = [
    ({"apiEndpoint": ""}, {}, "the api endpoint of cluster m1 is empty"),
    ({}, None, 'secrets "m1" not found'),
    ({}, {"caBundle": "eA=="}, 'the secret for cluster m1 is missing a non-empty value for "token"'),
    ({}, {"token": "eA=="}, 'the secret for cluster m1 is missing the CA data key "caBundle"'),
]


@pytest.mark.parametrize(("spec", "data", "why"), NO_ACCESS)
async def test_settings_that_do_not_work_are_reported(
    plane: Plane, spec: dict[str, Any], data: dict[str, Any] | None, why: str
) -> None:
    await plane.join("m1", secret=data, **{"apiEndpoint": "https://127.0.0.1:1", **spec})
    if data is not None:
        secrets = plane.informers.of(SECRETS)
        await eventually(lambda: secrets.get(Key(NAMESPACE, "m1")))
    (ready,) = (await plane.look("m1"))["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "StatusCollectionFailed")
    assert ready["message"] == f"failed to create a ClusterClient: {why}"


async def test_settings_that_break_later_are_reported_too(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    assert await plane.ready("m1") == READY
    await plane.client.patch(SECRETS, "m1", NAMESPACE, {"data": {"token": None}})
    handle = plane.context.members.get("m1")
    await eventually(lambda: handle.trouble)
    assert await plane.ready("m1") == READY
    await plane.clock.advance(30)
    assert await plane.ready("m1") == ("False", "StatusCollectionFailed")
    await plane.client.patch(SECRETS, "m1", NAMESPACE, {"data": credentials(member)})
    await eventually(lambda: handle.trouble is None)
    await plane.look("m1")
    await plane.clock.advance(30)
    assert await plane.ready("m1") == READY


async def test_a_wrong_token_makes_a_member_unreachable(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member, secret={**credentials(member), "token": encoded("wrong")})
    assert await plane.ready("m1") == ("False", "ClusterNotReachable")


async def test_a_secret_the_cache_has_not_seen_yet_is_waited_for(plane: Plane, member: FakeMember) -> None:
    secrets = plane.informers.of(SECRETS)
    await secrets.stop()
    await plane.join("m1", member)
    result = await plane.status.reconcile(KEY)
    assert result.backoff
    assert "conditions" not in ((await plane.get("m1")).get("status") or {})
    secrets.start()
    await eventually(lambda: secrets.get(Key(NAMESPACE, "m1")))
    assert await plane.ready("m1") == READY


async def test_discovery_without_the_groups_is_partial(plane: Plane, member: FakeMember) -> None:
    member.gate.codes["/apis"] = 503
    await plane.join("m1", member)
    status = await plane.look("m1")
    complete = get_condition(status["conditions"], "CompleteAPIEnablements")
    assert complete is not None
    assert (complete["status"], complete["reason"]) == ("False", "Partial")
    assert complete["message"] == "might collect partial APIEnablements(1) from the cluster"
    assert [entry["groupVersion"] for entry in status["apiEnablements"]] == ["v1"]
    assert brief(status, "Ready") == READY
    del member.gate.codes["/apis"]
    status = await plane.look("m1")
    assert brief(status, "CompleteAPIEnablements") == ("True", "Complete")
    assert len(status["apiEnablements"]) > 10


async def test_no_discovery_at_all_is_empty(plane: Plane, member: FakeMember) -> None:
    member.gate.codes |= {"/api": 500, "/apis": 500}
    await plane.join("m1", member)
    status = await plane.look("m1")
    complete = get_condition(status["conditions"], "CompleteAPIEnablements")
    assert complete is not None
    assert (complete["status"], complete["reason"]) == ("False", "Empty")
    assert complete["message"] == "collected empty APIEnablements from the cluster"
    assert status["apiEnablements"] == []


async def test_a_version_that_cannot_be_read_is_empty(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    await plane.look("m1")
    member.gate.codes["/version"] = 403
    status = await plane.look("m1")
    assert status["kubernetesVersion"] == ""
    assert brief(status, "Ready") == READY


async def test_a_version_of_any_length_is_cut(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    member.gate.texts["/version"] = b'{"gitVersion": "%s"}' % (b"v" * 900_000)
    status = await plane.look("m1")
    assert status["kubernetesVersion"] == "v" * 255 + "…"


async def test_nothing_happens_before_the_cluster_has_its_finalizer(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    await plane.change("m1", {"metadata": {"finalizers": None}})
    assert await plane.status.reconcile(KEY) is Done
    assert member.gate.requests["/readyz"] == 0


@pytest.mark.parametrize("spec", [{"syncMode": "Pull"}, {"secretRef": None}])
async def test_clusters_of_others_are_left_alone(plane: Plane, member: FakeMember, spec: dict[str, Any]) -> None:
    await plane.join("m1", member)
    await plane.change("m1", {"spec": spec})
    assert await plane.status.reconcile(KEY) is Done
    assert member.gate.requests["/readyz"] == 0


async def test_what_others_say_in_the_status_stays(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    theirs = {"type": "ServiceDomainNameResolutionReady", "status": "True", "reason": "Yes", "message": ""}
    stamped = {**theirs, "lastTransitionTime": rfc3339(0)}
    said = {"status": {"conditions": [stamped], "remedyActions": ["TrafficControl"]}}
    await plane.change("m1", said, subresource="status")
    status = await plane.look("m1")
    assert get_condition(status["conditions"], theirs["type"]) == stamped
    assert status["remedyActions"] == ["TrafficControl"]
    assert brief(status, "Ready") == READY


async def test_a_write_that_conflicts_is_retried(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    await plane.informers.of(Cluster.gvr).stop()
    await plane.client.patch(Cluster.gvr, "m1", "", {"metadata": {"labels": {"a": "b"}}})
    passing = asyncio.create_task(plane.status.reconcile(KEY))
    while not passing.done():
        await plane.clock.advance(0.001)
    await passing
    found = await plane.get("m1")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert brief(found["status"], "Ready") == READY


@pytest.mark.parametrize("settings", [Settings(enable_cluster_resource_modeling=False)])
async def test_without_modeling_no_node_or_pod_is_read(plane: Plane, member: FakeMember) -> None:
    await plane.join("m1", member)
    status = await plane.look("m1")
    assert brief(status, "Ready") == READY
    assert "nodeSummary" not in status
    assert member.gate.requests["/api/v1/nodes"] == member.gate.requests["/api/v1/pods"] == 0


async def test_the_models_gate_takes_only_the_grades_away(plane: Plane, member: FakeMember) -> None:
    plane.context.gates.set("CustomizedClusterResourceModeling=false")
    await member.create(
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1"}}}
    )
    await plane.join("m1", member)
    await plane.look("m1")
    await plane.synced("m1")
    assert (await plane.look("m1"))["resourceSummary"] == {"allocatable": {"cpu": "1"}}


async def test_a_member_whose_pods_are_not_listed_is_ready_all_the_same(plane: Plane, member: FakeMember) -> None:
    member.gate.hanging.add("/api/v1/pods")
    await plane.join("m1", member)
    status = await plane.look("m1")
    assert brief(status, "Ready") == READY
    assert "nodeSummary" not in status


async def test_a_cluster_made_anew_starts_without_a_past(plane: Plane, member: FakeMember) -> None:
    member.gate.codes["/readyz"] = 500
    await plane.join("m1", member)
    assert await plane.ready("m1") == ("False", "ClusterNotReachable")
    await plane.change("m1", {"metadata": {"finalizers": None}})
    await plane.client.delete(Cluster.gvr, "m1")
    await plane.client.delete(SECRETS, "m1", NAMESPACE)
    del member.gate.codes["/readyz"]
    await plane.join("m1", member)
    secrets = plane.informers.of(SECRETS)
    await eventually(lambda: secrets.get(Key(NAMESPACE, "m1")))
    assert await plane.ready("m1") == READY


async def test_metrics_have_a_cluster_until_it_is_gone(plane: Plane, member: FakeMember) -> None:
    await member.create(
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"},
         "status": {"allocatable": {"cpu": "1500m", "memory": "1Ki", "pods": "3"}}}
    )  # fmt: skip
    await plane.join("m1", member)
    await plane.look("m1")
    await plane.synced("m1")
    await plane.look("m1")

    def values() -> dict[str, float]:
        samples = (sample for family in plane.status.metrics.collect() for sample in family.samples)
        return {s.name: s.value for s in samples if s.labels.get("member_cluster") == "m1"}

    found = values()
    assert found["cluster_ready_state"] == 1
    assert found["cluster_node_number"] == 1
    assert found["cluster_ready_node_number"] == 0
    assert found["cluster_cpu_allocatable_number"] == 1.5
    assert found["cluster_memory_allocatable_bytes"] == 1024
    assert found["cluster_pod_allocatable_number"] == 3
    assert found["cluster_pod_allocated_number"] == 0
    assert found["cluster_sync_status_duration_seconds_count"] == 2
    await plane.change("m1", {"metadata": {"finalizers": None}})
    await plane.client.delete(Cluster.gvr, "m1")
    await eventually(lambda: plane.informers.of(Cluster.gvr).get(KEY) is None)
    assert await plane.status.reconcile(KEY) is Done
    assert values() == {}


async def test_credentials_that_are_changed_are_used(
    plane: Plane, new_member: Callable[[], Awaitable[FakeMember]]
) -> None:
    first, second = await new_member(), await new_member()
    await plane.join("m1", first)
    await plane.look("m1")
    await plane.change("m1", {"spec": {"apiEndpoint": second.server.url}})
    await plane.look("m1")
    assert second.gate.requests["/readyz"] == 1
