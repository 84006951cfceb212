"""How the command of a container goes, found by running it: with its environment and files, and without taking time."""

from __future__ import annotations

import math

from karmada.kube.sim.kubelet.filesystem import CannotTell
from karmada.kube.sim.kubelet.machine import UNKNOWN, Machine, OutOfSteps, Session
from karmada.kube.sim.kubelet.predicted_runs import FOREVER, PredictedRun
from karmada.kube.sim.kubelet.shell import start


class _Endless(Exception):
    """Something waits forever."""


class _Unheard:
    """The ends of a command that nobody listens to; its pauses are only added up."""

    def __init__(self) -> None:
        self.slept = 0.0

    async def read(self) -> bytes:
        return b""

    async def out(self, _data: bytes) -> None:
        return None

    async def err(self, _data: bytes) -> None:
        return None

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        if self.slept == math.inf:
            raise _Endless


async def run_through(machine: Machine, command: list[str]) -> PredictedRun | None:
    """Return how long a container runs and how it ends, after writing its files; None when that cannot be determined.

    A loop that never ends is one that runs until it is stopped, unless it waits for what others may write.
    """
    io = _Unheard()
    session = Session.of(machine, predicting=True)
    machine.files.knows_image = False
    try:
        code = await start(session, command, io)
    except _Endless:
        return FOREVER
    except OutOfSteps:
        return FOREVER if io.slept and not machine.files.looked else None
    except CannotTell:
        return None
    if code in (0, UNKNOWN) and not io.slept and not session.course.decided:
        return None
    return PredictedRun(io.slept, 0 if code == UNKNOWN else code)
