"""The command line: how long a person waits, and what it costs. Each command runs several times, as a new process.

The pods that `get` shows are spread over three members. A command that this version does not have is left out, with a
note.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import click

from benchmarks.planes import (
    Member,
    bare_members,
    connected,
    join_all,
    plane_config,
    started_members,
    started_plane,
    until_ready,
)
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter
from benchmarks.propagating import each
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.timings import percentile
from karmada.kube.objects.gvk import GVR

_MEMBERS = 3
_TIMES = 5
_PODS = GVR("", "v1", "pods")
_COMMANDS = {
    "version": ("version",),
    "--help": ("--help",),
    "get pods": ("get", "pods", "--operation-scope", "members"),
}


class CommandLine:
    name = "cli"
    title = f"karmadactl, with pods in {_MEMBERS} members"
    counted = "pods"
    sizes = Sizes(quick=30, base=100)
    foreign = False
    figures = tuple(
        Figure(name=name, unit="ms")
        for command in _COMMANDS
        for name in (f"karmadactl {command}", f"karmadactl {command}, CPU")
    )

    async def run(self, size: int, place: Place) -> Measurement:
        with started_members(place.folder, _MEMBERS) as others, started_plane(place) as process:
            meter = Meter({CONTROL_PLANE: process.pid, MEMBERS: others.pid})
            async with (
                connected(plane_config(place.folder)) as control,
                bare_members(place.folder, _MEMBERS) as members,
            ):
                await join_all(control, members)
                await _make_pods(members, size)
                await until_ready(control, [member.name for member in members])
            found = Measurement(figures={})
            kubeconfig = place.folder / "plane" / "admin.kubeconfig"
            for name, arguments in _COMMANDS.items():
                if missing := await asyncio.to_thread(_missing, arguments[0]):
                    found.notes.append(missing)
                    continue
                taken = [await asyncio.to_thread(_run, arguments, kubeconfig, place.folder) for _ in range(_TIMES)]
                found.figures[f"karmadactl {name}"] = percentile([seconds for seconds, _ in taken], 0.5) * 1e3
                found.figures[f"karmadactl {name}, CPU"] = percentile([cpu for _, cpu in taken], 0.5) * 1e3
                found.costs[f"karmadactl {name}, ms"] = found.figures[f"karmadactl {name}"]
            found.processes = meter.use()
        return found


async def _make_pods(members: list[Member], count: int) -> None:
    async def one(number: int) -> None:
        container = {"name": "web", "image": "nginx:1.27"}
        metadata = {"name": f"web-{number:05d}", "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        await members[number % len(members)].client.create(_PODS, pod)

    await each(range(count), one)


def _missing(command: str) -> str:
    """What is wrong with a command that is not there."""
    from karmada.cli.karmadactl import main

    assert isinstance(main, click.Group)
    there = command.startswith("-") or command in main.list_commands(click.Context(main))
    return "" if there else f"there is no karmadactl {command} to measure"


def _run(arguments: tuple[str, ...], kubeconfig: Path, home: Path) -> tuple[float, float]:
    """Seconds on the wall and seconds of CPU of one call."""
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}
    command = [sys.executable, "-m", "karmada.cli.karmadactl", *arguments]
    before, began = _children(), time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    seconds, cpu = time.perf_counter() - began, _children() - before
    if done.returncode != 0:
        raise RuntimeError(f"karmadactl {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return seconds, cpu


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
