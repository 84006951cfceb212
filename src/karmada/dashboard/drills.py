"""Drills: the failure of clusters rehearsed in a process of its own, by `karmadactl drill`, with the viewer's rights.

A rehearsal runs a whole fleet in memory and would hold up everybody else here. The process gets the credentials over a
pipe, never in a file, in its arguments or in its environment, and ends with the request that wanted it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

import orjson

from karmada.dashboard.viewer import Viewer
from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig_writing import kubeconfig_of
from karmada.kube.objects.errors import BadRequest, TooManyRequests
from karmada.kube.objects.types import Obj

MOST: Final = 2
"""At the same time."""
SECONDS: Final = 180.0


class DrillFailed(Exception):
    """The reason is for the viewer."""


class Drills:
    """One for all viewers of a dashboard."""

    def __init__(self) -> None:
        self._running: list[Viewer] = []

    async def run(self, viewer: Viewer, failing: Sequence[str], *, minutes: int, with_failover: bool) -> Obj:
        """Return the report of `karmadactl drill -o json`."""
        if not failing:
            raise BadRequest("choose at least one cluster that fails")
        if len(self._running) >= MOST:
            raise TooManyRequests(f"{MOST} drills are running already; try again when one has ended")
        if viewer in self._running:
            raise TooManyRequests("a drill of yours is running already; try again when it has ended")
        self._running.append(viewer)
        try:
            return await _drill(viewer.config, failing, minutes, with_failover)
        finally:
            self._running.remove(viewer)


async def _drill(config: RestConfig, failing: Sequence[str], minutes: int, with_failover: bool) -> Obj:
    words = ["drill", f"--fail={','.join(failing)}", f"--for={minutes}m", "--output=json", "--kubeconfig=/dev/stdin"]
    words += ["--with-failover"] if with_failover else []
    reading, writing = os.pipe()  # asyncio's own are sockets, which have no name to be opened by
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "karmada.cli.karmadactl", *words,
            stdin=reading, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
        )  # fmt: skip
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    try:
        async with asyncio.timeout(SECONDS):
            await asyncio.to_thread(_hand_over, writing, kubeconfig_of(config))
            out, err = await process.communicate()
    except TimeoutError:
        raise DrillFailed(f"the drill took longer than {SECONDS:.0f} s: choose fewer minutes") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = err.decode(errors="replace").strip().splitlines()
        raise DrillFailed(lines[-1].removeprefix("error: ") if lines else f"exit code {process.returncode}")
    report: Obj = orjson.loads(out)
    return report


def _hand_over(pipe: int, text: bytes) -> None:
    with open(pipe, "wb") as file, contextlib.suppress(BrokenPipeError):  # if it ended early, it has said why
        file.write(text)
