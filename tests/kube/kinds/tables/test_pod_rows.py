"""The Status, Ready and Restarts of a Pod in all its states."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.tables import printer_of_kind
from karmada.kube.objects.times import rfc3339
from tests.support.cases import cases

NOW = 1_700_000_000.0
POD = printer_of_kind("", "Pod")

RUNNING: dict[str, Any] = {"running": {"startedAt": rfc3339(NOW - 60)}}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}


def waiting(reason: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason} if reason else {}}


def ended(code: int, reason: str = "", signal: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def status_of(name: str, state: dict[str, Any], *, ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": ready, "restartCount": 0, **more}


def pod(
    phase: str = "Running",
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    sidecars: tuple[str, ...] = (),
    conditions: dict[str, str] | None = None,
    deleting: bool = False,
    **status: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "web", "creationTimestamp": rfc3339(NOW - 90)}
    if deleting:
        metadata["deletionTimestamp"] = rfc3339(NOW)
    policies = {name: {"restartPolicy": "Always"} for name in sidecars}
    spec: dict[str, Any] = {"containers": [{"name": each["name"]} for each in containers]}
    if init:
        spec["initContainers"] = [{"name": each["name"], **policies.get(each["name"], {})} for each in init]
        status["initContainerStatuses"] = list(init)
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {
            "phase": phase,
            "containerStatuses": list(containers),
            "conditions": [{"type": kind, "status": value} for kind, value in (conditions or {}).items()],
            **status,
        },
    }


MAIN_WAITS = status_of("a", waiting("PodInitializing"))
UP = status_of("a", RUNNING, ready=True)


@cases(
    (pod("Pending"), "Pending", "0/0"),
    (pod("Running", UP), "Running", "1/1"),
    (pod("Running", UP, status_of("b", RUNNING)), "Running", "1/2"),
    (pod("Failed", reason="Evicted"), "Evicted", "0/0"),
    (pod("Pending", status_of("a", waiting("ContainerCreating"))), "ContainerCreating", "0/1"),
    (pod("Running", status_of("a", waiting("CrashLoopBackOff"))), "CrashLoopBackOff", "0/1"),
    (pod("Pending", status_of("a", waiting("ImagePullBackOff")), UP | {"name": "b"}), "ImagePullBackOff", "1/2"),
    (pod("Succeeded", status_of("a", DONE)), "Completed", "0/1"),
    (pod("Failed", status_of("a", ended(1, "Error"))), "Error", "0/1"),
    (pod("Failed", status_of("a", ended(3))), "ExitCode:3", "0/1"),
    (pod("Failed", status_of("a", ended(137, signal=9))), "Signal:9", "0/1"),
    (pod("Running", status_of("a", ended(1, "Error")), status_of("b", ended(2, "OOMKilled"))), "Error", "0/2"),
    (pod("Running", status_of("a", DONE), UP | {"name": "b"}, conditions={"Ready": "True"}), "Running", "1/2"),
    (pod("Running", status_of("a", DONE), UP | {"name": "b"}, conditions={"Ready": "False"}), "NotReady", "1/2"),
    (
        pod("Running", status_of("a", DONE), status_of("b", ended(1, "Error")), UP | {"name": "c"}),
        "Error", "1/3",
    ),
    (pod("Running", UP, deleting=True), "Terminating", "1/1"),
    (pod("Running", UP, deleting=True, reason="NodeLost"), "Unknown", "1/1"),
    (pod("Succeeded", status_of("a", DONE), deleting=True), "Completed", "0/1"),
    (
        pod("Pending", conditions={}) | {"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}},
        "SchedulingGated", "0/0",
    ),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", RUNNING), status_of("j", waiting()))), "Init:0/2", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", DONE), status_of("j", RUNNING))), "Init:1/2", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", waiting("PodInitializing")),)), "Init:0/1", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", waiting("ErrImagePull")),)), "Init:ErrImagePull", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", ended(1, "Error")),)), "Init:Error", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", ended(2)),)), "Init:ExitCode:2", "0/1"),
    (pod("Pending", MAIN_WAITS, init=(status_of("i", ended(2, signal=15)),)), "Init:Signal:15", "0/1"),
    (pod("Running", UP, init=(status_of("i", DONE),)), "Running", "1/1"),
    (
        pod("Running", UP, init=(status_of("s", RUNNING, ready=True, started=True),), sidecars=("s",)),
        "Running", "2/2",
    ),
    (
        pod("Pending", MAIN_WAITS, init=(status_of("s", RUNNING, started=False),), sidecars=("s",)),
        "Init:0/1", "0/2",
    ),
    (
        pod("Running", UP, init=(status_of("s", waiting("CrashLoopBackOff")),), sidecars=("s",),
            conditions={"Initialized": "True"}),
        "Init:CrashLoopBackOff", "1/2",
    ),
)  # fmt: skip
def test_a_pod_is_summed_up_in_one_word(obj: dict[str, Any], state: str, ready: str) -> None:
    cells = POD.cells(obj, NOW)
    assert (cells[2], cells[1]) == (state, ready)


def crashed(name: str, times: int, ago: float) -> dict[str, Any]:
    last = {"terminated": {"exitCode": 1, "finishedAt": rfc3339(NOW - ago)}}
    return status_of(name, RUNNING, ready=True) | {"restartCount": times, "lastState": last}


def test_restarts_are_summed_and_show_the_latest() -> None:
    assert POD.cells(pod("Running", UP), NOW)[3] == "0"
    assert POD.cells(pod("Running", UP | {"restartCount": 2}), NOW)[3] == "2"
    assert POD.cells(pod("Running", crashed("a", 2, 300), crashed("b", 1, 60)), NOW)[3] == "3 (60s ago)"


def test_restarts_of_init_containers_count_only_until_they_are_done_unless_they_stay() -> None:
    initialising = pod("Pending", MAIN_WAITS, init=(crashed("i", 4, 30) | {"state": waiting("CrashLoopBackOff")},))
    assert POD.cells(initialising, NOW)[3] == "4 (30s ago)"
    done = pod("Running", crashed("a", 1, 300), init=(crashed("i", 4, 30) | {"state": DONE},))
    assert POD.cells(done, NOW)[3] == "1 (5m ago)"
    sidecar = pod("Running", crashed("a", 1, 300), init=(crashed("s", 4, 30) | {"started": True},), sidecars=("s",))
    assert POD.cells(sidecar, NOW)[3] == "5 (30s ago)"


def test_the_wide_cells_show_where_a_pod_runs() -> None:
    bare = pod("Pending")
    assert POD.cells(bare, NOW)[4:] == ["90s", "<none>", "<none>", "<none>", "<none>"]
    placed = pod("Running", UP, podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}], conditions={"x.io/lb": "True"})
    placed["spec"]["nodeName"] = "node-1"
    placed["spec"]["readinessGates"] = [{"conditionType": "x.io/lb"}, {"conditionType": "x.io/dns"}]
    placed["status"]["nominatedNodeName"] = "node-2"
    assert POD.cells(placed, NOW)[5:] == ["10.0.0.1", "node-1", "node-2", "1/2"]


@cases("Succeeded", "Failed")
def test_the_row_of_a_finished_pod_is_marked_completed(phase: str) -> None:
    (condition,) = POD.conditions(pod(phase))
    assert (condition["type"], condition["status"], condition["reason"]) == ("Completed", "True", phase)


def test_the_row_of_a_running_pod_is_not_marked() -> None:
    assert POD.conditions(pod("Running", UP)) == []
