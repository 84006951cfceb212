from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES, PODS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.behaviours import ANNOTATION, Behaviours, Outcome, Rule
from karmada.kube.sim.kubelet.kubelet import Kubelet
from karmada.kube.sim.profile import INSTANT, Latencies, NodePool, Profile
from tests.kube.sim.harness import running
from tests.kube.sim.node_parts import NODE, Parts, condition, node_parts
from tests.support.eventually import eventually


async def watch_pod(parts: Parts, seen: list[tuple[str, Obj]]) -> asyncio.Task[None]:
    stream = await parts.cluster.client.watch(PODS, "default")

    async def follow() -> None:
        async for kind, pod in stream:
            if kind != "BOOKMARK":
                seen.append((kind, pod))

    return asyncio.create_task(follow())


def container(pod: Obj | None) -> Obj:
    assert pod is not None
    found: Obj = pod["status"]["containerStatuses"][0]
    return found


async def test_a_start_and_an_end_are_reported_step_by_step_and_no_write_is_wasted(tmp_path: Path) -> None:
    async with node_parts(tmp_path, latencies=Latencies()) as parts:
        seen: list[tuple[str, Obj]] = []
        watching = await watch_pod(parts, seen)
        await parts.create()
        await parts.pass_time(3, 0.1)
        await parts.until_ready()
        await parts.cluster.client.delete(PODS, "p", "default")
        await parts.pass_time(1, 0.1)
        await parts.until_gone()
        await eventually(lambda: seen and seen[-1][0] == "DELETED")
        watching.cancel()
        steps = [(kind, pod["status"]["phase"], condition(pod, "Ready")) for kind, pod in seen]
        assert steps == [
            ("ADDED", "Pending", ""),
            ("MODIFIED", "Pending", "False"),
            ("MODIFIED", "Running", "True"),
            ("MODIFIED", "Running", "True"),
            ("MODIFIED", "Succeeded", "False"),
            ("DELETED", "Succeeded", "False"),
        ]
        managers = {(m["manager"], m.get("subresource", "")) for m in seen[2][1]["metadata"]["managedFields"]}
        assert ("kubelet", "status") in managers
        emitted = await parts.cluster.events("p")
        assert [reason for _, reason, _ in emitted] == ["Pulling", "Pulled", "Created", "Started", "Killing"]


async def test_pods_that_start_all_at_once_take_two_writes_each_and_no_step_back(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=4)]) as parts:
        seen: list[tuple[str, Obj]] = []
        watching = await watch_pod(parts, seen)
        names = [f"p{number}" for number in range(200)]
        await asyncio.gather(*(parts.create(name, nodeName=f"t-node-{i % 4 + 1}") for i, name in enumerate(names)))
        for name in names:
            await parts.until_ready(name)
        controller = parts.cluster.manager.controllers["kubelet"]
        await eventually(lambda: controller.queue.idle and len(seen) >= 3 * len(names))
        watching.cancel()
        steps: dict[str, list[str]] = {name: [] for name in names}
        for _, pod in seen:
            steps[pod["metadata"]["name"]].append(condition(pod, "Ready"))
        assert set(map(tuple, steps.values())) == {("", "False", "True")}


async def test_events_older_than_the_kubelets_own_writes_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_parts(tmp_path, latencies=Latencies()) as parts:
        await parts.create()
        await eventually(lambda: "startTime" in (parts.pod() or {"status": {}})["status"])
        old = parts.pod()
        await parts.pass_time(3, 0.1)
        ready = await parts.until_ready()
        monkeypatch.setattr(parts.cluster.context.informers.of(PODS), "get", lambda _: old)
        assert await parts.kubelet.reconcile(Key("default", "p")) is Done
        now = await parts.cluster.client.get(PODS, "p", "default")
        assert now["metadata"]["resourceVersion"] == ready["metadata"]["resourceVersion"]


async def test_events_come_from_the_node(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        await parts.cluster.events("p")
        events = (await parts.cluster.client.list_all(GVR("", "v1", "events"), "default")).items
        of_pod = [event for event in events if event["involvedObject"]["name"] == "p"]
        assert {(event["source"]["component"], event["source"]["host"]) for event in of_pod} == {("kubelet", NODE)}


async def test_pods_have_addresses_of_their_nodes_that_no_living_pod_shares(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=2)]) as parts:
        for number in range(30):
            await parts.create(f"p{number}", nodeName=f"t-node-{number % 2 + 1}")
        for number in range(30):
            await parts.until_ready(f"p{number}")
        pods = parts.cluster.context.informers.of(PODS).list()
        assert len({pod["status"]["podIP"] for pod in pods}) == 30
        for pod in pods:
            host = parts.node(pod["spec"]["nodeName"])
            assert host is not None
            assert pod["status"]["podIP"].startswith(host["spec"]["podCIDR"].rpartition(".")[0])
            assert pod["status"]["hostIP"] == host["status"]["addresses"][0]["address"]


async def test_a_pod_on_the_host_network_has_the_nodes_address(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create(hostNetwork=True)
        pod = await parts.until_ready()
        assert pod["status"]["podIP"] == pod["status"]["hostIP"] == "172.18.0.2"


async def test_pods_on_foreign_nodes_are_left_alone(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
        await parts.create("theirs", nodeName="real")
        await parts.create("ours")
        await parts.until_ready("ours")
        theirs = parts.pod("theirs")
        assert theirs is not None
        assert "startTime" not in theirs["status"]


async def test_a_pod_that_waits_for_its_node_starts_when_the_node_comes(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create(nodeName="kwok-1")
        metadata = {"name": "kwok-1", "annotations": {"kwok.x-k8s.io/node": "fake"}}
        await parts.cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        await parts.until_ready()


async def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create("big", {"name": "c", "image": "x", "resources": {"requests": {"cpu": "8"}}})
        pod = await parts.until_phase("Failed", "big")
        assert pod["status"]["reason"] == "OutOfcpu"
        text = "Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000"
        assert pod["status"]["message"] == f"Pod was rejected: {text}"
        assert await parts.cluster.events("big") == [("Warning", "OutOfcpu", text)]


async def test_a_pod_with_a_taken_host_port_fails(tmp_path: Path) -> None:
    web = {"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 8080}]}
    async with node_parts(tmp_path) as parts:
        await parts.create("first", web)
        await parts.until_ready("first")
        await parts.create("second", web)
        pod = await parts.until_phase("Failed", "second")
        assert pod["status"]["reason"] == "NodePorts"


async def test_a_sub_path_that_expands_to_an_absolute_path_prevents_the_start(tmp_path: Path) -> None:
    env = [{"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['where']"}}}]
    mount = {"name": "v", "mountPath": "/x", "subPathExpr": "$(WHERE)"}
    writer = {"name": "c", "image": "x", "env": env, "volumeMounts": [mount]}
    async with node_parts(tmp_path) as parts:
        await parts.create("p", writer, annotations={"where": "/tmp"}, volumes=[{"name": "v", "emptyDir": {}}])
        message = "error SubPath `/tmp` must not be an absolute path"

        def refused() -> bool:
            statuses = ((parts.pod() or {}).get("status") or {}).get("containerStatuses") or [{}]
            expected = {"reason": "CreateContainerConfigError", "message": message}
            return bool((statuses[0].get("state") or {}).get("waiting") == expected)

        await eventually(refused, show=parts.pod)
        await parts.cluster.client.patch(PODS, "p", "default", {"metadata": {"annotations": {"where": "inside"}}})
        await parts.until_ready()


async def test_room_is_given_back_by_pods_that_end_or_go(tmp_path: Path) -> None:
    half = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    async with node_parts(tmp_path) as parts:
        await parts.create("one", half, restartPolicy="Never")
        await parts.until_ready("one")
        await parts.create("refused", half)
        await parts.until_phase("Failed", "refused")
        await parts.pass_time(2)
        await parts.until_phase("Succeeded", "one")
        await parts.create("two", half)
        await parts.until_ready("two")
        await parts.cluster.client.delete(PODS, "two", "default")
        await parts.until_gone("two")
        await parts.create("three", half)
        await parts.until_ready("three")


async def test_a_pod_whose_config_map_is_missing_starts_once_it_is_there(tmp_path: Path) -> None:
    volume = {"name": "v", "configMap": {"name": "settings"}}
    async with node_parts(tmp_path) as parts:
        await parts.create(volumes=[volume])
        message = 'MountVolume.SetUp failed for volume "v" : configmap "settings" not found'

        async def reported() -> bool:
            return ("Warning", "FailedMount", message) in await parts.cluster.events("p")

        await eventually(reported)
        await eventually(lambda: (parts.pod() or {}).get("status", {}).get("containerStatuses"), show=parts.pod)
        assert container(parts.pod())["state"]["waiting"]["reason"] == "ContainerCreating"
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
        await parts.cluster.client.create(CONFIG_MAPS, config_map, "default")
        await parts.until_ready()


async def test_a_container_whose_secret_lacks_a_key_starts_once_it_has_it(tmp_path: Path) -> None:
    source = {"secretKeyRef": {"name": "s", "key": "password"}}
    needy = {"name": "c", "image": "x", "env": [{"name": "A", "valueFrom": source}]}
    secret: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    async with node_parts(tmp_path) as parts:
        await parts.create("p", needy)

        def waiting_for(message: str) -> Any:
            state = container(parts.pod())["state"]
            return state.get("waiting") == {"reason": "CreateContainerConfigError", "message": message}

        await eventually(lambda: parts.pod() and parts.pod()["status"].get("containerStatuses"))
        await eventually(lambda: waiting_for('secret "s" not found'), show=parts.pod)
        await parts.cluster.client.create(SECRETS, secret, "default")
        await eventually(lambda: waiting_for("couldn't find key password in Secret default/s"), show=parts.pod)
        await parts.cluster.client.patch(SECRETS, "s", "default", {"stringData": {"password": "x"}})
        await parts.until_ready()


async def test_optional_references_are_not_waited_for(tmp_path: Path) -> None:
    volume = {"name": "v", "secret": {"secretName": "s", "optional": True}}
    reader = {"name": "c", "image": "x", "envFrom": [{"configMapRef": {"name": "m", "optional": True}}]}
    async with node_parts(tmp_path) as parts:
        await parts.create("p", reader, volumes=[volume])
        await parts.until_ready()


async def test_a_rule_that_is_taken_back_lets_the_pod_start(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        parts.behaviours.add("broken", Rule(Outcome("image-pull-error"), image="^nginx"))
        await parts.create()
        await eventually(lambda: parts.pod() and "ErrImagePull" in str(parts.pod()["status"]))
        await parts.pass_time(2)
        await eventually(lambda: "ImagePullBackOff" in str(parts.pod()), show=parts.pod)
        parts.behaviours.remove("broken")
        await parts.until_ready()


async def test_a_new_rule_reaches_pods_at_rest_and_only_those_it_means(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        for name in ("p", "q"):
            await parts.create(name, {"name": "c", "image": f"image-{name}"})
            await parts.until_ready(name)
        before = parts.pod("q")
        parts.behaviours.add("bad", Rule(Outcome("never-ready"), image="image-p"))
        await parts.until_ready("p", "False")
        parts.behaviours.remove("bad")
        await parts.until_ready("p", "True")
        assert parts.pod("q") is before


async def test_an_annotation_put_on_a_running_pod_takes_effect(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        patch = {"metadata": {"annotations": {ANNOTATION: "never-ready"}}}
        await parts.cluster.client.patch(PODS, "p", "default", patch)
        await parts.until_ready(status="False")


async def test_a_finalizer_keeps_a_pod_that_has_stopped(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        await parts.cluster.client.patch(PODS, "p", "default", {"metadata": {"finalizers": ["example.com/keep"]}})
        await parts.cluster.client.delete(PODS, "p", "default")
        pod = await parts.until_phase("Succeeded")
        await eventually(lambda: (parts.pod() or {})["metadata"]["deletionGracePeriodSeconds"] == 0)
        assert pod["metadata"]["finalizers"] == ["example.com/keep"]
        await parts.cluster.client.patch(PODS, "p", "default", {"metadata": {"finalizers": None}})
        await parts.until_gone()


async def test_a_stuck_pod_goes_when_it_is_released(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        parts.behaviours.add("stuck", Rule(Outcome("stuck-terminating")))
        await parts.create()
        await parts.until_ready()
        await parts.cluster.client.delete(PODS, "p", "default")
        await parts.pass_time(60, 10)
        assert parts.pod() is not None
        parts.behaviours.remove("stuck")
        await parts.until_gone()


async def test_a_pod_deleted_by_force_leaves_nothing_behind(tmp_path: Path) -> None:
    async with node_parts(tmp_path, latencies=Latencies()) as parts:
        await parts.create()
        await eventually(lambda: parts.kubelet._records)
        await parts.cluster.client.delete(PODS, "p", "default", grace_period=0)
        await parts.until_gone()
        await eventually(lambda: not parts.kubelet._records)
        again = await parts.create()
        await parts.pass_time(3, 0.1)
        assert (await parts.until_ready())["metadata"]["uid"] == again["metadata"]["uid"]


async def test_a_pod_at_rest_keeps_no_timer_and_no_run(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        controller = parts.cluster.manager.controllers["kubelet"]
        await eventually(lambda: controller.queue.idle)
        assert controller.queue.delayed == 0
        assert [record.run for record in parts.kubelet._records.values()] == [None]


async def test_nothing_happens_on_a_node_without_power_and_all_is_caught_up_with_later(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        parts.heartbeats.fail([NODE])
        await parts.create("late")
        await parts.cluster.client.delete(PODS, "p", "default")
        await parts.pass_time(40, 5)
        assert parts.pod() is not None
        late = parts.pod("late")
        assert late is not None
        assert "startTime" not in late["status"]
        parts.heartbeats.heal([NODE])
        await parts.until_gone()
        await parts.until_ready("late")


async def test_readiness_taken_by_others_is_given_back_by_the_kubelet(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        pod = await parts.create()
        await parts.until_ready()
        taken = await parts.cluster.set_pod_status(pod, {"conditions": [{"type": "Ready", "status": "False"}]})
        version = int(taken["metadata"]["resourceVersion"])
        await eventually(lambda: int((parts.pod() or {})["metadata"]["resourceVersion"]) > version)
        await parts.until_ready()


async def test_a_readiness_gate_opens(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        pod = await parts.create(readinessGates=[{"conditionType": "example.com/lb"}])
        await parts.until_ready(status="False")
        await eventually(lambda: condition(parts.pod(), "ContainersReady") == "True")
        await parts.cluster.set_pod_status(pod, {"conditions": [{"type": "example.com/lb", "status": "True"}]})
        found = await parts.until_ready()
        assert condition(found, "example.com/lb") == "True"


async def test_an_image_change_through_the_api_restarts_the_container(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        patch = {"spec": {"containers": [{"name": "c", "image": "nginx:1.28"}]}}
        await parts.cluster.client.patch(PODS, "p", "default", patch, type="strategic")
        await eventually(lambda: container(parts.pod())["restartCount"] == 1, show=parts.pod)
        pod = await parts.until_ready()
        assert pod["status"]["observedGeneration"] == 2
        assert container(pod)["image"] == "docker.io/library/nginx:1.28"


async def test_a_resize_through_the_api_shows_in_the_status(tmp_path: Path) -> None:
    small = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    async with node_parts(tmp_path) as parts:
        await parts.create("p", small)
        await parts.until_ready()
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
        await parts.cluster.client.patch(PODS, "p", "default", patch, type="strategic", subresource="resize")
        await eventually(lambda: container(parts.pod())["allocatedResources"] == {"cpu": "2"}, show=parts.pod)


async def test_an_ephemeral_container_runs(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create()
        await parts.until_ready()
        patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        await parts.cluster.client.patch(
            PODS, "p", "default", patch, type="strategic", subresource="ephemeralcontainers"
        )
        await eventually(
            lambda: "running" in str((parts.pod() or {})["status"].get("ephemeralContainerStatuses")), show=parts.pod
        )


async def test_a_failed_write_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node_parts(tmp_path) as parts:
        client = parts.cluster.context.client("kubelet")
        real, failures = client.patch, [ApiError("no"), ApiError("no"), ApiError("no")]

        async def patch(*args: Any, **options: Any) -> Obj:
            if failures:
                raise failures.pop()
            return await real(*args, **options)

        monkeypatch.setattr(client, "patch", patch)
        await parts.create()
        await eventually(lambda: len(failures) < 3)
        await parts.pass_time(0.1, 0.005)
        await parts.until_ready()
        assert not failures


async def test_a_pod_deleted_while_its_last_status_is_written_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_parts(tmp_path) as parts:
        acted = _before_a_ready_status(
            parts, monkeypatch, lambda: parts.cluster.client.delete(PODS, "p", "default", grace_period=30)
        )
        await parts.create()
        await acted.wait()
        await parts.until_gone()


async def test_an_image_changed_while_the_last_status_is_written_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"spec": {"containers": [{"name": "c", "image": "nginx:1.28"}]}}
    async with node_parts(tmp_path) as parts:
        _before_a_ready_status(
            parts, monkeypatch, lambda: parts.cluster.client.patch(PODS, "p", "default", change, type="strategic")
        )
        await parts.create()
        await eventually(
            lambda: "nginx:1.28" in str((parts.pod() or {}).get("status")) and container(parts.pod())["ready"],
            show=parts.pod,
        )


def _before_a_ready_status(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[object]]
) -> asyncio.Event:
    """Once, somebody acts just before the kubelet writes that a pod is ready; the event shows when."""
    client = parts.cluster.context.client("kubelet")
    real, acted = client.patch, asyncio.Event()

    async def patch(gvr: GVR, name: str, namespace: str, body: Obj, **options: Any) -> Obj:
        if condition(body, "Ready") == "True" and not acted.is_set():
            acted.set()
            await act()
        return await real(gvr, name, namespace, body, **options)

    monkeypatch.setattr(client, "patch", patch)
    return acted


async def test_a_restart_takes_up_pods_where_they_were(tmp_path: Path) -> None:
    """A second kubelet over the same API: addresses stay apart, crash loops keep their count, jobs end once."""
    clock = FakeClock()
    second: list[Kubelet] = []
    async with running(tmp_path, lambda _: [], profile=Profile("t", latencies=INSTANT), clock=clock) as cluster:
        node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"type": "sim"}}}
        node["spec"] = {"podCIDR": "10.244.7.0/24"}
        await cluster.client.create(NODES, node)
        status = {
            "phase": "Running",
            "startTime": "2023-11-14T22:13:20Z",
            "podIP": "10.244.7.2",
            "containerStatuses": [
                {
                    "name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                    "lastState": {
                        "terminated": {
                            "exitCode": 1, "startedAt": "2023-11-14T22:13:19Z", "finishedAt": "2023-11-14T22:13:20Z",
                        }
                    },
                }
            ],
        }  # fmt: skip
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old"}}
        pod["metadata"]["annotations"] = {ANNOTATION: "crash-loop"}
        pod["spec"] = {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]}
        made = await cluster.client.create(PODS, pod, "default")
        await cluster.set_pod_status(made, status)
        second.append(Kubelet(cluster.context, Behaviours()))
        controller = cluster.manager.add(second[0])
        cluster.context.informers.start()
        await controller.start()
        try:
            new = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": pod["spec"]}
            await cluster.client.create(PODS, new, "default")
            pods = cluster.context.informers.of(PODS)
            await eventually(lambda: all(p["status"].get("podIP") for p in pods.list()) and len(pods) == 2)
            addresses = {p["metadata"]["name"]: p["status"]["podIP"] for p in pods.list()}
            assert addresses == {"old": "10.244.7.2", "new": "10.244.7.3"}
            await clock.advance(79)
            old = next(p for p in pods.list() if p["metadata"]["name"] == "old")
            assert container(old)["restartCount"] == 4
            await clock.advance(2)
            await eventually(
                lambda: next(container(p) for p in pods.list() if p["metadata"]["name"] == "old")["restartCount"] == 5
            )
        finally:
            await controller.stop()
