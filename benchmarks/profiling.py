"""Where a control plane spends its time while it propagates: py-spy looks at its stacks a hundred times a second.

Where it has several processes (agents), each has a profile of its own.

Only the time of the load itself is looked at, from the first request to the last arrival. Samples are added up by
function and by package (of ours, or a library): those in which it was the innermost Python function, time in C
that it calls included, and those in which it was anywhere on the stack.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import plots
from benchmarks.measuring import Failed
from benchmarks.processes import CONTROL_PLANE
from benchmarks.results import Profile, Share
from benchmarks.scenario import Place, Profilable, Scenario

RATE = 100
_LONG_ENOUGH = 3_600
_KEPT = 40
_FRAME = re.compile(r"^(?P<function>.*) \((?P<file>[^()]*)\)$")
_END_SECONDS = 60.0


@dataclass(frozen=True)
class Profiled:
    profile: Profile
    folded: Path
    drawing: Path


def profiled(scenario: Scenario, size: int, folder: Path, *, native: bool = False) -> list[Profiled]:
    """Put the load of a scenario on its processes once, with somebody looking at each."""
    import uvloop

    if not isinstance(scenario, Profilable):
        raise Failed(f"{scenario.name} cannot be profiled: it has no control plane with a load of its own")
    folder.mkdir(parents=True, exist_ok=True)
    samples: dict[str, Path] = {}

    @contextmanager
    def looking(pids: Mapping[str, int]) -> Iterator[None]:
        with ExitStack() as stack:
            for process, pid in pids.items():
                samples[process] = folder / f"profile-{scenario.name}{_suffix(process)}.folded"
                stack.enter_context(looking_at(pid, samples[process], native=native))
            yield

    with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as place:
        uvloop.run(scenario.load(size, Place(Path(place), runner=("benchmarks.traceable",), looking_at=looking)))
    return [_profiled(scenario, size, process, folded) for process, folded in samples.items()]


def _suffix(process: str) -> str:
    return "" if process == CONTROL_PLANE else f"-{process.replace(' ', '-')}"


def _profiled(scenario: Scenario, size: int, process: str, folded: Path) -> Profiled:
    stacks, drawing = read_folded(folded.read_text()), folded.with_suffix(".svg")
    drawing.write_text(plots.flame(stacks, f"{scenario.name}, {size:,} {scenario.counted}: the {process}"))
    return Profiled(profile_of(stacks, scenario.name, process, size), folded, drawing)


@contextmanager
def looking_at(pid: int, folded: Path, *, native: bool = False) -> Iterator[None]:
    """Samples into a file of folded stacks, with C functions among them if requested."""
    folded.unlink(missing_ok=True)
    command = [
        _py_spy(), "record", "--pid", str(pid), "--format", "raw", "--output", str(folded), "--rate", str(RATE),
        "--duration", str(_LONG_ENOUGH), "--function", "--full-filenames", *(["--native"] if native else []),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=_END_SECONDS)
        if not folded.exists():
            raise Failed(f"py-spy could not look at process {pid}:\n{said}")


def _py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise Failed("py-spy is not installed: pip install py-spy")
    return found


def read_folded(text: str) -> dict[tuple[str, ...], int]:
    """Samples by stack, outermost function first, each as package:function."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        found[tuple(map(_named, stack.split(";")))] += int(count)
    return dict(found)


def profile_of(stacks: Mapping[tuple[str, ...], int], scenario: str, process: str, size: int) -> Profile:
    samples = sum(stacks.values())
    return Profile(
        scenario=scenario,
        process=process,
        size=size,
        samples=samples,
        packages=_shares(stacks, samples, lambda name: name.rpartition(":")[0]),
        functions=_shares(stacks, samples, lambda name: name),
    )


def _shares(stacks: Mapping[tuple[str, ...], int], samples: int, label: Callable[[str], str]) -> list[Share]:
    """Those with the most in themselves first. What calls itself is counted once a stack."""
    alone: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for stack, count in stacks.items():
        labels = [label(name) for name in stack]
        alone[labels[-1]] += count
        for name in set(labels):
            below[name] += count
    ordered = sorted(below, key=lambda name: (-alone[name], -below[name], name))[:_KEPT]
    return [Share(name=name, self=alone[name] / samples, cumulative=below[name] / samples) for name in ordered]


def _named(frame: str) -> str:
    """package:function of py-spy's "function (file)"."""
    parts = _FRAME.match(frame)
    if parts is None:
        return f"python:{frame}"
    return f"{package_of(parts['file'])}:{parts['function']}"


def package_of(file: str) -> str:
    """Of a source file or library: karmada/kube/server, aiohttp, python, or the name of a shared object."""
    path = Path(file.partition(":")[0])
    parts = path.parts
    if "site-packages" in parts:
        rest = parts[parts.index("site-packages") + 1 :]
        return rest[0].partition(".")[0]
    if "karmada" in parts:
        start = len(parts) - 1 - parts[::-1].index("karmada")
        return "/".join(parts[start:-1])
    return path.name.partition(".")[0] if path.suffix != ".py" and path.name else "python"
