"""Programs at pseudo terminals, connected with the streams of a client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from karmada.kube.sim.kubelet.channels import Channels, Wanted
from karmada.kube.sim.processes import spawning
from karmada.kube.sim.processes.terminals import PseudoTerminal, attended
from tests.support.eventually import eventually

READS = "import sys; print('ready', flush=True); [print(f'got {line.strip()}', flush=True) for line in sys.stdin]"
SHOWS_SIZE = """
import os, signal, sys, time
def show(*_): os.write(1, f"{os.isatty(0)} {os.isatty(1)} {os.isatty(2)} {tuple(os.get_terminal_size())}\\n".encode())
signal.signal(signal.SIGWINCH, show)
show()
sys.stdin.readline()
"""


class Session:
    """A client of `exec -it`: what it sees, what it types, and how the program ended."""

    def __init__(self) -> None:
        self.seen = b""
        self.streams = Channels(Wanted(stdin=True, stdout=True, tty=True), "v5.channel.k8s.io", self._send)
        self.ended: asyncio.Task[int]

    async def _send(self, _channel: int, data: bytes) -> None:
        self.seen += data

    async def sees(self, text: bytes) -> None:
        await eventually(lambda: text in self.seen, show=lambda: self.seen)

    def resize(self, width: int, height: int) -> None:
        self.streams.resized(orjson.dumps({"Width": width, "Height": height}))


@asynccontextmanager
async def session(script: str, folder: Path, *size: int) -> AsyncIterator[Session]:
    client = Session()
    if size:
        client.resize(*size)
    with PseudoTerminal() as terminal:
        argv = [sys.executable, "-c", script]
        process = await spawning.spawn_at_terminal(argv, {}, folder, terminal.other_side, terminal.path)
        terminal.handed_over()
        client.ended = asyncio.create_task(attended(process, terminal, client.streams))
        try:
            yield client
        finally:
            await spawning.end(process, 0.0)
            await client.ended


async def test_keys_are_echoed_and_read_in_lines_until_the_end_of_input(tmp_path: Path) -> None:
    async with session(READS, tmp_path) as client:
        await client.sees(b"ready\r\n")
        await client.streams.stdin.put(b"one\x7fly\r")
        await client.sees(b"got only\r\n")
        client.streams.stdin.end()
        assert await client.ended == 0


async def test_the_interrupt_key_is_a_signal(tmp_path: Path) -> None:
    async with session(READS, tmp_path) as client:
        await client.sees(b"ready\r\n")
        await client.streams.stdin.put(b"\x03")
        assert await client.ended == 130
        assert b"KeyboardInterrupt" in client.seen, "what it writes at its end is seen"


async def test_the_size_is_that_of_the_client_and_follows_it(tmp_path: Path) -> None:
    async with session(SHOWS_SIZE, tmp_path, 132, 43) as client:
        await client.sees(b"True True True (132, 43)\r\n")
        client.resize(80, 24)
        await client.sees(b"True True True (80, 24)\r\n")
        await client.streams.stdin.put(b"\r")
        assert await client.ended == 0


async def test_much_output_arrives_whole(tmp_path: Path) -> None:
    async with session("print('x' * 300_000)", tmp_path) as client:
        assert await client.ended == 0
        assert client.seen.count(b"x") == 300_000
