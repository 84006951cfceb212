"""What runs `make test`: commands at the same time, each with its output in one piece, and one result."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.cases import cases
from tests.support.eventually import eventually_blocking

ROOT = Path(__file__).parents[1]
WAITING = "until [ -e {} ]; do sleep 0.01; done"


def started(*titles_and_commands: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.side_by_side", *titles_and_commands]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def shell(text: str) -> str:
    return f"sh -c '{text}'"


def test_the_commands_run_at_the_same_time_and_write_one_after_the_other(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = f"echo first begins; touch {one}; {WAITING.format(two)}; echo first ends"
    second = f"echo second begins; touch {two}; {WAITING.format(one)}; echo second ends"
    process = started("First", shell(first), "Second", shell(second))
    said, _ = process.communicate()
    assert said.splitlines() == [
        "==> First",
        "first begins",
        "first ends",
        "==> Second",
        "second begins",
        "second ends",
        "==> First: ok",
        "==> Second: ok",
    ]
    assert process.returncode == 0


def test_a_command_that_goes_on_longer_than_the_first_is_followed(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    process = started("First", "true", "Second", shell(f"echo begins; {WAITING.format(seen)}; echo ends"))
    assert process.stdout is not None
    for line in process.stdout:
        if line == "begins\n":
            seen.touch()
            break
    assert process.stdout.read().startswith("ends\n")
    assert process.wait() == 0


@cases(0, 1)
def test_one_failure_is_a_failure_of_all_after_all_have_ended(failing: int) -> None:
    commands = ["true", "true"]
    commands[failing] = "false"
    process = started("First", commands[0], "Second", commands[1])
    said, _ = process.communicate()
    assert process.returncode == 1
    verdicts = ["ok", "ok"]
    verdicts[failing] = "FAILED (exit code 1)"
    assert said.endswith(f"==> First: {verdicts[0]}\n==> Second: {verdicts[1]}\n")


def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    """Each marks its orderly end."""
    marking = "trap 'touch {0}.ended; exit 130' INT; touch {0}; while :; do sleep 0.01; done"
    scripts = [tmp_path / "one", tmp_path / "two"]
    for script in scripts:
        script.with_suffix(".sh").write_text(marking.format(script))
    process = started(*(word for script in scripts for word in (script.name, f"sh {script}.sh")))
    eventually_blocking(lambda: all(script.exists() for script in scripts))
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert all(script.with_suffix(".ended").exists() for script in scripts)
