"""The life cycle of a pod on its node: from its state, the time and its outcome to the next state and its due time.

`advance` moves a Run on to the present and returns the events to emit; it reads and writes nothing else.
Init containers go one by one, a sidecar stays and lets the next one begin once it has started; then all others begin at
once. A container's way is: its image is pulled, it is created and started, it becomes ready; it may end, and is then
started again at once the first time and after growing pauses later. Timers are set where a state begins (`_begin`,
`_start`, `_end`), and set anew for all states when the outcome changes or the Run was just restored (`_arm`).
A container that a runtime runs has no timers for its readiness and its end: they are observed, unless its outcome
prescribes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from karmada.kube.objects.times import format_duration, parse_time
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.sim.behaviours import Outcome
from karmada.kube.sim.kubelet.images import full_name, image_size
from karmada.kube.sim.kubelet.node_context import NodeContext, PodEvent
from karmada.kube.sim.kubelet.podstatus import end_of
from karmada.kube.sim.kubelet.predicted_runs import PredictedRun, runs_until_stopped, words_of
from karmada.kube.sim.kubelet.restarting import (
    FIRST_PAUSE,
    is_meant_to_end,
    pause_before,
    restarts,
    restarts_on_resize,
)
from karmada.kube.sim.kubelet.run import (
    COMPLETED,
    CONFIG_ERROR,
    CRASH_LOOP,
    ERR_PULL,
    ERROR,
    NEVER,
    OOM_KILLED,
    PULL_BACK_OFF,
    Container,
    Final,
    Run,
    specs,
)
from karmada.kube.sim.kubelet.shell import is_simulated
from karmada.kube.sim.profile import Delay

JOB_SECONDS = 1.0
"""How long a container runs that is meant to end, unless its command or its outcome says more."""
INIT_SECONDS = 0.1
SHOWN_SECONDS = 1.0
"""Seconds for which a failure is shown before the back-off that follows it."""
KILLED = 137
KILL_SECONDS = 5.0
"""How long after its grace period a process that was killed may still be there."""
_ENDING = ("run-for", "crash-loop", "oom")
_READINESS = ("never-ready", "ready-after", "flap")
_PROBE_FAILURE = "HTTP probe failed with statuscode: 503"
_PULL_REASONS = (ERR_PULL, PULL_BACK_OFF)


def advance(run: Run, outcome: Outcome, around: NodeContext) -> list[PodEvent]:
    turn = _Turn(run, outcome, around)
    turn.take()
    return turn.events


def set_course(
    run: Run, container: Container, course: PredictedRun | None, outcome: Outcome, turn: NodeContext
) -> None:
    """Plan the end of a container whose command was run through."""
    container.course, container.course_due, container.course_set = course, False, True
    _Turn(run, outcome, turn)._plan_exit(container)


def _has_course(container: Container) -> bool:
    words = words_of(container.spec)
    return bool(words) and is_simulated(words[0])


class _Turn:
    def __init__(self, run: Run, outcome: Outcome, around: NodeContext) -> None:
        self.run, self.pod, self.outcome, self.around = run, run.pod, outcome, around
        self.tick = around.tick
        self.events: list[PodEvent] = []

    def _emit(self, type_: str, reason: str, message: str) -> None:
        self.events.append(PodEvent(type_, reason, message))

    def _draw(self, delay: Delay) -> float:
        return delay.draw(self.around.random)

    def _at(self, wall: float) -> float:
        """Return a moment of wall time on the scale of what is due."""
        return self.tick + max(0.0, wall - self.around.now)

    # the pod

    def take(self) -> None:
        run, metadata = self.run, self.pod["metadata"]
        if run.final is None and not run.stopped:
            self._follow_spec()
            if metadata.get("deletionTimestamp"):
                self._stop()
            elif not self.around.mount_error:
                self._live()

    def _follow_spec(self) -> None:
        """Take new images, resources and ephemeral containers from the pod."""
        known = {container.name: container for container in self.run.containers}
        for role, spec in specs(self.pod):
            container = known.get(spec["name"])
            if container is None:
                self.run.containers.append(Container(spec, role, spec.get("image") or ""))
            elif container.spec is not spec:
                container.spec = spec

    def _live(self) -> None:
        run = self.run
        run.mounted = True
        self._set_deadline()
        if run.outcome != self.outcome:
            run.outcome = self.outcome
            for container in run.containers:
                self._arm(container)
            run.evict_due = NEVER
        while not self._ended():
            self._start_next()
            moved = False
            for container in run.containers:
                self._compare(container)
                moved = self._step(container) or moved
            if not moved:
                break

    def _set_deadline(self) -> None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        self.run.deadline_due = NEVER if seconds is None else self._at(self.run.began + seconds)

    def _ended(self) -> bool:
        """Return whether the pod has ended: by itself, by its deadline, or by eviction."""
        run = self.run
        if run.over:
            for container in run.of("sidecar"):
                if container.state == "running":
                    self._end(container, 0, COMPLETED)
            run.deadline_due = run.evict_due = NEVER
            return True
        if run.deadline_due <= self.tick:
            message = "Pod was active on the node longer than the specified deadline"
            self._emit(NORMAL, "DeadlineExceeded", message)
            self._fail_pod(Final("DeadlineExceeded", message))
            return True
        if self.outcome.kind == "evicted" and run.evict_due == NEVER and run.sandbox:
            run.evict_due = self.tick + self.outcome.after
        if run.evict_due <= self.tick:
            message = self.outcome.message or (
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: 61532Ki. "
            )
            self._emit(WARNING, "Evicted", message)
            self._fail_pod(Final("Evicted", message, disrupted=True))
            return True
        return False

    def _fail_pod(self, final: Final) -> None:
        self.run.final = final
        self.run.deadline_due = self.run.evict_due = NEVER
        self._kill_all(KILLED)

    def _stop(self) -> None:
        run = self.run
        if self.outcome.kind == "stuck-terminating":
            run.stop_due = NEVER
            return
        real = [container for container in run.containers if self.around.runs(container.spec)]
        if run.stop_due == NEVER:
            grace = float(self.pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            seconds = grace + KILL_SECONDS if real else min(self._draw(self.around.latencies.stop), grace)
            run.stop_due = self.tick + seconds
            run.deadline_due = run.evict_due = NEVER
            for container in run.containers:
                if container.state == "running":
                    self._emit(NORMAL, "Killing", f"Stopping container {container.name}")
                container.plan("")
                container.ready_due = container.exit_due = container.resize_due = NEVER
        for container in real:
            self._observe(container)
        if run.stop_due <= self.tick or (real and not any(container.state == "running" for container in real)):
            self._kill_all(0)
            run.stopped, run.stop_due = True, NEVER

    def _kill_all(self, code: int) -> None:
        for container in self.run.containers:
            container.plan("")
            if container.state == "running":
                self._end(container, code, ERROR if code else COMPLETED)
            container.ready = False

    # start order

    def _start_next(self) -> None:
        for container in self.run.containers:
            if container.state == "waiting" and not container.reason and not container.step:
                self._begin(container)
            if not container.passed:
                return

    # one container's timers

    def _concerned(self, container: Container, *kinds: str) -> bool:
        return self.outcome.kind in kinds and self.outcome.concerns(container.name, init=container.is_init)

    def _arm(self, container: Container) -> None:
        """Set what is due from the state it is in."""
        if container.state == "running":
            self._plan_exit(container)
            self._plan_ready(container, since=container.started_at)
        elif container.state == "terminated":
            if restarts(self.pod, container):
                self._plan_restart(container)
        elif container.reason in _PULL_REASONS:
            if self._concerned(container, "image-pull-error"):
                container.plan("pull-again", self.tick + FIRST_PAUSE)
            else:
                self._begin(container)
        elif container.reason == CRASH_LOOP:
            if self._concerned(container, *_ENDING):
                self._plan_restart(container)
            else:
                container.plan("start", self.tick)
        elif container.step and (container.step == "pull-failed") != self._concerned(container, "image-pull-error"):
            self._begin(container)

    def _plan_exit(self, container: Container) -> None:
        seconds = self._planned_run(container)[0]
        container.exit_due = NEVER if seconds == NEVER else self._at(container.started_at + seconds)

    def _planned_run(self, container: Container) -> tuple[float, int]:
        """Return how long a running container goes on, and the code it ends with."""
        if self._concerned(container, *_ENDING):
            return self.outcome.after, self.outcome.code
        if self.around.runs(container.spec):
            return NEVER, 0
        if not is_meant_to_end(self.pod, container) or runs_until_stopped(container.spec):
            return NEVER, 0
        if not container.course_set and _has_course(container):
            container.course_due = True
            return NEVER, 0
        if container.course is not None:
            return container.course
        return (INIT_SECONDS if container.role == "init" else JOB_SECONDS), 0

    def _plan_ready(self, container: Container, *, since: float) -> None:
        if container.role not in ("main", "sidecar"):
            return
        if self._concerned(container, "never-ready"):
            if container.ready or since == self.around.now:
                said = self.outcome.message or _PROBE_FAILURE
                self._emit(WARNING, "Unhealthy", f"Readiness probe failed: {said}")
            container.ready, container.ready_due, container.started = False, NEVER, True
        elif self._concerned(container, "ready-after"):
            container.ready_due = self._at(since + self.outcome.after)
            container.ready = container.ready and container.ready_due <= self.tick
        elif self._concerned(container, "flap"):
            container.ready_due = self.tick + (self.outcome.after if container.ready else self._probing(container))
        elif container.ready or self.around.runs(container.spec):
            container.ready_due = NEVER
        else:
            container.ready_due = self.tick + self._probing(container)

    def _probing(self, container: Container) -> float:
        """Seconds until the probes pass; a container without one is ready as soon as it runs."""
        probes = [container.spec[probe] for probe in ("startupProbe", "readinessProbe") if container.spec.get(probe)]
        if not probes:
            return 0.0
        at_least = sum(probe.get("initialDelaySeconds") or 0 for probe in probes)
        return max(self._draw(self.around.latencies.ready), float(at_least))

    def _plan_restart(self, container: Container) -> None:
        """After its end: at once the first time, later after a pause that is shown as such."""
        if container.state == "terminated":
            began, ended = container.started_at, container.finished_at
        else:
            last = container.last or {}
            began, ended = (parse_time(last[key]) if last.get(key) else 0.0 for key in ("startedAt", "finishedAt"))
        pause = pause_before(container.restarts, ended - began)
        if pause == 0.0:
            container.plan("start", self.tick + self._draw(self.around.latencies.start))
        elif container.state == "terminated":
            container.plan("crash-back-off", min(self._at(ended + SHOWN_SECONDS), self._at(ended + pause)))
        else:
            container.plan("start", self._at(ended + pause))

    # one container's transitions

    def _step(self, container: Container) -> bool:
        """Do what is due; False when nothing is."""
        tick = self.tick
        if container.step_due <= tick:
            step = container.step
            container.plan("")
            _STEPS[step](self, container)
        elif self._observe(container):
            return True
        elif container.exit_due <= tick:
            oom = OOM_KILLED if self._concerned(container, "oom") else ""
            self._exit(container, self._planned_run(container)[1], reason=oom)
        elif container.ready_due <= tick:
            self._turn_ready(container)
        elif container.resize_due <= tick:
            container.resize_due = NEVER
            container.resources = container.spec.get("resources") or {}
        else:
            return False
        return True

    def _observe(self, container: Container) -> bool:
        """Take over what was observed of its present run; False when that changes nothing."""
        seen = self.around.observed.get(container.name)
        if seen is None or container.state != "running" or seen.attempt != container.restarts:
            return False
        if seen.exit_code is not None:
            self._exit(container, seen.exit_code, reason=seen.reason, message=seen.message)
            return True
        ready = seen.ready and container.role in ("main", "sidecar")
        if (container.started, container.ready) == (seen.started, ready) or self._concerned(container, *_READINESS):
            return False
        container.started, container.ready = seen.started, ready
        return True

    def _exit(self, container: Container, code: int, *, reason: str = "", message: str = "") -> None:
        """Record that a container's process ended by itself."""
        self._end(container, code, reason or (ERROR if code else COMPLETED))
        container.message = message
        if restarts(self.pod, container) and not self.pod["metadata"].get("deletionTimestamp"):
            self._plan_restart(container)

    def _turn_ready(self, container: Container) -> None:
        container.started = True
        if self._concerned(container, "flap"):
            container.ready = not container.ready
            container.ready_due = self.tick + self.outcome.after
            if not container.ready:
                self._emit(WARNING, "Unhealthy", f"Readiness probe failed: {_PROBE_FAILURE}")
        else:
            container.ready, container.ready_due = True, NEVER

    def _compare(self, container: Container) -> None:
        """Apply changes of the spec to a running container: image, resources, or a resolved configuration error."""
        if container.reason == CONFIG_ERROR and not container.step:
            error = self._config_error(container)
            if not error:
                container.plan("start", self.tick)
            elif error != container.message:
                self._fail_to_create(container, error)
        image = container.spec.get("image") or ""
        if container.state != "running":
            if container.step and container.image != image:
                self._begin(container)
        elif full_name(image) != full_name(container.image):
            self._replace(container, image)
        elif self.around.resizes and container.resize_due == NEVER and self._resized(container):
            if restarts_on_resize(container):
                self._replace(container, image)
            else:
                container.resize_due = self.tick + self._draw(self.around.latencies.start)

    @staticmethod
    def _resized(container: Container) -> bool:
        return container.resources is not None and container.resources != (container.spec.get("resources") or {})

    def _replace(self, container: Container, image: str) -> None:
        self._emit(NORMAL, "Killing", f"Container {container.name} definition changed, will be restarted")
        self._end(container, 0, COMPLETED)
        container.image = image
        self._begin(container)

    def _begin(self, container: Container) -> None:
        """Have its image pulled if it must be; then it starts."""
        around, spec = self.around, container.spec
        container.image = image = spec.get("image") or ""
        if self._concerned(container, "image-pull-error"):
            self._start_failing_pull(container)
            return
        name, policy = full_name(image), spec.get("imagePullPolicy")
        start = self._draw(around.latencies.start)
        if policy == "Never" or (policy != "Always" and name in around.images):
            container.pulled_in = None
            pull = 0.0
        else:
            container.pulled_in = pull = self._draw(around.latencies.pull) * (0.1 if name in around.images else 1.0)
            self._emit(NORMAL, "Pulling", f'Pulling image "{image}"')
        if self._concerned(container, "slow-start") and self.outcome.delay is not None:
            pull, start = self._draw(self.outcome.delay), 0.0
        container.plan("start", self.tick + pull + start)

    def _start_failing_pull(self, container: Container) -> None:
        self._emit(NORMAL, "Pulling", f'Pulling image "{container.image}"')
        container.plan("pull-failed", self.tick + self._draw(self.around.latencies.pull))

    def _pull_failed(self, container: Container) -> None:
        self.run.sandbox = True
        image = container.image
        name = full_name(image)
        cause = self.outcome.message or (
            f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": {name}: not found'
        )
        message = f'Failed to pull image "{image}": {cause}'
        container.pulls += 1
        container.state, container.reason, container.message = "waiting", ERR_PULL, cause
        self._emit(WARNING, "Failed", message)
        self._emit(WARNING, "Failed", f"Error: {ERR_PULL}")
        container.plan("pull-back-off", self.tick + SHOWN_SECONDS)

    def _pull_back_off(self, container: Container) -> None:
        container.reason, container.message = PULL_BACK_OFF, f'Back-off pulling image "{container.image}"'
        self._emit(NORMAL, "BackOff", container.message)
        self._emit(WARNING, "Failed", f"Error: {PULL_BACK_OFF}")
        container.plan("pull-again", self.tick + pause_before(container.pulls, 0.0))

    def _crash_back_off(self, container: Container) -> None:
        metadata = self.pod["metadata"]
        pause = pause_before(container.restarts, container.finished_at - container.started_at)
        where = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        container.last = end_of(container, self.run.uid)
        container.state, container.reason = "waiting", CRASH_LOOP
        shown = format_duration(pause)
        container.message = f"back-off {shown} restarting failed container={container.name} pod={where}"
        self._emit(WARNING, "BackOff", f"Back-off restarting failed container {container.name} in pod {where}")
        container.plan("start", self._at(container.finished_at + pause))

    def _config_error(self, container: Container) -> str:
        if self._concerned(container, "create-config-error"):
            return self.outcome.message or 'configmap "missing" not found'
        return self.around.config_errors.get(container.name, "")

    def _start(self, container: Container) -> None:
        self.run.sandbox = True
        self._emit_pulled(container)
        error = self._config_error(container)
        if container.state == "terminated":
            container.last = end_of(container, self.run.uid)
        if error:
            self._fail_to_create(container, error)
            return
        if container.last is not None:
            container.restarts += 1
        container.state, container.reason, container.message = "running", "", ""
        container.started_at, container.pulls = self.around.now, 0
        container.course_due = container.course_set = False
        container.started = not container.spec.get("startupProbe")
        container.ready = False
        container.resources = container.spec.get("resources") or {}
        self._emit(NORMAL, "Created", f"Created container: {container.name}")
        self._emit(NORMAL, "Started", f"Started container {container.name}")
        self._plan_exit(container)
        self._plan_ready(container, since=container.started_at)

    def _fail_to_create(self, container: Container, error: str) -> None:
        container.state, container.reason, container.message = "waiting", CONFIG_ERROR, error
        self._emit(WARNING, "Failed", f"Error: {error}")

    def _emit_pulled(self, container: Container) -> None:
        image, seconds = container.image, container.pulled_in
        if seconds is not None:
            took = format_duration(round(seconds, 3))
            size = f"Image size: {image_size(image)} bytes."
            message = f'Successfully pulled image "{image}" in {took} ({took} including waiting). {size}'
            self._emit(NORMAL, "Pulled", message)
        elif container.reason != CONFIG_ERROR:
            self._emit(NORMAL, "Pulled", f'Container image "{image}" already present on machine')
        container.pulled_in = None
        self.around.images.add(full_name(image))

    def _end(self, container: Container, code: int, reason: str) -> None:
        container.state, container.reason, container.exit_code, container.message = "terminated", reason, code, ""
        container.finished_at = self.around.now
        container.started = False
        container.ready = container.role == "init" and code == 0
        container.exit_due = container.ready_due = container.resize_due = NEVER
        container.course_due = False
        container.plan("")


_STEPS: Mapping[str, Callable[[_Turn, Container], None]] = {
    "start": _Turn._start,
    "pull-failed": _Turn._pull_failed,
    "pull-back-off": _Turn._pull_back_off,
    "pull-again": _Turn._start_failing_pull,
    "crash-back-off": _Turn._crash_back_off,
}
