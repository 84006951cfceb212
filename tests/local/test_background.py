"""A command that goes to the background: what its caller gets, and what is in the log."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.cases import cases
from tests.support.eventually import LIMIT

_COMMAND = """
import os, signal, sys
from pathlib import Path
from karmada.local.background import in_background

caller = os.getpid()

def told(*_):
    print("the caller was told" if os.getpid() == caller else "told to end", flush=True)
    os._exit(4)

signal.signal(signal.SIGTERM, told)
print("before")
leave = in_background()
print("starts", flush=True)
end = sys.argv[1]
if end == "ends":
    sys.exit(3)
if end == "waits":
    signal.pause()
if end == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
leave(int(end), Path(sys.argv[2]))
sys.stdin.read()
print("stays")
"""


def _start(end: str, log: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _COMMAND, end, str(log)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@cases(("0", 0), ("1", 1), ("ends", 3), ("dies", 128 + signal.SIGKILL))
def test_the_caller_gets_the_code_and_what_was_said_until_then(end: str, code: int, tmp_path: Path) -> None:
    process = _start(end, tmp_path / "log")
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == code
    assert said == "before\nstarts\n"


def test_an_interrupt_of_the_caller_is_for_the_child(tmp_path: Path) -> None:
    process = _start("waits", tmp_path / "log")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["before\n", "starts\n"]
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=LIMIT)
    assert (said, process.returncode) == ("told to end\n", 4)
