"""The API server alone, as a process: started, timed until it is ready, stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import DidNotStart, stop, tail
from benchmarks.wire import Target

_READY_SECONDS = 60.0
_ASK_AGAIN = 0.01


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[str]
    target: Target
    seconds_to_ready: float
    kubeconfig: Path


@contextmanager
def running(module: str, data_dir: Path, *, core: int | None = None) -> Iterator[Running]:
    """A server with SQLite on a free port, on one core if requested; timed until /readyz says ok."""
    errors = data_dir.with_suffix(".log")
    kubeconfig = data_dir / "admin.kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    began = time.perf_counter()
    with errors.open("a") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--data-dir", str(data_dir), "--port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=output,
            text=True,
        )
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        target = until_ready(kubeconfig, process, errors)
        yield Running(process, target, time.perf_counter() - began, kubeconfig)
    finally:
        stop(process)


def until_ready(kubeconfig: Path, process: subprocess.Popen[str], log: Path) -> Target:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DidNotStart(f"the server ended with code {process.returncode}\n{tail(log)}")
        if kubeconfig.exists() and _is_ready(target := Target.of(kubeconfig)):
            return target
        time.sleep(_ASK_AGAIN)
    raise DidNotStart(f"the server was not ready within {_READY_SECONDS:g} s\n{tail(log)}")


def _is_ready(target: Target) -> bool:
    try:
        with urllib.request.urlopen(
            f"https://{target.host}:{target.port}/readyz", context=target.tls, timeout=1
        ) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
