"""A port that was handed out is nobody else's, though nothing listens on it yet."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.support import ports

ROOT = Path(__file__).parents[2]


def test_a_port_is_below_those_that_the_system_gives_out() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port < lowest for port in ports.free_ports(20))


def test_no_other_process_gets_it() -> None:
    port = ports.free_port()
    script = f"from tests.support.ports import _reserve; print(_reserve({port}))"
    shown = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"


def test_a_port_that_is_listened_on_is_not_free() -> None:
    port = ports.free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        ports._held.pop()  # as if no test had it
        assert not ports._reserve(port)
