"""karmadactl in this process, many times faster than one of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import click.testing
from click.testing import CliRunner

from karmada.cli.karmadactl import main
from tests.support.programs import Program, Result

T = TypeVar("T")


class Karmadactl(Program):
    """With a home and a kubeconfig of its own; `words` begin every command line. `start` makes it a process."""

    def __init__(self, home: Path, kubeconfig: Path, *words: str) -> None:
        super().__init__([sys.executable, "-m", "karmada.cli.karmadactl", *words], home, kubeconfig)
        self._words = words

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        check: bool = True,
        timeout: float = 60,  # noqa: ARG002 - only a process can be ended
        home: Path | None = None,
    ) -> Result:
        env = {name: self.env[name] for name in ("KUBECONFIG", "NO_COLOR")} | {"HOME": str(home or self.home)}
        done = _outside_of_loops(lambda: CliRunner(env=env).invoke(main, [*self._words, *arguments], input=stdin))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        result = Result(done.exit_code, done.stdout, done.stderr)
        assert result.code == 0 or not check, f"{arguments} failed ({result.code}):\n{result.out}\n{result.err}"
        return result


def _outside_of_loops(command: Callable[[], T]) -> T:
    """Commands run a loop of their own: in a thread where one runs here, as Playwright's does with a browser open."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return command()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(command).result()


def said(result: click.testing.Result) -> tuple[int, str, str]:
    return result.exit_code, result.stdout, result.stderr
