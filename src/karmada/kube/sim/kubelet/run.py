"""The runtime state of a pod on its node: the state of each container, and when its next step is due.

A Run is kept in memory while a step is due; future times (`*_due`) are monotonic, past ones wall time. Everything else
can be restored from the pod's status, so a Run is dropped once no step is due, and rebuilt by `restore` when the pod
changes or after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.behaviours import Outcome
from karmada.kube.sim.kubelet.images import full_name
from karmada.kube.sim.kubelet.predicted_runs import PredictedRun

NEVER = math.inf
Role = Literal["init", "sidecar", "main", "ephemeral"]
State = Literal["waiting", "running", "terminated"]
Step = Literal["", "start", "pull-failed", "pull-back-off", "pull-again", "crash-back-off"]
"""The next step of a container that does not run; "": nothing before its turn has come."""

COMPLETED, ERROR, OOM_KILLED = "Completed", "Error", "OOMKilled"
ERR_PULL, PULL_BACK_OFF = "ErrImagePull", "ImagePullBackOff"
CRASH_LOOP, CONFIG_ERROR = "CrashLoopBackOff", "CreateContainerConfigError"


@dataclass(slots=True)
class Container:
    spec: Obj
    role: Role
    image: str
    """Image that it runs, or is to run, as the spec had it when it began."""
    state: State = "waiting"
    reason: str = ""
    """Reason for waiting (empty: its turn has not come, or it is being created) or for its end."""
    message: str = ""
    started: bool = False
    ready: bool = False
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    restarts: int = 0
    last: Obj | None = None
    """How the run before this one ended, as in the status."""
    resources: Obj | None = None
    """Resources that it was given when it started or was last resized."""
    pulls: int = 0
    """Failed ones in a row."""
    pulled_in: float | None = None
    """Seconds the pull of the image took; None when it was on the node."""
    course: PredictedRun | None = None
    """How its present run goes; None: that is not known, or cannot be determined."""
    course_due: bool = False
    """Its command has to be run through to know when it ends."""
    course_set: bool = False
    step: Step = ""
    step_due: float = NEVER
    ready_due: float = NEVER
    exit_due: float = NEVER
    resize_due: float = NEVER

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_init(self) -> bool:
        return self.role in ("init", "sidecar")

    @property
    def passed(self) -> bool:
        """Return whether the containers after it may start."""
        if self.role == "init":
            return self.state == "terminated" and self.exit_code == 0
        return self.role != "sidecar" or self.started

    @property
    def over(self) -> bool:
        """It has ended and will not run again."""
        return self.state == "terminated" and not self.step

    @property
    def due(self) -> float:
        return min(self.step_due, self.ready_due, self.exit_due, self.resize_due)

    def plan(self, step: Step, due: float = NEVER) -> None:
        self.step, self.step_due = step, due


@dataclass(slots=True)
class Final:
    """The end of a pod by eviction or its deadline."""

    reason: str
    message: str
    disrupted: bool = False


@dataclass(slots=True)
class Run:
    pod: Obj
    """As last seen or written."""
    began: float
    containers: list[Container] = field(default_factory=list)
    outcome: Outcome | None = None
    """The one its times are set for."""
    sandbox: bool = False
    mounted: bool = False
    ip: str = ""
    final: Final | None = None
    deadline_due: float = NEVER
    evict_due: float = NEVER
    stop_due: float = NEVER
    stopped: bool = False
    """All containers were ended because the pod is being deleted."""

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def due(self) -> float:
        """When the next step is due."""
        own = min(self.deadline_due, self.evict_due, self.stop_due)
        return min(own, min((container.due for container in self.containers), default=NEVER))

    @property
    def over(self) -> bool:
        """Return whether all containers have ended by themselves, or an init container failed that had to succeed."""
        if any(container.over and container.exit_code for container in self.of("init")):
            return True
        return all(container.over for container in self.of("main"))

    def of(self, *roles: Role) -> Iterator[Container]:
        return (container for container in self.containers if container.role in roles)


def specs(pod: Obj) -> Iterator[tuple[Role, Obj]]:
    spec = pod["spec"]
    for container in spec.get("initContainers") or ():
        yield ("sidecar" if container.get("restartPolicy") == "Always" else "init"), container
    for container in spec["containers"]:
        yield "main", container
    for container in spec.get("ephemeralContainers") or ():
        yield "ephemeral", container


def accept(pod: Obj, now: float) -> Run:
    """Return the Run of a pod that was just bound to the node."""
    return Run(pod, now, [Container(spec, role, spec.get("image") or "") for role, spec in specs(pod)])


def restore(pod: Obj) -> Run:
    """Return the Run of a pod with a status from this node."""
    status = pod.get("status") or {}
    reported = {
        entry["name"]: entry
        for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for entry in status.get(kind) or ()
    }
    run = Run(pod, parse_time(status["startTime"]))
    run.containers = [_restored(spec, role, reported.get(spec["name"])) for role, spec in specs(pod)]
    run.ip = status.get("podIP") or ""
    run.sandbox = run.mounted = bool(run.ip)
    return run


def _restored(spec: Obj, role: Role, reported: Obj | None) -> Container:
    container = Container(spec, role, spec.get("image") or "")
    if reported is None:
        return container
    state = reported.get("state") or {}
    if reported.get("image") and full_name(reported["image"]) != full_name(container.image):
        container.image = reported["image"]
    container.restarts = reported.get("restartCount") or 0
    container.ready, container.started = bool(reported.get("ready")), bool(reported.get("started"))
    container.resources = reported.get("resources")
    container.last = (reported.get("lastState") or {}).get("terminated")
    if "running" in state:
        container.state, container.started_at = "running", _time(state["running"].get("startedAt"))
    elif "terminated" in state:
        end = state["terminated"]
        container.state, container.reason = "terminated", end.get("reason") or ""
        container.message, container.exit_code = end.get("message") or "", end.get("exitCode") or 0
        container.started_at, container.finished_at = _time(end.get("startedAt")), _time(end.get("finishedAt"))
    else:
        waiting = state.get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            container.reason, container.message = waiting["reason"], waiting.get("message") or ""
    return container


def _time(text: str | None) -> float:
    return parse_time(text) if text else 0.0
