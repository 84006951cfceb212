"""All attacks of one tenant at once against a control plane of its own process, for a minute or `soak [seconds]`.

Shown is what another tenant's get and /readyz take meanwhile, at the speed that the machine has and as it would be at
the benchmarks' reference speed, and what the process holds in memory before, at its peak, and a minute later.
"""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.speed import REFERENCE, speed
from tests.hostile.attacks import ATTACKS, BLUE, RED, UNREAD, Attack, prepare
from tests.hostile.sending import Sender
from tests.support.ports import free_port

WATCHES = 300
SMALL, LARGE, KEYS = 4_000, 8, 60_000
GOAL_SECONDS = 0.25
_PAUSE = 0.025


@contextmanager
def control_plane(folder: Path) -> Iterator[tuple[int, Sender]]:
    """A process of its own; its number, and who sends as its administrator."""
    port = free_port()
    program = str(Path(sys.executable).parent / "karmada")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, "--data-dir", str(folder), "--secure-port", str(port)], stderr=log, stdout=log
        )
        try:
            while not _is_ready(port, folder / "pki"):
                assert process.poll() is None, (folder / "log").read_text()[-2_000:]
                time.sleep(0.2)
            yield process.pid, Sender(port, folder / "pki")
        finally:
            process.terminate()
            process.wait()


def _is_ready(port: int, pki: Path) -> bool:
    try:
        return Sender(port, pki)("GET", "/readyz").code == 200
    except OSError:
        return False


def resident(pid: int) -> float:
    """Return MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _attack(port: int, pki: Path, seconds: float) -> None:
    """All at once, in this process."""
    red, ends = Sender(port, pki, RED), time.monotonic() + seconds

    def rounds(attack: Attack) -> None:
        number = 0
        while time.monotonic() < ends:
            with suppress(OSError):
                attack(red, number)
            number += 1

    def watches() -> None:
        held = []
        for _ in range(WATCHES):
            if time.monotonic() < ends:
                with suppress(OSError):
                    held.append(red.unread(UNREAD))
        time.sleep(max(0.0, ends - time.monotonic()))
        for one in held:
            one.close()

    threads = [threading.Thread(target=rounds, args=(attack,)) for attack in ATTACKS]
    threads.append(threading.Thread(target=watches))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _measured(send: Sender, path: str, ends: float) -> list[float]:
    taken = []
    while time.monotonic() < ends:
        began = time.monotonic()
        answer = send("GET", path)
        taken.append(time.monotonic() - began)
        assert answer.code == 200, answer.body
        time.sleep(_PAUSE)
    return taken


def _watched(pid: int, admin: Sender, seconds: float) -> tuple[dict[str, list[float]], float, list[float]]:
    """Return what requests took by path, the most memory, and the machine's speeds, of so many seconds."""
    ends, peak = time.monotonic() + seconds, 0.0
    speeds: list[float] = []
    taken: dict[str, list[float]] = {}

    def measure(path: str) -> None:
        taken[path] = _measured(admin.as_user(BLUE), path, ends)

    paths = ("/readyz", f"/api/v1/namespaces/{BLUE}/configmaps/mine")
    threads = [threading.Thread(target=measure, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    while time.monotonic() < ends:
        peak = max(peak, resident(pid))
        if len(speeds) * 10 < seconds - (ends - time.monotonic()):
            speeds.append(speed())
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    return taken, peak, speeds


def main(seconds: float, after: float = 60.0) -> int:
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder)) as (pid, admin):
        prepare(admin, SMALL, LARGE, KEYS)
        time.sleep(5)
        before = resident(pid)
        attackers = multiprocessing.Process(target=_attack, args=(admin.port, Path(folder) / "pki", seconds))
        attackers.start()
        taken, peak, speeds = _watched(pid, admin, seconds)
        attackers.join()
        time.sleep(after)
        left, factor = resident(pid), min(1.0, statistics.median(speeds) / REFERENCE)
    median = statistics.median(speeds)
    print(f"{median:,.0f} rounds/s (reference {REFERENCE:,.0f}); all attacks for {seconds:g} s:")
    missed = 0
    for path, found in taken.items():
        cuts = statistics.quantiles(found, n=100)
        p50, p99, most = (round(value * 1000) for value in (cuts[49], cuts[98], max(found)))
        missed += cuts[98] * factor > GOAL_SECONDS
        print(
            f"  {path}: {len(found)} gets, p50 {p50} ms, p99 {p99} ms ({p99 * factor:.0f} at reference), max {most} ms"
        )
    missed += (peak > 2 * before) + (left > 1.3 * before)
    print(f"  memory: {before:.0f} MB before, {peak:.0f} at the most, {left:.0f} after {after:g} s")
    return missed


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
