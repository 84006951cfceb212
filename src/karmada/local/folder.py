"""The layout of a local environment's folder, and the stored settings of its last start.

The folder is the data directory of the control plane, and `sim` in it that of the simulated clusters, so the programs
find the same state when they are started directly. The two kubeconfigs for users are links to those that the programs
replace atomically.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

import msgspec

from karmada.kube.server.auth.files import read_optional, write_private

CONTROL_PLANE_CONTEXT = "karmada-apiserver"
SQLITE = "sqlite"
ETCD = "etcd"


class Refused(Exception):
    """A user error; the message names the fix."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a start; the next start uses them as defaults."""

    members: int
    port: int
    storage: str = SQLITE
    """`sqlite`, `etcd` (our own, in the folder), or the address of an external etcd."""
    etcd_ports: tuple[int, int] = (0, 0)
    """Client port, peer port."""
    dashboard_port: int = 0
    """0: there is no dashboard."""
    dashboard: str = ""
    """Where it is, as the control plane reports: flags of its own may have chosen another port, or none."""
    pull_members: int = 0
    """How many of the last members are in mode Pull."""

    def is_pull(self, member: str) -> bool:
        return member in self.member_names[self.members - self.pull_members :]

    @property
    def member_names(self) -> list[str]:
        return [f"member{number}" for number in range(1, self.members + 1)]


def folder_of_clusters(root: Path) -> Path:
    """Return where the simulated clusters of a folder are: in `sim`, if it is that of a local environment."""
    folder = Folder(root)
    return folder.sim if folder.is_local_environment else folder.root


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.sim = self.root / "sim"
        self.etcd = self.root / "etcd"
        self.logs = self.root / "logs"
        self.run = self.root / "run"
        self.database = self.root / "state.db"
        self.control_kubeconfig = self.root / "karmada-apiserver.config"
        self.members_kubeconfig = self.root / "members.config"
        self._choices = self.root / "local.json"
        self._links = {
            self.control_kubeconfig: self.root / "admin.kubeconfig",
            self.members_kubeconfig: self.sim / "members.config",
        }

    def make(self) -> None:
        for path in (self.root, self.logs, self.run):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def log(self, program: str) -> Path:
        return self.logs / f"{program}.log"

    # settings

    @property
    def is_local_environment(self) -> bool:
        return self._choices.exists()

    def choices(self) -> Choices | None:
        content = read_optional(self._choices)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=Choices)
        except msgspec.MsgspecError as error:
            raise Refused(f"{self._choices} cannot be read ({error}); fix it or remove it") from error

    def keep(self, choices: Choices) -> None:
        content = msgspec.json.encode(choices)
        if read_optional(self._choices) != content:
            write_private(self._choices, content)

    # kubeconfigs

    def link_kubeconfigs(self) -> None:
        """Link to the kubeconfigs that the programs write. Files of the same names are replaced."""
        for link, target in self._links.items():
            wanted = os.path.relpath(target, link.parent)
            if link.is_symlink() and os.readlink(link) == wanted:
                continue
            temporary = link.with_name(f".{link.name}.{secrets.token_hex(4)}")
            temporary.symlink_to(wanted)
            temporary.replace(link)

    # removal

    def purge(self) -> None:
        """Remove the files of the programs; the folder stays if it holds other files."""
        for path in (*self._database_files(), self.root / "admin.kubeconfig", self.root / ".lock"):
            path.unlink(missing_ok=True)
        for link in self._links:
            link.unlink(missing_ok=True)
        for folder in (self.sim, self.etcd, self.logs, self.root / "pki", self.run):
            shutil.rmtree(folder, ignore_errors=True)
        self._choices.unlink(missing_ok=True)
        if self.root.is_dir() and not any(self.root.iterdir()):
            self.root.rmdir()

    def _database_files(self) -> list[Path]:
        """Return the database with what SQLite and the store write beside it."""
        name = self.database.name
        beside = (f"{name}-*", f"{name}.lock", f"{name}.damaged-*", f"{name}.salvaged*")
        return [self.database, *(path for pattern in beside for path in self.root.glob(pattern))]


def shown(path: Path) -> str:
    """Return a path with ~ for the home directory."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path)
