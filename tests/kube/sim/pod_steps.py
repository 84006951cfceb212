"""A pod that is moved on step by step, without a server, and every status it goes through."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from karmada.kube.sim.behaviours import OK, Outcome
from karmada.kube.sim.kubelet.machine import Machine
from karmada.kube.sim.kubelet.node_context import NodeContext
from karmada.kube.sim.kubelet.podlifecycle import advance, set_course
from karmada.kube.sim.kubelet.podstatus import patch_of, status_of
from karmada.kube.sim.kubelet.predicted_runs import words_of
from karmada.kube.sim.kubelet.run import accept, restore
from karmada.kube.sim.kubelet.runtime import Observed
from karmada.kube.sim.kubelet.script_runs import run_through
from karmada.kube.sim.profile import Delay, Latencies

START = 1_700_000_000.0
LATENCIES = Latencies(pull=Delay(0.5), start=Delay(0.1), ready=Delay(0.2), stop=Delay(0.1))


PROBED = {"name": "c", "image": "nginx:1.27", "readinessProbe": {"httpGet": {"port": 80}}}


def pod_of(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = [{"name": "c", "image": "nginx:1.27"}] if not containers else list(containers)
    metadata = {"name": "p", "namespace": "default", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    whole = {"restartPolicy": "Always", "nodeName": "n1", "containers": made, **spec}
    return {"metadata": metadata, "spec": whole, "status": {"phase": "Pending"}}


class Life:
    """A pod on a node of its own, with every distinct status it went through."""

    def __init__(self, pod: dict[str, Any], outcome: Outcome = OK, minor: int = 36) -> None:
        self.pod, self.outcome, self.minor = pod, outcome, minor
        self.time = 0.0
        self.run = accept(pod, START)
        self.images: set[str] = set()
        self.random = Random(0)
        self.emitted: list[tuple[str, str]] = []
        self.mount_error = ""
        self.config_errors: dict[str, str] = {}
        self.observed: dict[str, Observed] = {}
        """Containers that a runtime runs, and their state."""
        self.history: list[tuple[float, dict[str, Any]]] = []
        self.note()

    def note(self) -> None:
        self.status = status_of(self.run, "172.18.0.2", self.minor, START + self.time)
        if patch_of(self.pod.get("status") or {}, self.status) is not None:
            self.history.append((round(self.time, 3), self.status))
        self.pod = {**self.pod, "status": {**self.pod["status"], **self.status}}
        self.run.pod = self.pod

    def look(self) -> None:
        around = NodeContext(
            now=START + self.time,
            tick=self.time,
            latencies=LATENCIES,
            random=self.random,
            images=self.images,
            mount_error=self.mount_error,
            config_errors=self.config_errors,
            runs=lambda spec: spec["name"] in self.observed,
            observed=self.observed,
        )
        events = advance(self.run, self.outcome, around)
        while due := [container for container in self.run.containers if container.course_due]:
            for container in due:
                course = asyncio.run(run_through(Machine("p"), words_of(container.spec)))
                set_course(self.run, container, course, self.outcome, around)
            events += advance(self.run, self.outcome, around)
        self.emitted += [(event.reason, event.message) for event in events]
        if self.run.sandbox and not self.run.ip:
            self.run.ip = "10.244.0.2"
        self.note()

    def until(self, time: float) -> Life:
        self.look()
        while self.run.due <= time:
            self.time = max(self.time, self.run.due)
            self.look()
        self.time = time
        return self

    def change(self, **spec: Any) -> None:
        metadata = {**self.pod["metadata"], "generation": self.pod["metadata"]["generation"] + 1}
        self.pod = {**self.pod, "metadata": metadata, "spec": {**self.pod["spec"], **spec}}
        self.run.pod = self.pod

    def delete(self, grace: int = 30) -> None:
        metadata = {**self.pod["metadata"], "deletionTimestamp": "x", "deletionGracePeriodSeconds": grace}
        self.pod = {**self.pod, "metadata": metadata}
        self.run.pod = self.pod

    def restart(self) -> None:
        """The simulator forgets everything but what is in the API."""
        self.run = restore(self.pod)

    def container(self, kind: str = "containerStatuses", index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.status[kind][index]
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.emitted]
