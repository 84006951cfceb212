"""The browser libraries are what their table says, with their licences, and nothing else is in their folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src/karmada/dashboard/vendor"
PACKAGES = json.loads((FOLDER / "packages.json").read_text())
FILES = {file["to"]: file["sha256"] for package in PACKAGES for file in package["files"]}


def test_every_file_is_the_one_that_was_published() -> None:
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in FILES} == FILES


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*FILES, "packages.json"}


def test_every_package_is_pinned_and_has_its_licence() -> None:
    for package in PACKAGES:
        assert package["integrity"].startswith("sha512-")
        assert package["license"] in ("MIT", "0BSD")
        assert any(file["to"].endswith(".LICENSE") for file in package["files"])
