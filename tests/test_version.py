"""Which version the programs say they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from karmada import version
from tests.support.cases import cases

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@cases(
    ("karmada.cli.karmadactl", "karmadactl"),
    ("karmada.components.karmada", "karmada"),
    ("karmada.components.scheduler", "karmada-scheduler"),
    ("karmada.components.webhook", "karmada-webhook"),
    ("karmada.components.aggregated_apiserver", "karmada-aggregated-apiserver"),
    ("karmada.components.metrics_adapter", "karmada-metrics-adapter"),
    ("karmada.components.search", "karmada-search"),
    ("karmada.components.apiserver", "karmada-apiserver"),
    ("karmada.components.sim", "karmada-sim"),
)
def test_every_program_prints_its_version_in_one_line(module: str, name: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{version.line(name)}\n"
    pattern = (
        rf'{name} version: version\.Info{{GitVersion:"v\d+\.\d+\.\d+[^"]*", GitCommit:"(\w+)", GitShortCommit:"\w+", '
        r'GitTreeState:"\w+", BuildDate:"[^"]+", GoVersion:"[^"]+", Compiler:"\w+", Platform:"\w+/\w+"}\n'
    )
    assert re.fullmatch(pattern, done.stdout)


def test_the_names_in_json() -> None:
    assert list(version.info().pairs()) == [
        "gitVersion", "gitCommit", "gitShortCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform",
    ]  # fmt: skip


def checkout(folder: Path, **files: str) -> Path:
    (folder / "src" / "karmada").mkdir(parents=True)
    for name, text in files.items():
        path = folder / ".git" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_checkout_knows_its_commit_from_gits_files(tmp_path: Path) -> None:
    named = checkout(tmp_path / "a", HEAD="ref: refs/heads/main\n", refs__heads__main=f"{COMMIT}\n")
    assert version.checked_out(named) == COMMIT
    detached = checkout(tmp_path / "b", HEAD=f"{COMMIT}\n")
    assert version.checked_out(detached) == COMMIT
    packed = checkout(tmp_path / "c", HEAD="ref: refs/heads/main")
    (packed / ".git" / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert version.checked_out(packed) == COMMIT


def test_a_worktree_knows_it_too(tmp_path: Path) -> None:
    main = checkout(tmp_path / "main", HEAD="ref: refs/heads/main", refs__heads__side=COMMIT)
    own = main / ".git" / "worktrees" / "side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "side" / "src" / "karmada").mkdir(parents=True)
    (tmp_path / "side" / ".git").write_text(f"gitdir: {own}\n")
    assert version.checked_out(tmp_path / "side") == COMMIT


def test_elsewhere_the_commit_is_unknown(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(COMMIT)  # of somebody else
    assert version.checked_out(tmp_path) == "unknown"
    assert version.checked_out(checkout(tmp_path / "no-git")) == "unknown"
