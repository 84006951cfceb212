"""How decisions show: annotation, clusters, status, events; and what happens when they cannot be written."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from karmada.api import well_known
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.scheduler.service.schedule_type import placement_text
from karmada.scheduler.service.writing import is_about, result_text
from tests.support.eventually import eventually
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, config_map, deployment, placement
from tests.support.scheduling_plane import BINDINGS, Scheduling, condition, targets

SUCCESS = ("True", "Success", "Binding has been scheduled successfully.")
FAILED = ("Warning", "ScheduleBindingFailed")


# texts


def test_the_annotation_is_compact_and_in_the_usual_order() -> None:
    where: dict[str, Any] = {
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        "clusterTolerations": [],
        "clusterAffinity": {"clusterNames": ["member1"]},
        "spreadConstraints": None,
    }
    assert placement_text(where) == (
        '{"clusterAffinity":{"clusterNames":["member1"]},"replicaScheduling":{"replicaSchedulingType":"Duplicated"}}'
    )


def test_signs_that_mean_something_elsewhere_are_escaped_in_it() -> None:
    where = {"clusterAffinity": {"clusterNames": ["<a>&b\u2028"]}}
    assert placement_text(where) == '{"clusterAffinity":{"clusterNames":["\\u003ca\\u003e\\u0026b\\u2028"]}}'
    assert orjson.loads(placement_text(where)) == where


def test_an_empty_placement_is_remembered_as_such() -> None:
    assert placement_text({}) == "{}"
    assert placement_text({"clusterAffinity": {}}) == '{"clusterAffinity":{}}'


def test_targets_are_reported_in_the_order_of_the_result() -> None:
    assert result_text([{"name": "m2", "replicas": 1}, {"name": "m1"}]) == "{m2:1, m1:0}"
    assert result_text([]) == "{}"


def test_a_decision_is_about_a_binding_that_differs_in_nothing_but_clusters() -> None:
    one: Obj = {"metadata": {"uid": "1"}, "spec": {"replicas": 1}}
    assert is_about(one, {"metadata": {"uid": "1", "labels": {}}, "spec": {"replicas": 1, "clusters": [1]}})
    assert not is_about(one, {"metadata": {"uid": "1"}, "spec": {"replicas": 2}})
    assert not is_about(one, {"metadata": {"uid": "2"}, "spec": {"replicas": 1}})


# success


async def test_the_status_has_the_generation_of_the_decision(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    for name, how in (("a", DUPLICATED), ("b", DYNAMIC)):
        made = await plane.bind(f"{name}-deployment", deployment(2, placement(how)))
        assert meta.generation(made) == 2
        now = rfc3339(plane.clock.now())
        assert made["status"] == {
            "conditions": [
                {
                    "type": "Scheduled",
                    "status": "True",
                    "reason": "Success",
                    "message": "Binding has been scheduled successfully.",
                    "lastTransitionTime": now,
                }
            ],
            "schedulerObservedGeneration": 2,
            "lastScheduledTime": now,
        }


async def test_a_decision_is_two_writes(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    wrote: list[str] = []
    plane.intercept_writes(lambda request: wrote.append(request.path))
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    await plane.wait(5)
    path = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment"
    assert wrote == [path, f"{path}/status"]


async def test_deciding_the_same_again_writes_and_emits_nothing(plane: Scheduling) -> None:
    await plane.clusters("m1")
    made = await plane.bind("settings-configmap", config_map({}))
    await plane.wait(60)
    await plane.label("m1", some="thing")
    assert await plane.get("settings-configmap") == made
    assert len(await plane.events("settings-configmap")) == 1
    assert [event["count"] for event in (await plane.client.list_all(EVENTS, "default")).items] == [1, 1]


async def test_a_change_that_needs_no_decision_is_only_noted(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    await plane.wait(60)
    changed = await plane.change("web-deployment", {"conflictResolution": "Overwrite"})
    assert meta.generation(changed) == meta.generation(made) + 1
    assert changed["status"] == {**made["status"], "schedulerObservedGeneration": meta.generation(changed)}
    assert len(await plane.events("web-deployment")) == 1


async def test_the_time_of_the_condition_moves_only_with_its_status(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    [before] = made["status"]["conditions"]
    await plane.wait(60)
    changed = await plane.change("web-deployment", {"replicas": 3})
    assert changed["status"]["conditions"] == [before]
    assert changed["status"]["lastScheduledTime"] == rfc3339(plane.clock.now())
    changed = await plane.change("web-deployment", {"replicas": 30})
    [failed] = changed["status"]["conditions"]
    assert failed["status"] == "False"
    assert failed["lastTransitionTime"] == rfc3339(plane.clock.now())
    assert targets(changed) == {"m1": 3}


async def test_what_others_say_in_the_status_stays(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    applied = {"type": "FullyApplied", "status": "True", "reason": "x", "message": "", "lastTransitionTime": rfc3339(1)}
    found = await plane.get("web-deployment")
    await plane.set_status("web-deployment", {"conditions": [*found["status"]["conditions"], applied]})
    changed = await plane.change("web-deployment", {"replicas": 3})
    assert changed["status"]["conditions"] == [*found["status"]["conditions"], applied]


async def test_applying_the_existing_state_again_ends_a_failure(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert condition(await plane.change("web-deployment", {"replicas": 30})) != SUCCESS
    changed = await plane.change("web-deployment", {"replicas": 2})
    assert condition(changed) == SUCCESS
    assert changed["status"]["schedulerObservedGeneration"] == meta.generation(changed)


async def test_events_of_cluster_wide_bindings_lack_a_colon(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "name": "wide"}
    found = await plane.bind("wide-configmap", {"resource": resource, "placement": {}}, namespace="")
    assert targets(found) == {"m1": 0, "m2": 0}
    reported = [("Normal", "ScheduleBindingSucceed", f"{SUCCESS[2]} Result {{m1:0, m2:0}}")]
    assert await plane.events("wide-configmap") == reported
    assert await plane.events("wide") == reported


async def test_the_events_are_the_schedulers(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("settings-configmap", config_map({}))
    await plane.events("settings")
    found = (await plane.client.list_all(EVENTS, "default")).items
    assert {event["source"]["component"] for event in found} == {"default-scheduler"}
    assert {event["involvedObject"]["kind"] for event in found} == {"ResourceBinding", "ConfigMap"}


# failures to write


def refusing(error: Exception, part: str = "") -> Any:
    def before(request: Any) -> None:
        if request.path.endswith(part) and (part or not request.path.endswith("/status")):
            raise error

    return before


async def test_an_overdrawn_quota_is_reported_and_tried_again(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    text = 'admission webhook "x" denied the request: quota exceeded'
    end = plane.intercept_writes(refusing(ApiError(text, code=403, reason="QuotaExceeded")))
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert condition(made) == ("False", "QuotaExceeded", text)
    assert targets(made) == {}
    assert await plane.events("web-deployment") == [(*FAILED, text)]
    assert plane.delays("web-deployment") == 0.005
    end()
    await plane.wait(1)
    assert await plane.targets("web-deployment") == {"m1": 2}
    assert await plane.condition("web-deployment") == SUCCESS


async def test_another_refusal_is_an_error_of_the_scheduler(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    plane.intercept_writes(refusing(Forbidden("no")))
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert condition(made) == ("False", "SchedulerError", "no")
    assert plane.delays("web-deployment")


async def test_a_result_that_cannot_be_withdrawn_is_tried_again(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    end = plane.intercept_writes(refusing(Forbidden("no")))
    changed = await plane.change("web-deployment", {"placement": {"clusterAffinity": {"clusterNames": ["m9"]}}})
    text = "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint."
    assert condition(changed) == ("False", "NoClusterFit", f"[{text}, no]")
    assert plane.delays("web-deployment")
    end()
    await plane.wait(1)
    assert await plane.targets("web-deployment") == {}
    assert await plane.condition("web-deployment") == ("False", "NoClusterFit", text)
    assert plane.delays("web-deployment") is None


async def test_a_namespace_that_ends_needs_no_further_try(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    details = {"causes": [{"reason": "NamespaceTerminating", "message": "it ends"}]}
    plane.intercept_writes(refusing(ApiError("ends", code=403, reason="Forbidden", details=details)))
    made = await plane.bind("web-deployment", deployment(2, placement(DYNAMIC)))
    assert "status" not in made
    assert plane.delays("web-deployment") is None
    assert await plane.events("web-deployment") == []


@pytest.mark.parametrize("part", ["", "/status"])
@pytest.mark.parametrize("how", [DYNAMIC, DUPLICATED])
async def test_a_lost_connection_is_made_good(plane: Scheduling, part: str, how: Obj) -> None:
    await plane.clusters("m1", pods=9)
    end = plane.intercept_writes(refusing(ConnectionFailed("gone"), part))
    await plane.bind("web-deployment", deployment(2, placement(how)))
    assert plane.delays("web-deployment")
    end()
    await plane.wait(1)
    found = await plane.get("web-deployment")
    assert targets(found) == {"m1": 2}
    assert condition(found) == SUCCESS
    assert found["status"]["schedulerObservedGeneration"] == meta.generation(found)
    assert found["status"]["lastScheduledTime"]


async def test_the_group_is_reported_even_if_the_connection_was_lost_before_that(plane: Scheduling) -> None:
    await plane.clusters("m2", pods=9)
    end = plane.intercept_writes(refusing(ConnectionFailed("gone"), "/status"))
    terms = [{"affinityName": f"g{n}", "clusterNames": [f"m{n}"]} for n in (1, 2)]
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC, clusterAffinities=terms)))
    end()
    await plane.wait(1)
    found = await plane.get("web-deployment")
    assert targets(found) == {"m2": 2}
    assert found["status"]["schedulerObservingAffinityName"] == "g2"


# others write, too


@pytest.mark.parametrize(
    "change",
    [{"replicas": 5}, {"replicas": 5, "clusters": [{"name": "m1", "replicas": 2}]}],
    ids=["of something else", "that makes the writing unnecessary"],
)
async def test_a_change_between_the_decision_and_its_writing_is_decided_anew(plane: Scheduling, change: Obj) -> None:
    await plane.clusters("m1", pods=9)
    scaled = False

    async def scale() -> None:
        nonlocal scaled
        if not scaled:
            scaled = True
            await plane.client.patch(BINDINGS, "web-deployment", "default", {"spec": change})
            informer = plane.plane.context.informers.of(BINDINGS)
            await eventually(lambda: informer.get(Key("default", "web-deployment"))["spec"]["replicas"] == 5)

    claimed: list[int] = []

    def before(request: Any) -> Any:
        if request.path.endswith("/status"):
            claimed.append(request.body["status"]["schedulerObservedGeneration"])
        return scale()

    plane.intercept_writes(before)
    made = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    assert targets(made) == {"m1": 5}
    assert claimed[0] == 1, "the generation that was decided on"
    assert made["status"]["schedulerObservedGeneration"] == meta.generation(made)


async def test_a_change_between_the_result_and_the_status_is_decided_anew(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    scaled = False

    async def scale() -> None:
        nonlocal scaled
        scaled = True
        await plane.client.patch(BINDINGS, "web-deployment", "default", {"spec": {"replicas": 5}})

    plane.intercept_writes(lambda request: scale() if request.path.endswith("/status") and not scaled else None)
    made = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    assert targets(made) == {"m1": 5}
    assert made["status"]["schedulerObservedGeneration"] == meta.generation(made)


async def test_a_binding_that_is_deleted_meanwhile_is_dropped(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    end = plane.intercept_writes(lambda _request: plane.client.delete(BINDINGS, "web-deployment", "default"))
    with pytest.raises(ApiError):
        await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    end()
    assert plane.delays("web-deployment") is None
    made = await plane.bind("web-deployment", deployment(3, placement(DUPLICATED)))
    assert targets(made) == {"m1": 3}


async def test_a_new_binding_of_the_same_name_is_decided_for_itself(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=9)
    done = asyncio.Event()

    async def replace() -> None:
        if done.is_set():
            return
        done.set()
        found = await plane.get("web-deployment")
        await plane.client.delete(BINDINGS, "web-deployment", "default")
        metadata = {key: found["metadata"][key] for key in ("name", "namespace", "labels")}
        await plane.client.create(BINDINGS, {**found, "metadata": metadata, "spec": {**found["spec"], "replicas": 7}})

    plane.intercept_writes(lambda _request: replace())
    made = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    assert targets(made) == {"m1": 7}
    assert well_known.APPLIED_PLACEMENT in meta.annotations(made)


async def test_a_failed_try_after_a_cluster_changed_is_not_taken_for_decided(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.cluster("m2", taints=[{"key": "new", "effect": "NoSchedule"}])
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED)))
    end = plane.intercept_writes(refusing(ConnectionFailed("gone")))
    await plane.change_cluster("m2", {"spec": {"taints": None}})
    assert await plane.targets("web-deployment") == {"m1": 2}
    end()
    await plane.wait(1)
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2}
