"""One measurement as a process of its own, seen from inside and from outside.

Inside (`measure`), a scenario runs at one size in an empty folder. Its standard output is JSON lines: its progress,
and at last the outcome. Outside (`measured`), that output is read, and what others used of the machine
meanwhile is noted, with how fast it was. A process that is stopped stops what it has started.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.machine import Others
from benchmarks.processes import stop, tail
from benchmarks.registry import scenario
from benchmarks.results import Timed
from benchmarks.scenario import Foreign, Measurement, Place, Scenario, Skipped
from benchmarks.speed import Speeds


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line of the process: its progress, or how it ended."""

    progress: str = ""
    measurement: Measurement | None = None
    skipped: str = ""
    error: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is to do, as its only argument."""

    scenario: str
    size: int
    folder: str
    seconds: float
    control: str = ""
    members: tuple[str, ...] = ()
    join: bool = False
    pids: dict[str, int] = {}

    @property
    def foreign(self) -> Foreign | None:
        return Foreign(self.control, self.members, self.join, self.pids) if self.control else None


class Failed(Exception):
    """A measurement that came to nothing; for people."""


# outside


def measured(order: Order, log: Path, progress: Callable[[str], None]) -> Timed:
    """Raises Skipped or Failed. What goes to standard error is in the log."""
    with Speeds() as speeds:
        others, began = Others(), time.perf_counter()
        found = _ran(order, log, progress)
        seconds, used = time.perf_counter() - began, others.cores()
    return Timed(found, seconds, used, tuple(speeds.values))


def _ran(order: Order, log: Path, progress: Callable[[str], None]) -> Measurement:
    command = [sys.executable, "-m", "benchmarks.measuring", msgspec.json.encode(order).decode()]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    last = Outcome()
    try:
        for line in process.stdout:
            last = msgspec.json.decode(line, type=Outcome)
            if last.progress:
                progress(last.progress)
        process.wait()
    finally:
        stop(process)
    if last.skipped:
        raise Skipped(last.skipped)
    if last.measurement is None:
        raise Failed(last.error or f"it ended with code {process.returncode}:\n{tail(log)}")
    return last.measurement


# inside


async def measure(scenario: Scenario, size: int, place: Place, seconds: float) -> Measurement:
    """With the check that what was measured is what was declared."""
    try:
        async with asyncio.timeout(seconds):
            found = await scenario.run(size, place)
    except TimeoutError as error:
        raise Failed(f"not done within {seconds:g} s: {_notes(error)}") from error
    unknown = set(found.figures) - {figure.name for figure in scenario.figures}
    if unknown:
        raise Failed(f"{scenario.name} has measured what it does not declare: {', '.join(sorted(unknown))}")
    return found


def _notes(error: BaseException | None) -> str:
    """What was noted on the way up, on the error and on those that caused it."""
    found: list[str] = []
    while error is not None:
        found += getattr(error, "__notes__", [])
        error = error.__cause__ or error.__context__
    return "; ".join(found) or "nothing is known of why"


async def _obeyed(order: Order) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with tempfile.TemporaryDirectory(prefix="run-", dir=order.folder) as folder:
        place = Place(Path(folder), order.foreign, lambda text: _say(Outcome(progress=text)))
        try:
            found = await measure(scenario(order.scenario), order.size, place, order.seconds)
        except Skipped as reason:
            return Outcome(skipped=str(reason))
        except Exception as error:  # noqa: BLE001 - whatever it was is reported to the caller
            logs = "\n".join(f"-- {log.name}\n{tail(log)}" for log in sorted(place.folder.glob("*.log")))
            return Outcome(error=f"{type(error).__name__}: {error}\n{logs}".strip())
    return Outcome(measurement=found)


def _say(outcome: Outcome) -> None:
    print(msgspec.json.encode(outcome).decode(), flush=True)


def main() -> None:
    import uvloop

    _say(uvloop.run(_obeyed(msgspec.json.decode(sys.argv[1], type=Order))))


if __name__ == "__main__":
    main()
