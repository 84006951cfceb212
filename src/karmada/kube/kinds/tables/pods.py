"""How a Pod looks in a table: one word for the state of all its containers.

The state is the phase until a container has something more precise to say. While init containers run, the first that is
not done says it ("Init:1/3", "Init:CrashLoopBackOff"); afterwards the first of the main containers that waits or has
ended does. Ready, restarts and state come from the same walk, so a row is made at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from karmada.kube.kinds.tables.columns import AGE, NAME, NONE, Column, Printer, dig, field, moment, since
from karmada.kube.objects import meta
from karmada.kube.objects.times import human_duration
from karmada.kube.objects.types import Obj

TERMINAL = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Tally:
    """Counts of one pass over the containers."""

    state: str
    total: int
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0

    def count_restarts(self, status: Obj) -> None:
        self.restarts += status.get("restartCount") or 0
        finished = moment(dig(status, "lastState", "terminated", "finishedAt"))
        if finished is not None:
            self.last_restart = max(self.last_restart, finished)

    def restarts_text(self, now: float) -> str:
        if self.restarts and self.last_restart:
            return f"{self.restarts} ({human_duration(now - self.last_restart)} ago)"
        return str(self.restarts)


def _ending(terminated: Obj) -> str:
    """Why a container ended, in one word."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _init_state(state: Obj, done: int, total: int) -> str:
    """Return the pod's state from an init container that has not completed."""
    terminated, waiting = state.get("terminated"), state.get("waiting") or {}
    if terminated:
        return f"Init:{_ending(terminated)}"
    if waiting.get("reason") and waiting["reason"] != "PodInitializing":
        return f"Init:{waiting['reason']}"
    return f"Init:{done}/{total}"


def _walk_init_containers(tally: _Tally, spec: Obj, status: Obj) -> bool:
    """Count the init containers; True while they have not completed."""
    specs: list[Obj] = spec.get("initContainers") or []
    sidecars = {each.get("name") for each in specs if each.get("restartPolicy") == "Always"}
    tally.total += len(sidecars)
    helpers = _Tally("", 0)
    for done, container in enumerate(status.get("initContainerStatuses") or ()):
        tally.count_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            helpers.count_restarts(container)
        state: Obj = container.get("state") or {}
        terminated = state.get("terminated")
        if terminated and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        tally.state = _init_state(state, done, len(specs))
        if not meta.has_condition(status.get("conditions"), "Initialized"):
            return True
        break
    tally.restarts, tally.last_restart = helpers.restarts, helpers.last_restart
    return False


def _walk_containers(tally: _Tally, status: Obj) -> None:
    running, error = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        tally.count_restarts(container)
        state: Obj = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            tally.state = error = waiting["reason"]
        elif terminated:
            tally.state = _ending(terminated)
            error = tally.state if terminated.get("exitCode") else error
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.state == "Completed" and running:
        ready = meta.has_condition(status.get("conditions"), "Ready")
        tally.state = "Running" if ready else error or "NotReady"


def _summary(pod: Obj) -> _Tally:
    spec: Obj = pod.get("spec") or {}
    status: Obj = pod.get("status") or {}
    phase = status.get("phase") or ""
    tally = _Tally(status.get("reason") or phase, len(spec.get("containers") or ()))
    scheduled = meta.get_condition(status.get("conditions"), "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        tally.state = "SchedulingGated"
    if not _walk_init_containers(tally, spec, status):
        _walk_containers(tally, status)
    if meta.is_deleting(pod):
        if status.get("reason") == "NodeLost":
            tally.state = "Unknown"
        elif phase not in TERMINAL:
            tally.state = "Terminating"
    return tally


def _address(status: Obj) -> str:
    addresses = status.get("podIPs") or ()
    return (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE


def _gates(spec: Obj, status: Obj) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    met = sum(meta.has_condition(status.get("conditions"), gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


def _row(pod: Obj, now: float) -> list[Any]:
    spec: Obj = pod.get("spec") or {}
    status: Obj = pod.get("status") or {}
    summary = _summary(pod)
    return [
        meta.name(pod),
        f"{summary.ready}/{summary.total}",
        summary.state,
        summary.restarts_text(now),
        since(meta.creation_time(pod), now),
        _address(status),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


_ENDED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _conditions(pod: Obj) -> list[Obj]:
    """Clients grey out or hide rows that are completed."""
    phase = dig(pod, "status", "phase")
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


_IN_ROW = field("")
"""The cells of a pod are made together by `_row`."""

POD = Printer(
    [
        NAME,
        Column("Ready", _IN_ROW, "How many of the pod's containers are ready"),
        Column("Status", _IN_ROW, "The state of the pod's containers in one word"),
        Column("Restarts", _IN_ROW, "How often containers of the pod were restarted, and when last"),
        AGE,
        Column("IP", _IN_ROW, "The address of the pod", wide=True),
        Column("Node", _IN_ROW, "The node the pod runs on", wide=True),
        Column("Nominated Node", _IN_ROW, "The node that is being made free for the pod", wide=True),
        Column("Readiness Gates", _IN_ROW, "How many of the extra conditions for readiness are met", wide=True),
    ],
    row=_row,
    conditions=_conditions,
)

PRINTERS = {("", "Pod"): POD}
