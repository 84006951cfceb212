"""Follows a Containerfile without a builder: each stage is a folder, and absolute paths of its steps lie below it.

It knows the instructions that the project uses and refuses others. A base image is what the machine has: the Python
that runs the tests, and a shell.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_ABSOLUTE = re.compile(r"(?<![\w./\-*])/(?=\w)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Instruction(NamedTuple):
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        return self.rest.split()


@dataclass
class Stage:
    root: Path
    base: str
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    user: str = ""
    command: list[str] = field(default_factory=list)


def instructions(text: str) -> Iterator[Instruction]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield Instruction(name, rest.strip())


class Build:
    """The stages of a Containerfile, run in the order of the file."""

    def __init__(self, context: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._context = context
        self._folder = folder
        self._environment = dict(environment)
        self._arguments: dict[str, str] = {}
        self._stages: dict[str, Stage] = {}
        self._stage = Stage(folder, "")

    def run(self, text: str) -> Stage:
        """The last stage."""
        for step in instructions(text):
            getattr(self, f"_{step.name.lower()}")(step)
        return self._stage

    def _arg(self, step: Instruction) -> None:
        name, _, default = step.rest.partition("=")
        self._arguments[name] = self._environment.get(name, default)

    def _from(self, step: Instruction) -> None:
        base, *name = self._expanded(step.rest).split(" AS ")
        root = self._folder / f"stage-{len(self._stages)}"
        for made in ("bin", "opt", "tmp"):
            (root / made).mkdir(parents=True)
        self._stage = Stage(root, base)
        self._stages[name[0] if name else ""] = self._stage

    def _workdir(self, step: Instruction) -> None:
        self._stage.workdir = step.rest
        self._inside(step.rest).mkdir(parents=True, exist_ok=True)

    def _copy(self, step: Instruction) -> None:
        words = step.words
        origin = self._context
        if words[0].startswith("--from="):
            origin = self._stages[words.pop(0).removeprefix("--from=")].root
        *sources, target = words
        for source in sources:
            found = origin / source.lstrip("/")
            assert found.exists(), f"COPY {source}: there is no such file"
            place = self._inside(target)
            if found.is_dir():
                shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(found, place / found.name)

    def _run(self, step: Instruction) -> None:
        script = _ABSOLUTE.sub(f"{self._stage.root}/", self._expanded(step.rest))
        env = {**self._environment, **self._stage.env, "PATH": f"{_base_programs()}{os.pathsep}{os.environ['PATH']}"}
        folder = self._inside(self._stage.workdir)
        done = subprocess.run(["sh", "-ec", script], cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"RUN {script}\n{done.stdout}{done.stderr}"

    def _env(self, step: Instruction) -> None:
        self._stage.env |= dict(word.split("=", 1) for word in step.words)

    def _label(self, step: Instruction) -> None:
        assert all("=" in word for word in re.findall(r'\S+="[^"]*"|\S+', step.rest)), step.rest

    def _user(self, step: Instruction) -> None:
        self._stage.user = step.rest

    def _cmd(self, step: Instruction) -> None:
        self._stage.command = json.loads(step.rest)

    def _expanded(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._arguments[match[1]], text)

    def _inside(self, path: str) -> Path:
        if path.startswith("/"):
            return self._stage.root / path.lstrip("/")
        return self._stage.root / self._stage.workdir.lstrip("/") / path


def _base_programs() -> Path:
    """Where the Python of the base image would have `python` and `pip`: here, those that run the tests."""
    return Path(sys.executable).parent
