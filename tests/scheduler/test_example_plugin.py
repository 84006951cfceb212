"""The plug-in of docs/scheduling.md, installed as a package would be."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from karmada.features import default_gates
from karmada.scheduler.algorithm import schedule
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from karmada.scheduler.service.assembly import assemble
from tests.support.scheduling_cases import DUPLICATED, cluster, deployment, placement, shown

PAGE = Path(__file__).parents[2] / "docs" / "scheduling.md"
FLEET = Fleet.of([cluster("m1", labels={"tier": "gold"}), cluster("m2")])


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gold_only.py").write_text(block("python"))
    metadata = tmp_path / "gold_only-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gold-only\nVersion: 1.0\n")
    group, entry = re.match(r'\[project\.entry-points\."(.*)"\]\n(.*)\n', block("toml")).groups()
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gold_only", raising=False)


def placed(namespace: str, *plugins: str) -> dict[str, int] | str:
    spec = deployment(1, placement(DUPLICATED))
    spec = {**spec, "resource": {**spec["resource"], "namespace": namespace}}
    profile, local, _ = assemble(default_gates(), plugins or ("*",))
    return shown(schedule(Request(spec), FLEET, local, profile))


@pytest.mark.usefixtures("installed")
def test_it_takes_part_as_soon_as_it_is_installed() -> None:
    assert placed("bank") == {"m1": 1}
    assert placed("shop") == {"m1": 1, "m2": 1}


@pytest.mark.usefixtures("installed")
def test_it_can_be_left_out_by_name() -> None:
    assert placed("bank", "*", "-GoldOnly") == {"m1": 1, "m2": 1}


def test_without_it_nothing_changes() -> None:
    assert placed("bank") == {"m1": 1, "m2": 1}
