"""The life of a pod by itself: no server, time as plain numbers; a runtime's observations take the place of timers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.sim.behaviours import OK, Outcome, parse_outcome
from karmada.kube.sim.kubelet.images import container_id, full_name, image_id
from karmada.kube.sim.kubelet.podlifecycle import KILL_SECONDS
from karmada.kube.sim.kubelet.restarting import pause_before
from karmada.kube.sim.kubelet.run import NEVER
from karmada.kube.sim.kubelet.runtime import Observed
from tests.kube.sim.pod_steps import PROBED, Life, pod_of
from tests.support.cases import cases

# --- starting


def test_a_pod_without_a_readiness_probe_becomes_running_and_ready_in_one_step() -> None:
    life = Life(pod_of()).until(60)
    assert [(time, status["phase"]) for time, status in life.history] == [(0.0, "Pending"), (0.6, "Running")]
    assert [c["status"] for c in life.history[-1][1]["conditions"]] == ["True"] * 5


def test_a_start_with_a_readiness_probe_is_three_steps() -> None:
    life = Life(pod_of(PROBED)).until(60)
    assert [(time, status["phase"]) for time, status in life.history] == [
        (0.0, "Pending"),
        (0.6, "Running"),
        (0.8, "Running"),
    ]
    accepted, running, ready = (status for _, status in life.history)
    assert accepted["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert accepted["hostIP"] == "172.18.0.2"
    assert "podIP" not in accepted
    assert running["podIPs"] == [{"ip": "10.244.0.2"}]
    assert [c["status"] for c in running["conditions"]] == ["True", "True", "False", "False", "True"]
    assert [c["status"] for c in ready["conditions"]] == ["True"] * 5
    assert life.run.due == NEVER
    assert life.reasons() == ["Pulling", "Pulled", "Created", "Started"]


def test_the_status_of_a_running_pod_has_the_shape_clients_know() -> None:
    resources = {"requests": {"cpu": "100m"}}
    mounts = [{"name": "v", "mountPath": "/x", "readOnly": True}, {"name": "w", "mountPath": "/y"}]
    container = {"name": "c", "image": "nginx:1.27", "resources": resources, "volumeMounts": mounts}
    life = Life(pod_of(container)).until(60)
    assert [c["type"] for c in life.status["conditions"]] == [
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled",
    ]  # fmt: skip
    assert all(c["observedGeneration"] == 1 for c in life.status["conditions"])
    emitted = dict(life.container())
    assert emitted.pop("containerID") == container_id("u-1", "c", 0)
    assert emitted == {
        "name": "c",
        "image": "docker.io/library/nginx:1.27",
        "imageID": image_id("nginx:1.27"),
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2023-11-14T22:13:20Z"}},
        "lastState": {},
        "resources": resources,
        "allocatedResources": {"cpu": "100m"},
        "volumeMounts": [
            {"name": "v", "mountPath": "/x", "readOnly": True, "recursiveReadOnly": "Disabled"},
            {"name": "w", "mountPath": "/y"},
        ],
    }


def test_an_old_cluster_reports_less() -> None:
    life = Life(pod_of(), minor=24).until(60)
    assert "observedGeneration" not in life.status
    assert "hostIPs" not in life.status
    assert life.status["conditions"][0]["type"] == "Initialized"
    assert "resources" not in life.container()


def test_an_image_that_is_there_is_not_pulled_again() -> None:
    life = Life(pod_of())
    life.images.add(full_name("nginx:1.27"))
    life.until(60)
    assert life.history[1][0] == 0.1
    assert life.emitted[0] == ("Pulled", 'Container image "nginx:1.27" already present on machine')


def test_a_probe_that_starts_late_makes_the_pod_ready_late() -> None:
    container = {"name": "c", "image": "nginx", "readinessProbe": {"initialDelaySeconds": 5}}
    assert Life(pod_of(container)).until(60).history[-1][0] == 5.6


def test_init_containers_run_one_by_one_before_the_others() -> None:
    init = [{"name": "i1", "image": "busybox"}, {"name": "i2", "image": "busybox", "command": ["sleep", "3"]}]
    life = Life(pod_of(PROBED, initContainers=init)).until(60)
    first = life.history[0][1]
    assert first["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    initialized = first["conditions"][1]
    assert initialized["reason"] == "ContainersNotInitialized"
    assert initialized["message"] == "containers with incomplete status: [i1 i2]"
    seen = [
        tuple(next(iter(c["state"])) for c in (*status["initContainerStatuses"], *status["containerStatuses"]))
        for _, status in life.history
    ]
    assert seen == [
        ("waiting", "waiting", "waiting"),
        ("running", "waiting", "waiting"),
        ("terminated", "waiting", "waiting"),
        ("terminated", "running", "waiting"),
        ("terminated", "terminated", "waiting"),
        ("terminated", "terminated", "running"),
        ("terminated", "terminated", "running"),
    ]
    assert life.container("initContainerStatuses")["ready"] is True
    assert life.container("initContainerStatuses", 1)["state"]["terminated"]["reason"] == "Completed"


def test_a_sidecar_stays_and_lets_the_others_begin() -> None:
    sidecar = {"name": "s", "image": "envoy", "restartPolicy": "Always"}
    life = Life(pod_of(initContainers=[sidecar])).until(60)
    assert "running" in life.container("initContainerStatuses")["state"]
    assert life.status["phase"] == "Running"
    assert life.condition("Ready")["status"] == "True"


def test_sidecars_end_with_the_job_they_accompany() -> None:
    sidecar = {"name": "s", "image": "envoy", "restartPolicy": "Always"}
    life = Life(pod_of(initContainers=[sidecar], restartPolicy="Never")).until(60)
    assert life.status["phase"] == "Succeeded"
    assert life.container("initContainerStatuses")["state"]["terminated"]["exitCode"] == 0


def test_an_init_container_that_fails_fails_a_pod_that_never_restarts() -> None:
    init = [{"name": "i", "image": "busybox", "command": ["false"]}]
    life = Life(pod_of(initContainers=init, restartPolicy="Never")).until(60)
    assert life.status["phase"] == "Failed"
    assert "waiting" in life.container()["state"]


def test_a_pod_is_ready_when_its_gates_are_open_too() -> None:
    life = Life(pod_of(readinessGates=[{"conditionType": "example.com/lb"}])).until(60)
    assert life.condition("ContainersReady")["status"] == "True"
    assert life.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    assert "does not exist" in life.condition("Ready")["message"]
    gate = {"type": "example.com/lb", "status": "True"}
    life.pod = {**life.pod, "status": {**life.pod["status"], "conditions": [*life.status["conditions"], gate]}}
    life.restart()
    life.look()
    assert life.condition("Ready")["status"] == "True"


def test_a_pod_waits_for_its_volumes_and_goes_on_when_they_can_be_mounted() -> None:
    life = Life(pod_of())
    life.mount_error = "nope"
    life.until(30)
    assert len(life.history) == 1
    assert life.run.due == NEVER
    life.mount_error = ""
    life.until(60)
    assert life.condition("Ready")["status"] == "True"


def test_a_container_that_lacks_its_configuration_is_created_once_it_is_there() -> None:
    life = Life(pod_of())
    life.config_errors = {"c": 'configmap "x" not found'}
    life.until(30)
    waiting = life.container()["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "x" not found'}
    assert life.status["phase"] == "Pending"
    assert ("Failed", 'Error: configmap "x" not found') in life.emitted
    life.config_errors = {}
    life.until(60)
    assert life.status["phase"] == "Running"
    assert life.container()["restartCount"] == 0


# --- ending


@cases(
    ("Never", "ok", "Succeeded", 0),
    ("OnFailure", "ok", "Succeeded", 0),
    ("Never", "run-for 5s exit 3", "Failed", 3),
    ("Never", "oom", "Failed", 137),
)
def test_batch_pods_end(policy: str, text: str, phase: str, code: int) -> None:
    life = Life(pod_of(restartPolicy=policy), parse_outcome(text)).until(60)
    assert life.status["phase"] == phase
    assert life.container()["state"]["terminated"]["exitCode"] == code
    assert life.condition("Ready")["reason"] == ("PodCompleted" if phase == "Succeeded" else "PodFailed")
    assert life.run.due == NEVER


def test_a_job_runs_for_a_second_unless_its_command_says_more() -> None:
    assert Life(pod_of(restartPolicy="Never")).until(60).history[-1][0] == 1.6
    slow = {"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 20 && exit 4"]}
    life = Life(pod_of(slow, restartPolicy="Never")).until(60)
    assert life.history[-1][0] == 20.6
    assert life.container()["state"]["terminated"]["exitCode"] == 4


def test_a_failing_container_is_restarted_on_failure() -> None:
    life = Life(pod_of(restartPolicy="OnFailure"), parse_outcome("run-for 1s exit 1")).until(3)
    assert life.container()["restartCount"] == 1
    assert life.status["phase"] == "Running"


def test_a_crash_loop_restarts_at_once_and_then_after_growing_pauses() -> None:
    life = Life(pod_of(), Outcome("crash-loop")).until(200)
    messages = [
        status["containerStatuses"][0]["state"]["waiting"]["message"]
        for _, status in life.history
        if status["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
    ]
    assert messages[:3] == [
        f"back-off {pause} restarting failed container=c pod=p_default(u-1)" for pause in ("10s", "20s", "40s")
    ]
    assert life.status["phase"] == "Running"
    assert life.container()["lastState"]["terminated"]["exitCode"] == 1
    assert life.container()["lastState"]["terminated"]["reason"] == "Error"
    assert ("BackOff", "Back-off restarting failed container c in pod p_default(u-1)") in life.emitted
    starts = [time for time, status in life.history if "running" in status["containerStatuses"][0]["state"]]
    assert life.container()["restartCount"] == len({round(start) for start in starts}) - 1


def test_a_container_out_of_memory_says_so() -> None:
    life = Life(pod_of(), Outcome("oom")).until(1.6)
    assert life.container()["state"]["terminated"]["reason"] == "OOMKilled"
    assert life.until(2).container()["restartCount"] == 1


@cases(
    (0, 1, 0), (1, 1, 10), (2, 1, 20), (3, 1, 40), (6, 1, 300), (99, 1, 300), (5, 700, 0),
)  # fmt: skip
def test_pauses_double_up_to_five_minutes(restarts: int, ran: float, pause: float) -> None:
    assert pause_before(restarts, ran) == pause


def test_an_active_deadline_ends_a_pod() -> None:
    life = Life(pod_of(activeDeadlineSeconds=20)).until(60)
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert life.status["message"] == "Pod was active on the node longer than the specified deadline"
    assert "terminated" in life.container()["state"]


def test_an_evicted_pod_says_why() -> None:
    life = Life(pod_of(), parse_outcome("evicted 5s")).until(60)
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "Evicted")
    assert life.status["message"].startswith("The node was low on resource: memory.")
    assert life.condition("DisruptionTarget")["reason"] == "TerminationByKubelet"


# --- other outcomes


def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending_until_it_can() -> None:
    life = Life(pod_of(), Outcome("image-pull-error")).until(40)
    reasons = [status["containerStatuses"][0]["state"]["waiting"]["reason"] for _, status in life.history]
    assert reasons == ["ContainerCreating", *["ErrImagePull", "ImagePullBackOff"] * 3][: len(reasons)]
    assert len(reasons) >= 5
    assert life.status["phase"] == "Pending"
    assert life.status["podIP"]
    assert ("BackOff", 'Back-off pulling image "nginx:1.27"') in life.emitted
    life.outcome = OK
    life.until(42)
    assert life.condition("Ready")["status"] == "True"
    assert life.container()["restartCount"] == 0


def test_never_ready_lasts_until_the_rule_goes() -> None:
    life = Life(pod_of(), Outcome("never-ready")).until(100)
    assert life.status["phase"] == "Running"
    assert life.condition("Ready")["reason"] == "ContainersNotReady"
    assert life.condition("Ready")["message"] == "containers with unready status: [c]"
    assert life.reasons().count("Unhealthy") == 1
    assert life.run.due == NEVER
    life.outcome = OK
    assert life.until(101).condition("Ready")["status"] == "True"


def test_a_ready_pod_can_become_unready_and_crash() -> None:
    life = Life(pod_of()).until(100)
    life.outcome = Outcome("never-ready")
    assert life.until(101).condition("Ready")["status"] == "False"
    life.outcome = Outcome("crash-loop")
    assert "terminated" in life.until(101).container()["state"]


def test_ready_after_delays_readiness() -> None:
    life = Life(pod_of(), parse_outcome("ready-after 30s")).until(60)
    assert life.history[-1][0] == 30.6


def test_a_flapping_pod_turns_again_and_again() -> None:
    life = Life(pod_of(PROBED), parse_outcome("flap 10s")).until(45)
    turns = [time for time, _ in life.history][2:]
    assert turns == [0.8, 10.8, 20.8, 30.8, 40.8]


def test_a_slow_start_replaces_the_latencies() -> None:
    assert Life(pod_of(), parse_outcome("slow-start 7s")).until(60).history[1][0] == 7.0


def test_an_outcome_for_one_container_leaves_the_others_alone() -> None:
    pod = pod_of({"name": "a", "image": "a"}, {"name": "b", "image": "b"})
    life = Life(pod, Outcome("never-ready", containers=("b",))).until(60)
    assert [life.container(index=i)["ready"] for i in range(2)] == [True, False]
    assert life.condition("Ready")["message"] == "containers with unready status: [b]"


# --- changes


def test_another_image_restarts_the_container() -> None:
    life = Life(pod_of()).until(10)
    life.change(containers=[{"name": "c", "image": "nginx:1.28"}])
    life.until(20)
    assert life.container()["image"] == "docker.io/library/nginx:1.28"
    assert life.container()["restartCount"] == 1
    assert life.container()["lastState"]["terminated"]["exitCode"] == 0
    assert ("Killing", "Container c definition changed, will be restarted") in life.emitted


def test_a_wrong_image_that_is_corrected_starts() -> None:
    life = Life(pod_of({"name": "c", "image": "typo"}), Outcome("image-pull-error", containers=("c",))).until(30)
    life.change(containers=[{"name": "c", "image": "nginx"}])
    life.outcome = OK
    assert life.until(31).container()["image"] == "docker.io/library/nginx:latest"


def test_a_resize_shows_in_the_status() -> None:
    def container(cpu: str) -> dict[str, Any]:
        return {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}

    life = Life(pod_of(container("1"))).until(10)
    life.change(containers=[container("2")])
    life.until(11)
    assert life.container()["resources"] == {"requests": {"cpu": "2"}}
    assert life.container()["allocatedResources"] == {"cpu": "2"}
    assert life.container()["restartCount"] == 0


def test_a_resize_restarts_a_container_that_wants_it() -> None:
    def container(cpu: str) -> dict[str, Any]:
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        return {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}, "resizePolicy": policy}

    life = Life(pod_of(container("1"))).until(10)
    life.change(containers=[container("2")])
    assert life.until(12).container()["restartCount"] == 1
    assert life.container()["resources"] == {"requests": {"cpu": "2"}}


def test_an_ephemeral_container_joins_a_running_pod() -> None:
    life = Life(pod_of()).until(10)
    life.restart()
    life.change(ephemeralContainers=[{"name": "debug", "image": "busybox"}])
    life.until(20)
    assert "running" in life.container("ephemeralContainerStatuses")["state"]
    assert life.condition("Ready")["status"] == "True"


# --- deletion


def test_a_deleted_pod_stops_within_its_grace() -> None:
    life = Life(pod_of()).until(10)
    life.delete()
    life.until(20)
    assert life.run.stopped
    assert life.status["phase"] == "Succeeded"
    assert life.container()["state"]["terminated"]["reason"] == "Completed"
    assert life.condition("Ready")["status"] == "False"
    assert life.emitted[-1] == ("Killing", "Stopping container c")


def test_a_stuck_pod_stops_when_it_is_released() -> None:
    life = Life(pod_of(), Outcome("stuck-terminating")).until(10)
    life.delete()
    life.until(1000)
    assert not life.run.stopped
    assert "running" in life.container()["state"]
    life.outcome = OK
    life.until(1001)
    assert life.run.stopped


# --- forgetting


@given(
    text=st.sampled_from(["ok", "crash-loop", "image-pull-error", "never-ready", "flap 3s", "ready-after 9s", "oom"]),
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    cuts=st.lists(st.floats(0.05, 15), max_size=5),
)
def test_forgetting_at_any_moment_never_loses_restarts_nor_resurrects_the_dead(
    text: str, policy: str, cuts: list[float]
) -> None:
    life = Life(pod_of(restartPolicy=policy), parse_outcome(text))
    moment = 0.0
    for cut in cuts:
        moment += cut
        life.until(moment)
        before, restarts = life.status["phase"], life.container()["restartCount"]
        if before in ("Succeeded", "Failed"):
            return
        life.restart()
        life.look()
        assert life.container()["restartCount"] >= restarts
    life.until(moment + 40)
    history = [status for _, status in life.history]
    counts = [status["containerStatuses"][0]["restartCount"] for status in history]
    assert counts == sorted(counts)
    terminal = [i for i, status in enumerate(history) if status["phase"] in ("Succeeded", "Failed")]
    assert terminal in ([], [len(history) - 1])
    if text == "ok" and policy == "Always":
        assert life.condition("Ready")["status"] == "True"


def run_by_a_runtime(**spec: Any) -> Life:
    life = Life(pod_of(PROBED, **spec))
    life.observed = {"c": Observed(0)}
    return life.until(60)


def test_the_readiness_of_a_container_that_runs_is_observed() -> None:
    life = run_by_a_runtime()
    assert "running" in life.container()["state"]
    assert not life.container()["ready"]
    life.observed = {"c": Observed(0, started=True, ready=True)}
    assert life.until(61).container()["ready"]
    life.observed = {"c": Observed(0, started=True, ready=False)}
    assert not life.until(62).container()["ready"]
    assert life.run.due == NEVER


@cases("Always", "OnFailure", "Never")
def test_a_container_that_runs_ends_when_its_process_does(policy: str) -> None:
    life = run_by_a_runtime(restartPolicy=policy)
    assert "running" in life.until(10_000).container()["state"]
    life.observed = {"c": Observed(0, 3, message="why")}
    life.until(10_000.0)
    if policy == "Never":
        ended = life.container()["state"]["terminated"]
    else:
        life.until(10_001)
        assert life.container()["restartCount"] == 1
        ended = life.container()["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why")


def test_what_was_observed_of_an_earlier_run_does_not_end_a_later_one() -> None:
    life = run_by_a_runtime()
    life.observed = {"c": Observed(0, 1)}
    life.until(70)
    assert life.container()["restartCount"] == 1
    assert "running" in life.container()["state"]


def test_a_deleted_pod_stays_until_its_processes_have_ended_and_reports_how() -> None:
    life = run_by_a_runtime()
    life.delete(grace=30)
    life.until(80)
    assert not life.run.stopped
    assert life.reasons().count("Killing") == 1
    life.observed = {"c": Observed(0, 143)}
    life.until(80.5)
    assert life.run.stopped
    assert life.container()["state"]["terminated"]["exitCode"] == 143


def test_a_process_that_cannot_be_ended_does_not_keep_its_pod_forever() -> None:
    life = run_by_a_runtime()
    life.delete(grace=30)
    assert not life.until(60 + 30 + KILL_SECONDS - 1).run.stopped
    assert life.until(60 + 30 + KILL_SECONDS + 1).run.stopped


def test_an_outcome_prescribes_what_is_otherwise_observed() -> None:
    life = run_by_a_runtime()
    life.observed = {"c": Observed(0, started=True, ready=True)}
    life.outcome = parse_outcome("never-ready")
    assert not life.until(61).container()["ready"]
    life.outcome = parse_outcome("run-for 5s exit 9")
    assert life.until(62).container()["lastState"]["terminated"]["exitCode"] == 9
