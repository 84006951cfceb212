"""karmadactl in this process, many times faster than one of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from click.testing import CliRunner

from karmada.cli.karmadactl import main
from tests.support.programs import Program, Result


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
        done = CliRunner(env=env).invoke(main, [*self._words, *arguments], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        result = Result(done.exit_code, done.stdout, done.stderr)
        assert result.code == 0 or not check, f"{arguments} failed ({result.code}):\n{result.out}\n{result.err}"
        return result
