"""docs/architecture.md names what is there: every path, every package in import-linter's order, every dependency."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src/karmada"
PAGE = (ROOT / "docs/architecture.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _table(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_path_exists() -> None:
    paths = set(re.findall(r"`?((?:\w+/)*\w+\.(?:py|txt))\b", PAGE))
    assert len(paths) > 40
    assert sorted(path for path in paths if not any(SOURCES.rglob(path)) and not (ROOT / path).exists()) == []


def test_the_packages_stand_in_the_order_that_is_checked() -> None:
    documented = [name for heading in ("In `karmada.kube`", "Above it") for name in _names(heading)]
    karmada, kube = (contract["layers"] for contract in PROJECT["tool"]["importlinter"]["contracts"])
    checked = [*(f"kube/{name}" for name in reversed(kube)), *(name for name in reversed(karmada) if name != "kube")]
    assert documented == checked


def _names(heading: str) -> list[str]:
    return [row[0].strip("`").removesuffix(".py") for row in _table(heading)]


def test_every_dependency_is_explained() -> None:
    explained = {word.lower() for row in _table("Need") for word in re.findall(r"[\w-]+", row[1])}
    extra = PROJECT["project"]["optional-dependencies"]["grpc"]
    required = {re.split("[>=]", entry)[0].lower() for entry in [*PROJECT["project"]["dependencies"], *extra]}
    assert required - explained == set()
