from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS, QUOTAS, REPLICA_SETS
from karmada.kube.objects.meta import make_owner
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.deployment_revisions import new_set_annotations, template_hash
from tests.kube.sim.deployment_cluster import DESIRED, HASH, HISTORY, MAXIMUM, cluster_of, image_of
from tests.kube.sim.workload_pods import REVISION, pod_template, workload
from tests.support.eventually import eventually

# --- creation


async def test_a_deployment_makes_a_replicaset_named_and_marked_by_its_templates_hash(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        note = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kubernetes.io/change-cause": "first"}
        deployment = await cluster.run(3, annotations=note)
        (made,) = cluster.sets()
        mark = made["metadata"]["labels"][HASH]
        assert set(mark) <= set("bcdfghjklmnpqrstvwxz2456789")
        assert 1 <= len(mark) <= 10
        assert made["metadata"]["name"] == f"web-{mark}"
        assert made["metadata"]["labels"] == {"app": "web", HASH: mark}
        assert made["metadata"]["annotations"] == {
            REVISION: "1",
            DESIRED: "3",
            MAXIMUM: "4",
            "kubernetes.io/change-cause": "first",
        }
        assert made["metadata"]["ownerReferences"] == [make_owner(deployment)]
        assert made["spec"]["selector"] == {"matchLabels": {"app": "web", HASH: mark}}
        assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", HASH: mark}
        assert all(pod["metadata"]["labels"] == {"app": "web", HASH: mark} for pod in cluster.pods())
        assert deployment["metadata"]["annotations"] == {**note, REVISION: "1"}
        assert deployment["metadata"]["generation"] == 1
        assert await cluster.scaled() == ["Scaled up nginx:1 from 0 to 3"]


async def test_a_finished_rollout_has_the_status_clients_wait_for(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        deployment = await cluster.run(2)
        name = cluster.sets()[0]["metadata"]["name"]
        status = dict(deployment["status"])
        conditions = {condition["type"]: condition for condition in status.pop("conditions")}
        assert status == {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "terminatingReplicas": 0,
        }
        moment = {"lastUpdateTime": "2023-11-14T22:13:20Z", "lastTransitionTime": "2023-11-14T22:13:20Z"}
        assert conditions == {
            "Available": {
                "type": "Available",
                "status": "True",
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
                **moment,
            },
            "Progressing": {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable",
                "message": f'ReplicaSet "{name}" has successfully progressed.',
                **moment,
            },
        }


async def test_one_replica_costs_few_writes_in_the_order_a_real_cluster_has_them(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        seen: list[Obj] = []
        cluster.cluster.context.informers.of(DEPLOYMENTS).add_handler(lambda _, new: seen.append(new or {}))
        sets: list[Obj] = []
        cluster.cluster.context.informers.of(REPLICA_SETS).add_handler(lambda _, new: sets.append(new or {}))
        cluster.kubelet.broken = lambda _: True
        await cluster.make(1)
        await cluster.until_progress("ReplicaSetUpdated")
        await cluster.cluster.make_ready(cluster.pods()[0])
        await cluster.until_complete()
        await cluster.cluster.clock.advance(1000)
        assert 3 <= len(seen) - 1 <= 6
        assert len(sets) - 1 <= 3
        first, second = seen[1], seen[2]
        assert first["metadata"]["annotations"] == {REVISION: "1"}
        assert "observedGeneration" not in first["status"]
        name = sets[0]["metadata"]["name"]
        created = ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        assert cluster.condition("Progressing", first) == created
        assert second["status"]["observedGeneration"] == 1
        assert second["status"]["unavailableReplicas"] == 1
        unavailable = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        assert cluster.condition("Available", second) == unavailable
        progress = [cluster.condition("Progressing", obj) for obj in seen[1:]]
        assert ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.') in progress
        assert progress[-1] == ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')


async def test_older_clusters_count_no_terminating_replicas(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, version="1.34") as cluster:
        assert "terminatingReplicas" not in (await cluster.run(1))["status"]


async def test_no_replicas_are_a_finished_rollout_and_no_event(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(0)
        await cluster.until_progress("NewReplicaSetAvailable")
        assert cluster.sizes() == {"nginx:1": 0}
        assert await cluster.scaled() == []
        assert cluster.condition("Available") == (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )


async def test_a_hash_depends_on_the_template_and_on_collisions_alone() -> None:
    template = pod_template()
    turned = dict(reversed(template.items()))
    assert template_hash(template, None) == template_hash(turned, 0)
    assert template_hash(template, 1) != template_hash(template, None)
    assert template_hash(template, None) != template_hash(pod_template("nginx:2"), None)


async def test_a_name_that_is_taken_is_changed_by_a_collision_count(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(1, paused=True)
        live = await cluster.cluster.client.get(DEPLOYMENTS, "web", "default")
        taken = workload("ReplicaSet", 0, name=f"web-{template_hash(live['spec']['template'], None)}", image="other")
        await cluster.cluster.client.create(REPLICA_SETS, taken)
        await cluster.change({"paused": False})
        deployment = await cluster.until_complete()
        assert deployment["status"]["collisionCount"] == 1
        names = [rs["metadata"]["name"] for rs in cluster.cluster.context.informers.of(REPLICA_SETS).list()]
        assert len(set(names)) == 2


# --- rolling updates


async def test_a_rolling_update_goes_in_steps_within_its_bounds(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(3)
        pods: list[int] = []
        available: list[int] = []

        def note(_: Obj | None, new: Obj | None) -> None:
            pods.append(sum(cluster.sizes().values()))
            available.append((cluster.deployment().get("status") or {}).get("availableReplicas", 0))

        cluster.cluster.context.informers.of(REPLICA_SETS).add_handler(note)
        deployment = await cluster.update("nginx:2")
        assert max(pods) == 4
        assert min(available) == 3
        assert cluster.sizes() == {"nginx:1": 0, "nginx:2": 3}
        assert deployment["metadata"]["annotations"][REVISION] == "2"
        assert [rs["metadata"]["annotations"][REVISION] for rs in cluster.sets()] == ["1", "2"]
        assert await cluster.scaled() == [
            "Scaled up nginx:1 from 0 to 3",
            "Scaled up nginx:2 from 0 to 1",
            "Scaled down nginx:1 from 3 to 2",
            "Scaled up nginx:2 from 1 to 2",
            "Scaled down nginx:1 from 2 to 1",
            "Scaled up nginx:2 from 2 to 3",
            "Scaled down nginx:1 from 1 to 0",
        ]
        assert {image_of(pod) for pod in cluster.pods()} == {"nginx:2"}


async def test_a_broken_update_keeps_the_old_pods_and_its_next_one_removes_the_broken_first(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(4)
        cluster.kubelet.broken = lambda pod: image_of(pod) == "broken"
        await cluster.set_image("broken")
        await eventually(lambda: cluster.sizes() == {"nginx:1": 3, "broken": 2}, show=cluster.sizes)
        await eventually(lambda: cluster.deployment()["status"].get("unavailableReplicas") == 2)
        assert cluster.deployment()["status"]["availableReplicas"] == 3
        await cluster.update("nginx:2")
        assert cluster.sizes() == {"nginx:1": 0, "broken": 0, "nginx:2": 4}
        emitted = await cluster.scaled()
        first = min(emitted.index(message) for message in emitted if message.startswith("Scaled down broken"))
        assert not any(message.startswith("Scaled down nginx:1 from 3") for message in emitted[:first])


async def test_a_restart_is_a_rollout_like_any_other(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        before = {pod["metadata"]["uid"] for pod in cluster.pods()}
        note = {"kubectl.kubernetes.io/restartedAt": "2023-11-14T22:13:20Z"}
        await cluster.change({"template": {"metadata": {"annotations": note}}})
        await cluster.until_complete()
        assert before.isdisjoint(pod["metadata"]["uid"] for pod in cluster.pods())
        assert len(cluster.sets()) == 2


async def test_min_ready_seconds_slow_a_rollout_down(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.make(1, minReadySeconds=20)
        await eventually(lambda: (cluster.deployment().get("status") or {}).get("readyReplicas") == 1)
        assert "availableReplicas" not in cluster.deployment()["status"]
        await cluster.cluster.clock.advance(20)
        await cluster.until_complete()
        assert cluster.sets()[0]["spec"]["minReadySeconds"] == 20
        await cluster.change({"minReadySeconds": 0})
        await eventually(lambda: not cluster.sets()[0]["spec"].get("minReadySeconds"))


# --- history


async def test_undo_lands_on_the_old_replicaset_which_remembers_its_revisions(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2, annotations={"kubernetes.io/change-cause": "one"})
        await cluster.update("nginx:2")
        deployment = await cluster.undo(1)
        assert cluster.sizes() == {"nginx:1": 2, "nginx:2": 0}
        assert len(cluster.sets()) == 2
        assert deployment["metadata"]["annotations"][REVISION] == "3"
        second, first = cluster.sets()
        assert image_of(first) == "nginx:1"
        assert first["metadata"]["annotations"][REVISION] == "3"
        assert first["metadata"]["annotations"][HISTORY] == "1"
        assert second["metadata"]["annotations"][REVISION] == "2"
        await cluster.undo(2)
        await cluster.undo(3)
        notes = [rs["metadata"]["annotations"] for rs in cluster.sets()]
        assert [(note[REVISION], note[HISTORY]) for note in notes] == [("4", "2"), ("5", "1,3")]
        assert cluster.condition("Progressing")[1] == "NewReplicaSetAvailable"


async def test_the_history_of_revisions_forgets_the_oldest_when_it_is_too_long() -> None:
    deployment = {"metadata": {"name": "web"}}
    known = ",".join(str(number) for number in range(1000, 1400))
    notes = {REVISION: "1400", HISTORY: known}
    after = new_set_annotations(deployment, {"metadata": {"annotations": notes}}, 1401)
    assert after[REVISION] == "1401"
    assert after[HISTORY].startswith("1001,1002,")
    assert after[HISTORY].endswith(",1399,1400")
    assert len(after[HISTORY]) <= 2000


async def test_old_replicasets_beyond_the_limit_are_deleted_by_revision(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(1, revisionHistoryLimit=2)
        for number in range(2, 6):
            await cluster.update(f"nginx:{number}")
        await eventually(lambda: sorted(cluster.sizes()) == ["nginx:3", "nginx:4", "nginx:5"], show=cluster.sizes)
        await cluster.undo(3)
        await cluster.update("nginx:6")
        await eventually(lambda: sorted(cluster.sizes()) == ["nginx:3", "nginx:5", "nginx:6"], show=cluster.sizes)


async def test_no_history_at_all_may_be_requested(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(1, revisionHistoryLimit=0)
        await cluster.update("nginx:2")
        await eventually(lambda: list(cluster.sizes()) == ["nginx:2"], show=cluster.sizes)


async def test_annotations_of_the_deployment_reach_the_new_replicaset_only(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(1)
        await cluster.update("nginx:2")
        patch = {"metadata": {"annotations": {"team": "blue"}}}
        changed = await cluster.cluster.client.patch(DEPLOYMENTS, "web", "default", patch)
        generation = changed["metadata"]["generation"]
        assert generation == 3
        await eventually(lambda: cluster.deployment()["status"].get("observedGeneration") == generation)
        old, new = cluster.sets()
        assert new["metadata"]["annotations"]["team"] == "blue"
        assert "team" not in old["metadata"]["annotations"]


# --- scaling


async def test_scaling_emits_an_event_and_changes_no_revision(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(3)
        for replicas in (0, 5, 1):
            await cluster.scale(replicas)
            await cluster.until_complete()
            await eventually(lambda replicas=replicas: len(cluster.pods()) == replicas)
        assert len(cluster.sets()) == 1
        assert cluster.deployment()["metadata"]["annotations"][REVISION] == "1"
        assert cluster.sets()[0]["metadata"]["annotations"][DESIRED] == "1"
        assert cluster.sets()[0]["metadata"]["annotations"][MAXIMUM] == "2"
        assert await cluster.scaled() == [
            "Scaled up nginx:1 from 0 to 3",
            "Scaled down nginx:1 from 3 to 0",
            "Scaled up nginx:1 from 0 to 5",
            "Scaled down nginx:1 from 5 to 1",
        ]


async def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportions(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
        cluster.kubelet.broken = lambda pod: image_of(pod) == "broken"
        await cluster.set_image("broken")
        await eventually(lambda: cluster.sizes() == {"nginx:1": 8, "broken": 5}, show=cluster.sizes)
        await cluster.scale(20)
        await eventually(lambda: cluster.sizes() == {"nginx:1": 14, "broken": 9}, show=cluster.sizes)
        assert {rs["metadata"]["annotations"][MAXIMUM] for rs in cluster.sets()} == {"23"}
        await cluster.scale(10)
        await eventually(lambda: cluster.sizes() == {"nginx:1": 8, "broken": 5}, show=cluster.sizes)


async def test_a_replicaset_somebody_else_scaled_is_set_right(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        name = cluster.sets()[0]["metadata"]["name"]
        await cluster.cluster.client.patch(REPLICA_SETS, name, "default", {"spec": {"replicas": 5}})
        await eventually(
            lambda: "Scaled down nginx:1" in str(cluster.sizes()) or cluster.sets()[0]["metadata"]["generation"] == 3
        )
        await cluster.until_complete()
        assert cluster.sizes() == {"nginx:1": 2}


# --- pausing


async def test_a_paused_deployment_scales_but_rolls_nothing_out(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        await cluster.change({"paused": True})
        await cluster.until_progress("DeploymentPaused")
        assert cluster.condition("Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
        changed = await cluster.set_image("nginx:2")
        generation = changed["metadata"]["generation"]
        await eventually(lambda: cluster.deployment()["status"].get("observedGeneration") == generation)
        assert cluster.sizes() == {"nginx:1": 2}
        assert "updatedReplicas" not in cluster.deployment()["status"]
        await cluster.scale(4)
        await eventually(lambda: cluster.sizes() == {"nginx:1": 4}, show=cluster.sizes)
        reasons: list[Any] = []
        cluster.cluster.context.informers.of(DEPLOYMENTS).add_handler(
            lambda _, new: reasons.append(cluster.condition("Progressing", new))
        )
        await cluster.change({"paused": False})
        await cluster.until_complete()
        assert ("Unknown", "DeploymentResumed", "Deployment is resumed") in reasons
        assert cluster.sizes() == {"nginx:1": 0, "nginx:2": 4}
        await cluster.until_progress("NewReplicaSetAvailable")


# --- failures


async def test_a_rollout_without_progress_fails_after_its_deadline_and_recovers(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        cluster.kubelet.broken = lambda pod: image_of(pod) == "broken"
        await cluster.make(1, image="broken", progressDeadlineSeconds=60)
        await cluster.until_progress("ReplicaSetUpdated")
        name = cluster.sets()[0]["metadata"]["name"]
        await cluster.cluster.clock.advance(59)
        assert cluster.condition("Progressing")[1] == "ReplicaSetUpdated"
        await cluster.cluster.clock.advance(3)
        await cluster.until_progress("ProgressDeadlineExceeded")
        expected = ("False", "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.')
        assert cluster.condition("Progressing") == expected
        version = cluster.deployment()["metadata"]["resourceVersion"]
        await cluster.cluster.clock.advance(10_000)
        assert cluster.deployment()["metadata"]["resourceVersion"] == version
        await cluster.update("nginx:2")
        await cluster.until_progress("NewReplicaSetAvailable")


async def test_a_rollout_may_be_given_all_the_time_in_the_world(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        deployment = await cluster.run(1, progressDeadlineSeconds=2147483647)
        assert cluster.condition("Progressing", deployment) is None
        assert cluster.condition("Available", deployment) is not None
        assert cluster.cluster.manager.controllers["deployment-controller"].queue.delayed == 0


async def test_pods_that_are_refused_show_as_replica_failure_on_the_deployment(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        client = cluster.cluster.client
        await client.create(QUOTAS, quota | {"spec": {"hard": {"pods": "0"}}})
        status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
        await client.patch(QUOTAS, "q", "default", status, subresource="status")
        await cluster.make(1)
        await eventually(lambda: cluster.condition("ReplicaFailure"))
        truth, reason, message = cluster.condition("ReplicaFailure") or ("", "", "")
        assert (truth, reason) == ("True", "FailedCreate")
        assert "exceeded quota: q" in message
        await client.delete(QUOTAS, "q", "default")
        await cluster.cluster.clock.advance(60)
        await cluster.until_complete()
        assert cluster.condition("ReplicaFailure") is None


async def test_a_replicaset_that_is_refused_shows_as_create_error(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        client, hard = cluster.cluster.client, {"count/replicasets.apps": "0"}
        await client.create(QUOTAS, quota | {"spec": {"hard": hard}})
        await client.patch(QUOTAS, "q", "default", {"status": {"hard": hard, "used": hard}}, subresource="status")
        await cluster.make(1)
        await cluster.until_progress("ReplicaSetCreateError")
        truth, _, message = cluster.condition("Progressing") or ("", "", "")
        assert truth == "False"
        assert message.startswith('Failed to create new replica set "web-')
        emitted = await cluster.cluster.events("web")
        assert ("Warning", "ReplicaSetCreateError", message) in emitted
        await client.delete(QUOTAS, "q", "default")
        await cluster.cluster.clock.advance(60)
        await cluster.until_complete()


# --- Recreate


async def test_recreate_starts_nothing_before_the_last_old_pod_is_gone(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, version="1.34") as cluster:
        await cluster.run(2, strategy={"type": "Recreate"})
        cluster.kubelet.holds_on = True
        await cluster.set_image("nginx:2")
        await eventually(lambda: len(cluster.pods(going=True)) == 2)
        await eventually(lambda: "replicas" not in cluster.deployment()["status"], show=cluster.deployment)
        assert cluster.sizes() == {"nginx:1": 0}
        cluster.kubelet.holds_on = False
        first, second = cluster.pods(going=True)
        await cluster.cluster.client.delete(PODS, first["metadata"]["name"], "default", grace_period=0)
        await eventually(lambda: len(cluster.pods(going=True)) == 1)
        assert cluster.sizes() == {"nginx:1": 0}
        await cluster.cluster.client.delete(PODS, second["metadata"]["name"], "default", grace_period=0)
        await cluster.until_complete()
        assert cluster.sizes() == {"nginx:1": 0, "nginx:2": 2}
        assert await cluster.scaled() == [
            "Scaled up nginx:1 from 0 to 2",
            "Scaled down nginx:1 from 2 to 0",
            "Scaled up nginx:2 from 0 to 2",
        ]
        assert cluster.sets()[1]["metadata"]["annotations"][MAXIMUM] == "2"


# --- many


async def test_many_deployments_at_once_all_finish_and_cost_a_handful_of_writes_each(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        writes: dict[str, int] = {}

        def note(_: Obj | None, new: Obj | None) -> None:
            if new is not None:
                writes[new["metadata"]["name"]] = writes.get(new["metadata"]["name"], -1) + 1

        informer = cluster.cluster.context.informers.of(DEPLOYMENTS)
        informer.add_handler(note)
        names = [f"web-{number}" for number in range(30)]
        await asyncio.gather(
            *(cluster.cluster.client.create(DEPLOYMENTS, workload("Deployment", 1, name=name)) for name in names)
        )
        finished: Callable[[], bool] = lambda: all(
            (obj.get("status") or {}).get("availableReplicas") == 1 for obj in informer.list()
        )
        await eventually(lambda: len(informer) == 30 and finished())
        assert all(3 <= count <= 6 for count in writes.values()), writes
