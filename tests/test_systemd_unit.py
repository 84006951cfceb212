"""The systemd unit of a control plane on one machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from karmada.components.karmada import main

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "packaging" / "karmada.service"


def service() -> dict[str, str]:
    parser = ConfigParser(delimiters=("=",), strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text())
    assert parser["Install"]["WantedBy"] == "multi-user.target"
    return dict(parser["Service"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    program = Path(sys.executable).with_name("karmada")
    copy.write_text(UNIT.read_text().replace("/opt/karmada/bin/karmada", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not complaints


def test_the_program_knows_the_flags() -> None:
    program, *words = service()["ExecStart"].split()
    assert Path(program).name == "karmada"
    known = {name for option in main.params for name in option.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known
    assert words[-1] == "$KARMADA_FLAGS"


def test_it_has_one_folder_and_no_privilege() -> None:
    found = service()
    assert f"--data-dir=/var/lib/{found['StateDirectory']}" in found["ExecStart"]
    assert (found["DynamicUser"], found["ProtectSystem"], found["NoNewPrivileges"]) == ("yes", "strict", "yes")
    assert found["CapabilityBoundingSet"] == ""


def test_the_page_on_installing_says_where_it_is() -> None:
    assert "packaging/karmada.service" in (ROOT / "docs" / "install.md").read_text()


def test_a_program_that_ends_because_it_hung_is_started_again() -> None:
    found = service()
    assert found["Restart"] == "always"
    assert found["RestartSec"] == "2", "the five starts in ten seconds that systemd allows are never reached"
