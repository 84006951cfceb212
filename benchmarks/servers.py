"""A real server process for measurements: started, timed to readiness, measured and stopped."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from bench.wire import Target


def cpu_seconds(process: int) -> float:
    """What a process has used so far, its threads included."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(process: int | str) -> float:
    """Of a process by its number, or of this one ("self")."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no resident size for process {process}")


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    data_dir: Path
    target: Target
    seconds_to_ready: float

    def resident_mb(self) -> float:
        return resident_mb(self.process.pid)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)


def tls_from(kubeconfig: Path, directory: Path) -> tuple[str, ssl.SSLContext]:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    pair = directory / "client.pem"
    pair.touch(mode=0o600)
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(pair)
    return cluster["server"], context


def wait_ready(data_dir: Path, process: subprocess.Popen[bytes], seconds: float = 20.0) -> Target:
    """Until /readyz says ok."""
    kubeconfig = data_dir / "admin.kubeconfig"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}")
        if kubeconfig.exists():
            url, context = tls_from(kubeconfig, data_dir)
            try:
                with urllib.request.urlopen(f"{url}/readyz", context=context, timeout=1) as answer:
                    if answer.status == 200:
                        parts = urlsplit(url)
                        return Target(str(parts.hostname), int(parts.port or 443), context)
            except OSError:
                pass  # not listening yet
        time.sleep(0.01)
    raise RuntimeError(f"the server was not ready within {seconds:g} s")


@contextmanager
def running(*, core: int | None = None, data_dir: Path | None = None) -> Iterator[Running]:
    """A server with SQLite on a free port, on one core if asked for; its data goes with it unless a place is given."""
    place = data_dir or Path(tempfile.mkdtemp(prefix="bench-"))
    (place / "admin.kubeconfig").unlink(missing_ok=True)
    command = [sys.executable, "-m", "karmada.components.apiserver", "--data-dir", str(place), "--port", "0"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=None)
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    try:
        target = wait_ready(place, process)
        yield Running(process, place, target, time.monotonic() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        if data_dir is None:
            shutil.rmtree(place, ignore_errors=True)
