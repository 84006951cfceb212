"""The status a kubelet writes for what runs, and the patch that brings a stored status there.

`status_of` says everything the kubelet owns; conditions that others own (readiness gates, disruption targets) stay as
they are. `patch_of` holds only what differs, so that a pod whose status is right already costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.images import container_id, full_name, image_id
from karmada.kube.sim.kubelet.run import Container, Role, Run

_HAS_IPS, _HAS_SANDBOX_CONDITION, _ENDS_DELETED, _HAS_RESOURCES, _HAS_MOUNTS, _HAS_GENERATION = 29, 29, 27, 33, 31, 34
"""Minor versions in which parts of a pod's status came."""
_OWN = (
    "observedGeneration",
    "phase",
    "reason",
    "message",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
_LISTS: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("initContainerStatuses", ("init", "sidecar")),
    ("containerStatuses", ("main",)),
    ("ephemeralContainerStatuses", ("ephemeral",)),
)


def status_of(run: Run, host_ip: str, minor: int, now: float) -> Obj:
    pod = run.pod
    phase = phase_of(run, minor)
    status: Obj = {"phase": phase, "startTime": rfc3339(run.began)}
    if minor >= _HAS_GENERATION:
        status["observedGeneration"] = pod["metadata"].get("generation") or 1
    if run.final is not None:
        status["reason"], status["message"] = run.final.reason, run.final.message
    if host_ip:
        status["hostIP"] = host_ip
        if minor >= _HAS_IPS:
            status["hostIPs"] = [{"ip": host_ip}]
    if run.sandbox and run.ip:
        status["podIP"], status["podIPs"] = run.ip, [{"ip": run.ip}]
    waiting = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
    for key, roles in _LISTS:
        entry = [_container_status(container, run.uid, waiting, minor) for container in run.of(*roles)]
        if entry:
            status[key] = entry
    status["conditions"] = _conditions(run, phase, minor, now)
    return status


def rejection(pod: Obj, reason: str, message: str, minor: int, now: float) -> Obj:
    """Return the status of a pod that the node rejects."""
    status: Obj = {"phase": "Failed", "reason": reason, "message": message, "startTime": rfc3339(now)}
    if minor >= _HAS_GENERATION:
        status["observedGeneration"] = pod["metadata"].get("generation") or 1
    return status


# --- phase


def phase_of(run: Run, minor: int) -> str:
    if run.final is not None:
        return "Failed"
    if run.over or (run.stopped and minor >= _ENDS_DELETED):
        ends = [c for c in run.containers if c.role in ("init", "main")]
        succeeded = all(c.state == "terminated" and c.exit_code == 0 for c in ends)
        return "Succeeded" if succeeded else "Failed"
    if not all(container.passed for container in run.of("init", "sidecar")):
        return "Pending"
    mains = list(run.of("main"))
    if any(c.state == "waiting" and c.last is None for c in mains):
        return "Pending"
    return "Running"


# --- containers


def end_of(container: Container, pod_uid: str) -> Obj:
    """Return how a container ended, as `terminated` in its state."""
    end: Obj = {
        "containerID": container_id(pod_uid, container.name, container.restarts),
        "exitCode": container.exit_code,
        "finishedAt": rfc3339(container.finished_at),
        "reason": container.reason,
        "startedAt": rfc3339(container.started_at),
    }
    if container.message:
        end["message"] = container.message
    return end


def _container_status(container: Container, pod_uid: str, waiting: str, minor: int) -> Obj:
    """Return the state of a container; one that has run before keeps its ids while it waits to run again."""
    has_run = container.state != "waiting" or container.last is not None
    entry: Obj = {
        "name": container.name,
        "image": full_name(container.image) if has_run else container.image,
        "imageID": image_id(container.image) if has_run else "",
        "ready": container.ready,
        "started": container.started,
        "restartCount": container.restarts,
        "state": _state(container, pod_uid, waiting),
        "lastState": {"terminated": container.last} if container.last is not None else {},
    }
    if has_run:
        entry["containerID"] = container_id(pod_uid, container.name, container.restarts)
    if container.state == "running" and container.resources is not None and minor >= _HAS_RESOURCES:
        entry["resources"] = container.resources
        if container.resources.get("requests"):
            entry["allocatedResources"] = container.resources["requests"]
    if minor >= _HAS_MOUNTS and container.spec.get("volumeMounts"):
        entry["volumeMounts"] = [_mount(mount) for mount in container.spec["volumeMounts"]]
    return entry


def _state(container: Container, pod_uid: str, waiting: str) -> Obj:
    if container.state == "running":
        return {"running": {"startedAt": rfc3339(container.started_at)}}
    if container.state == "terminated":
        return {"terminated": end_of(container, pod_uid)}
    entry: Obj = {"reason": container.reason or waiting}
    if container.message:
        entry["message"] = container.message
    return {"waiting": entry}


def _mount(mount: Obj) -> Obj:
    entry: Obj = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        entry["readOnly"] = True
        entry["recursiveReadOnly"] = "Disabled"
    return entry


# --- conditions


def _conditions(run: Run, phase: str, minor: int, now: float) -> list[Obj]:
    pod = run.pod
    stored = (pod.get("status") or {}).get("conditions")
    wanted: list[tuple[str, bool, str, str]] = []
    if run.final is not None and run.final.disrupted:
        wanted.append(("DisruptionTarget", True, "TerminationByKubelet", run.final.message))
    if minor >= _HAS_SANDBOX_CONDITION:
        ended = phase in ("Succeeded", "Failed") or run.stopped
        wanted.append(("PodReadyToStartContainers", run.sandbox and not ended, "", ""))
    wanted.append(("Initialized", *_initialized(run, phase)))
    containers = _containers_ready(run, phase)
    wanted.append(("Ready", *_with_gates(pod, stored, containers)))
    wanted.append(("ContainersReady", *containers))
    wanted.append(("PodScheduled", True, "", ""))
    made = []
    for kind, holds, reason, message in wanted:
        old = get_condition(stored, kind)
        status = "True" if holds else "False"
        same = old is not None and old.get("status") == status and old.get("lastTransitionTime")
        condition: Obj = {"type": kind, "status": status}
        condition["lastTransitionTime"] = old["lastTransitionTime"] if old is not None and same else rfc3339(now)
        if minor >= _HAS_GENERATION:
            condition["observedGeneration"] = pod["metadata"].get("generation") or 1
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        made.append(condition)
    return made


_Verdict = tuple[bool, str, str]


def _initialized(run: Run, phase: str) -> _Verdict:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    missing = [container.name for container in run.of("init", "sidecar") if not container.passed]
    if missing and not run.stopped:
        return False, "ContainersNotInitialized", f"containers with incomplete status: {_listed(missing)}"
    return True, "", ""


def _containers_ready(run: Run, phase: str) -> _Verdict:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    unready = [container.name for container in run.of("sidecar", "main") if not container.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: {_listed(unready)}"
    return True, "", ""


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


def _with_gates(pod: Obj, stored: Any, containers: _Verdict) -> _Verdict:
    """Ready containers make a ready pod, unless it names conditions that do not hold."""
    if not containers[0]:
        return containers
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        condition = get_condition(stored, kind)
        if condition is None:
            problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif condition.get("status") != "True":
            problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {condition.get("status")}')
    return (False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else (True, "", "")


# --- the difference


def patch_of(stored: Obj, wanted: Obj) -> Obj | None:
    """Return a strategic merge patch for the status; None when there is nothing to change."""
    patch: Obj = {key: wanted.get(key) for key in _OWN if (wanted.get(key) or None) != (stored.get(key) or None)}
    conditions = wanted.get("conditions") or []
    changed = [
        difference
        for condition in conditions
        if (difference := _condition_patch(get_condition(stored.get("conditions"), condition["type"]), condition))
    ]
    if changed:
        own = [condition["type"] for condition in conditions]
        others = [c["type"] for c in stored.get("conditions") or () if c["type"] not in own]
        patch["conditions"] = changed
        patch["$setElementOrder/conditions"] = [{"type": kind} for kind in (*others, *own)]
    return patch or None


def _condition_patch(old: Obj | None, new: Obj) -> Obj | None:
    if old is None:
        return new
    gone = {key: None for key in old if key not in new and old[key] is not None and key != "lastProbeTime"}
    if not gone and all(old.get(key) == value for key, value in new.items()):
        return None
    return {**new, **gone}
