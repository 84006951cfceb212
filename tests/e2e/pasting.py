"""The shell of documentation pages, run the way a person pastes it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def blocks(path: Path, language: str) -> list[str]:
    """The contents of the page's fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def paste_with(text: str, env: dict[str, str], folder: Path) -> str:
    """Standard output and error, interleaved, of a whole page; what it exports stays set."""
    done = subprocess.run(
        ["bash"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=180,
        check=False, cwd=folder,
    )  # fmt: skip
    assert "command not found" not in done.stdout, done.stdout
    return done.stdout
