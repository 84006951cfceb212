"""Which version of the programs this is, and which commit it was made of.

A built package carries the facts in a module of their own, written when it was built. In a checkout the commit is read
from git's files, without running git.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

VERSION = "0.1.0"
_UNKNOWN = "unknown"


class Info(NamedTuple):
    """Fields as version.Info of Kubernetes programs has them."""

    git_version: str
    git_commit: str
    git_short_commit: str
    git_tree_state: str
    build_date: str
    go_version: str
    compiler: str
    platform: str

    def pairs(self) -> dict[str, str]:
        """Return the fields by their names in JSON."""
        return {_camel(name): value for name, value in zip(self._fields, self, strict=True)}

    def __str__(self) -> str:
        shown = (f'{name[0].upper()}{name[1:]}:"{value}"' for name, value in self.pairs().items())
        return f"version.Info{{{', '.join(shown)}}}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def info() -> Info:
    commit, state, date = _built()
    interpreter = sys.implementation
    return Info(
        git_version=f"v{VERSION}",
        git_commit=commit,
        git_short_commit=commit[:10] if commit != _UNKNOWN else commit,
        git_tree_state=state,
        build_date=date,
        go_version=f"{interpreter.name}{'.'.join(map(str, sys.version_info[:3]))}",
        compiler=interpreter.name,
        platform=f"{sys.platform}/{_machine()}",
    )


def line(program: str) -> str:
    """Return what `PROGRAM version` prints."""
    return f"{program} version: {info()}"


def _machine() -> str:
    """Return the processor, as container images name it."""
    from os import uname

    machine = uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _built() -> tuple[str, str, str]:
    """Commit, state of the tree and date: as built, or of the checkout."""
    try:
        from karmada import _build  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return checked_out(Path(__file__).parents[2]), _UNKNOWN, _UNKNOWN
    return str(_build.COMMIT), str(_build.TREE_STATE), str(_build.DATE)


def checked_out(folder: Path) -> str:
    """Return the commit that is checked out in a folder with the sources."""
    git = folder / ".git"
    if not (folder / "src" / "karmada").is_dir():
        return _UNKNOWN
    try:
        if git.is_file():  # of a worktree
            git = folder / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head
        return _commit_of(git, head.removeprefix("ref:").strip())
    except OSError:
        return _UNKNOWN


def _commit_of(git: Path, ref: str) -> str:
    shared = git / "commondir"
    common = git / shared.read_text().strip() if shared.exists() else git
    for folder in (git, common):
        if (folder / ref).exists():
            return (folder / ref).read_text().strip()
    packed = common / "packed-refs"
    for row in packed.read_text().splitlines() if packed.exists() else ():
        if row.endswith(f" {ref}"):
            return row.partition(" ")[0]
    return _UNKNOWN
