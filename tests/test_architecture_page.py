"""The pages on architecture name what is there: every path and function, every package in order, every dependency."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src/karmada"
PAGE = (ROOT / "docs/architecture.md").read_text()
PAGES = [ROOT / "docs/architecture.md", *sorted((ROOT / "docs/architecture").glob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCREEN = 66
"""Lines of a function that can be read without scrolling."""


def _table(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_exists(page: Path) -> None:
    paths = set(re.findall(r"`?((?:\w+/)*\w+\.(?:py|txt))\b", page.read_text()))
    assert len(paths) > 5
    assert sorted(path for path in paths if not any(SOURCES.rglob(path)) and not (ROOT / path).exists()) == []


def test_the_way_of_a_deployment_leads_through_functions_that_fit_on_a_screen() -> None:
    page = ROOT / "docs/architecture/deployment.md"
    links = re.findall(r"\[`([\w.]+)`\]\((\S+\.py)\)", page.read_text())
    assert len(links) > 30
    lengths = {(path, name): _lengths(page.parent / path).get(name, 0) for name, path in links}
    assert [link for link, length in lengths.items() if not 0 < length <= SCREEN] == []


def _lengths(file: Path) -> dict[str, int]:
    """Return the lines of every function in a file, by its qualified name."""
    return {
        name: (node.end_lineno or 0) - node.lineno + 1 for name, node in _functions(ast.parse(file.read_text()), "")
    }


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{node.name}.")


def test_the_glossary_is_short() -> None:
    assert len(_table("Word")) <= 20


def test_objects_and_caches_are_explained_in_sixty_lines() -> None:
    assert len((ROOT / "docs/architecture/objects-and-caches.md").read_text().splitlines()) <= 60


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
