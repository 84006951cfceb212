"""karmadactl in this process, to be compared with kubectl.

A command in this process is many times faster than one of its own. What kubectl says is put into the words that
karmadactl is to use: its own name instead of kubectl's, and none of the ways in which kubectl's versions differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from karmada.cli.karmadactl import main
from tests.support.programs import Result


class Karmadactl:
    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._env = {"KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Result:
        done = CliRunner(env={**self._env, **(env or {})}).invoke(main, arguments, input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return Result(done.exit_code, done.stdout, done.stderr)


def in_our_words(text: str) -> str:
    """What kubectl says, with our name."""
    text = text.replace("'kubectl ", "'karmadactl ").replace("Error: ", "error: ")
    text = re.sub(r"kubectl(\.\d+)*(?= get resource)", "karmadactl", text)
    text = re.sub(
        r'^E\d{4} .*"command failed" err="(.*)"$',
        lambda found: "error: " + found[1].replace('\\"', '"'),
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"(?<=declared annotation\(s\): ).*",
        lambda found: "; ".join(sorted(found[0].split("; "))),  # kubectl says them in any order
        text,
    )
    text = re.sub(r" deleted from \S+ namespace", " deleted", text)
    return re.sub(r"^the server doesn't have", "error: the server doesn't have", text)
