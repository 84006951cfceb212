"""A control plane in a thread of its own, for tests that run commands against it one after another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from karmada.cli.karmadactl import main
from tests.support.karmada_server import serving


@dataclass(frozen=True)
class CommandResult:
    """The output of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Commands:
    """karmadactl in this process, towards one server."""

    kubeconfig: Path

    def __call__(
        self, *words: str, stdin: str = "", env: dict[str, str] | None = None, ok: bool = True
    ) -> CommandResult:
        done = CliRunner(env={"KUBECONFIG": str(self.kubeconfig), **(env or {})}).invoke(main, words, input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        said = CommandResult(done.exit_code, done.stdout, done.stderr)
        assert not ok or said.code == 0, said
        return said

    def refused(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        """The error output of a command that must fail."""
        said = self(*words, stdin=stdin, env=env, ok=False)
        assert said.code == 1, said
        return said.err


@contextmanager
def served_apart(folder: Path) -> Iterator[Commands]:
    started = threading.Event()
    found: list[Path | BaseException] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        async with serving(folder) as server:
            found.append(server.kubeconfig)
            started.set()
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - the other thread has to know
            found.append(error)
            started.set()

    thread = threading.Thread(target=run, name="control-plane")
    thread.start()
    started.wait()
    if isinstance(found[0], BaseException):
        raise found[0]
    try:
        yield Commands(found[0])
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()
