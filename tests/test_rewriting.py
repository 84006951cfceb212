"""Tests that were compiled before pytest starts are not compiled again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.rewriting import compiled, missing, rewrite


def test_what_was_compiled_before_is_what_pytest_runs(tmp_path: Path) -> None:
    source = tmp_path / "test_one.py"
    source.write_text("def test_one() -> None:\n    assert [1] == [2]\n")
    assert list(missing(tmp_path)) == [source]
    rewrite(source)
    assert not list(missing(tmp_path))
    before = compiled(source).stat()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "test_one.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "assert [1] == [2]" in done.stdout
    assert "At index 0 diff: 1 != 2" in done.stdout
    after = compiled(source).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
