"""Ports that no program listens on, and that no other test gets while this process lives.

They are below those that the system gives to whoever does not care (`ip_local_port_range`): nothing takes one between
the moment when it is chosen and the moment when the program that it is for listens on it.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FIRST, _LAST = 20_000, 29_999
_held: list[int] = []
"""File descriptors of the locks."""


def free_port() -> int:
    return next(_free())


def free_ports(count: int) -> list[int]:
    """All different."""
    found = _free()
    return [next(found) for _ in range(count)]


def _free() -> Iterator[int]:
    for port in random.SystemRandom().sample(range(_FIRST, _LAST + 1), _LAST + 1 - _FIRST):
        if _reserve(port):
            yield port
    raise AssertionError(f"no port from {_FIRST} to {_LAST} is free")


def _reserve(port: int) -> bool:
    """The lock holds as long as this process or one that it has forked lives."""
    folder = Path(tempfile.gettempdir()) / f"test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR, 0o600)
    with suppress(OSError), socket.socket() as tried:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tried.bind(("127.0.0.1", port))
        _held.append(lock)
        return True
    os.close(lock)
    return False
