"""Programs of ours that a forked program starts on its event loop: the simulator, when pods run as processes.

They are forked from a server that was forked from the program before it had an event loop and threads.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import os
import subprocess
from asyncio.base_subprocess import BaseSubprocessTransport
from typing import Any

from tests.support.forking import ForkedProgram, forkable

_create_subprocess_exec = asyncio.create_subprocess_exec
_LIMIT = 1 << 16


async def create_subprocess_exec(*command: Any, limit: int = _LIMIT, **options: Any) -> asyncio.subprocess.Process:
    """As asyncio does, in whose place it is put."""
    if not forkable(command, options):
        return await _create_subprocess_exec(*command, limit=limit, **options)
    loop = asyncio.get_running_loop()
    protocol = asyncio.subprocess.SubprocessStreamProtocol(limit, loop)
    connected = loop.create_future()
    streams = {name: options.pop(name, None) for name in ("stdin", "stdout", "stderr")}
    transport = _Transport(loop, protocol, command, shell=False, bufsize=0, waiter=connected, **streams, **options)
    await connected
    return asyncio.subprocess.Process(transport, protocol, loop)


class _Transport(BaseSubprocessTransport):
    """The pipes and the exit of a forked program."""

    _loop: asyncio.AbstractEventLoop

    def _start(self, args: Any, shell: bool, *streams: Any, **options: Any) -> None:
        assert not any((shell, *streams)), "streams are given by name"
        self._proc: subprocess.Popen[bytes] | None = ForkedProgram(args, **options)
        self._watched = os.dup(self._proc.report.fileno())
        self._loop.add_reader(self._watched, self._ended)

    def _ended(self) -> None:
        assert self._proc is not None
        self._loop.remove_reader(self._watched)
        os.close(self._watched)
        self._process_exited(self._proc.wait())
