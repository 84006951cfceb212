"""What all programs of the project have in common, whichever are installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
_INFO = r"version: version\.Info\{GitVersion:\"v[0-9.]+\", .*Platform:\"\S+\"\}\n"
_COMPLETION = "kubectl_complete-karmada"
"""Every word on its command line is one to complete."""


def program(name: str) -> click.Command | Callable[[], None]:
    module, _, attribute = SCRIPTS[name].partition(":")
    found: click.Command | Callable[[], None] = getattr(import_module(module), attribute)
    return found


@pytest.mark.parametrize("words", [["--version"], ["version"]])
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != _COMPLETION])
def test_every_program_prints_its_version(name: str, words: list[str]) -> None:
    command = program(name)
    assert isinstance(command, click.Command)
    done = CliRunner().invoke(command, words, prog_name=name)
    assert done.exit_code == 0
    assert re.fullmatch(rf"(karmadactl|{name}) {_INFO}", done.output), done.output


def test_a_version_is_shown_before_other_flags_are_read() -> None:
    command = program("karmada-scheduler")
    assert isinstance(command, click.Command)
    assert CliRunner().invoke(command, ["--scheduler-name", "x", "--version"]).output.startswith("karmada-scheduler v")


@pytest.mark.parametrize(
    ("flag", "switch"),
    [
        ("--dashboard-writes", "--dashboard"),
        ("--dashboard-port=0", "--dashboard"),
        ("--dashboard-bind-address=::", "--dashboard"),
        ("--dashboard-host=a.example", "--dashboard"),
        ("--descheduling-interval=1m", "--enable-descheduler"),
        ("--unschedulable-threshold=1m", "--enable-descheduler"),
    ],
)
@pytest.mark.parametrize("off", [False, True])
def test_a_flag_that_needs_a_switch_is_refused_without_it(flag: str, switch: str, off: bool) -> None:
    command = program("karmada")
    assert isinstance(command, click.Command)
    done = CliRunner().invoke(command, [*([f"{switch}=false"] if off else []), flag])
    assert done.exit_code == 2
    assert f"{flag.partition('=')[0]} has no effect without {switch}: add {switch}" in done.output
