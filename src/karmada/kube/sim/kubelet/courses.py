"""Pods advance as the commands of their containers go: these are run through when their containers start."""

from __future__ import annotations

from typing import TypeAlias

from karmada.kube.objects.types import Obj
from karmada.kube.sim.behaviours import Outcome
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet.container_environment import describe, expanded
from karmada.kube.sim.kubelet.node_context import NodeContext, PodEvent
from karmada.kube.sim.kubelet.podlifecycle import advance, set_course
from karmada.kube.sim.kubelet.predicted_runs import PredictedRun, words_of
from karmada.kube.sim.kubelet.run import Container, Run
from karmada.kube.sim.kubelet.script_runs import run_through

Known: TypeAlias = dict[str, tuple[int, PredictedRun | None]]
"""Course of each container: its restarts before the run that was run through, and how that goes.

Running through a command writes files, so it happens once, even if the state of the pod has to be restored.
"""


class Courses:
    def __init__(self, context: Context) -> None:
        self._client = context.client(KUBELET)
        self._clock = context.clock
        self._volumes = context.volumes

    async def advance(self, run: Run, known: Known, outcome: Outcome, around: NodeContext) -> list[PodEvent]:
        events: list[PodEvent] = []
        while True:
            restarts = [(container, container.restarts) for container in run.containers]
            events += advance(run, outcome, around)
            for container, before in restarts:
                if container.restarts != before:
                    self._volumes.restart(run.uid, container.name)
            due = [container for container in run.containers if container.course_due]
            if not due:
                return events
            for container in due:
                set_course(run, container, await self._course(run.pod, container, known), outcome, around)

    async def _course(self, pod: Obj, container: Container, known: Known) -> PredictedRun | None:
        attempt, course = known.get(container.name, (-1, None))
        if attempt == container.restarts:
            return course
        machine = await describe(self._client, pod, container.spec, self._volumes, tokens=False)
        machine.now = self._clock.now
        command = [expanded(word, machine.env) for word in words_of(container.spec)]
        course = await run_through(machine, command)
        known[container.name] = (container.restarts, course)
        return course
