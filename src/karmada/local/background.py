"""A command goes to the background: it runs in a child, and ends on the terminal when the child says so.

The child starts the programs and stays as their parent, since only a parent sees how they end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from karmada.kube.runtime.log_file import open_log

_FOR_THE_CHILD: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Leave: TypeAlias = Callable[[int, Path], None]
"""Ends the command on the terminal with an exit code; what is printed from then on goes to a file."""


def in_background() -> Leave:
    """Go on in a child; the parent waits until the child leaves or ends, and exits with its code.

    No thread and no event loop may run yet. Signals to the parent are for the child meanwhile.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_CHILD)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_CHILD)
        os.close(read)
        os.setsid()
        return partial(_leave, write)
    os.close(write)
    for number in _FOR_THE_CHILD:
        signal.signal(number, lambda received, _: os.kill(child, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_CHILD)
    sys.exit(_code(child, read))


def _leave(write: int, code: int, log: Path) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    nothing, file = os.open(os.devnull, os.O_RDONLY), open_log(log)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(file)
    os.write(write, bytes([code]))
    os.close(write)


def _code(child: int, read: int) -> int:
    said = os.read(read, 1)
    if said:
        return said[0]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code
