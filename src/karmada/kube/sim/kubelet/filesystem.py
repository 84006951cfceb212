"""The files of simulated containers: volumes, and where a container has mounted them.

An emptyDir belongs to a pod, a host path to a node, and what a container writes elsewhere to its present run; all are
kept in memory, up to a size, as long as their owner is there. What comes from the API (ConfigMaps, Secrets, tokens) is
read-only, and made anew for every look.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_BYTES = 1 << 20
MOST_ENTRIES = 500


class Refused(Exception):
    """A file cannot be written; the text is the reason as a program prints it."""


class CannotTell(Exception):
    """How a container would go on depends on what is not simulated."""


@dataclass(slots=True, eq=False)
class Volume:
    """Files and directories by their path inside it."""

    files: dict[str, bytes] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    writable: bool = True

    def write(self, path: str, content: bytes) -> None:
        if not self.writable:
            raise Refused("Read-only file system")
        held = sum(map(len, self.files.values())) - len(self.files.get(path, b""))
        entries = len(self.files) + len(self.directories)
        if held + len(content) > MOST_BYTES or (path not in self.files and entries >= MOST_ENTRIES):
            raise Refused("No space left on device")
        self.files[path] = content

    def make_directory(self, path: str) -> None:
        if not self.writable:
            raise Refused("Read-only file system")
        if len(self.files) + len(self.directories) >= MOST_ENTRIES:
            raise Refused("No space left on device")
        self.directories.add(path)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        if not self.writable:
            raise Refused("Read-only file system")
        inside = f"{path}/"
        self.files = {at: content for at, content in self.files.items() if at != path and not at.startswith(inside)}
        self.directories = {at for at in self.directories if at != path and not at.startswith(inside)}


class Mount(NamedTuple):
    volume: Volume
    part: str = ""
    """The path inside the volume that is mounted; "": all of it."""
    writable: bool = True


def _fits(names: list[str], pattern: list[str]) -> bool:
    return len(names) == len(pattern) and all(
        fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
        for name, part in zip(names, pattern, strict=True)
    )


class FileSystem:
    """The files that a container finds under each absolute path."""

    def __init__(self, mounts: Mapping[str, Mount]) -> None:
        """`mounts` are by absolute path; the one at "/" holds what no other does."""
        self._mounts = {"/": Mount(Volume()), "/tmp": Mount(Volume()), "/dev": Mount(Volume()), **mounts}
        self.looked = False
        """True if something was read that others may write."""
        self.knows_image = True
        """Nothing is in the image but what is listed; else looking for something there raises CannotTell."""

    @classmethod
    def of(cls, files: Mapping[str, bytes] | None = None) -> FileSystem:
        """With these files, and nothing that can be written."""
        return cls({path: Mount(Volume({"": content}, writable=False)) for path, content in (files or {}).items()})

    def _find(self, path: str) -> tuple[Mount, str]:
        """Return the mount that a path is in, and the path inside its volume."""
        at = path
        while at not in self._mounts:
            at = posixpath.dirname(at)
        mount = self._mounts[at]
        rest = path[len(at) :].strip("/")
        self.looked = self.looked or mount.volume.writable
        return mount, "/".join(part for part in (mount.part, rest) if part)

    def read(self, path: str) -> bytes | None:
        mount, inside = self._find(path)
        content = mount.volume.files.get(inside)
        if content is None and not self.knows_image and mount is self._mounts["/"] and not self._leads_on(path):
            raise CannotTell(path)
        return content

    def _leads_on(self, path: str) -> bool:
        """Return whether something is mounted below."""
        below = path.rstrip("/") + "/"
        return any(other.startswith(below) for other in self._mounts)

    def is_file(self, path: str) -> bool:
        return self.read(path) is not None

    def is_directory(self, path: str) -> bool:
        mount, inside = self._find(path)
        known = (*mount.volume.directories, *mount.volume.files)
        if inside in mount.volume.directories or any(other.startswith(f"{inside}/") for other in known):
            return True
        return not self.is_file(path) and (path in self._mounts or self._leads_on(path))

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        mount, inside = self._find(directory)
        prefix = f"{inside}/" if inside else ""
        known = (*mount.volume.files, *mount.volume.directories)
        found = {other[len(prefix) :].split("/")[0] for other in known if other.startswith(prefix)}
        above = directory.rstrip("/") + "/"
        found |= {other[len(above) :].split("/")[0] for other in self._mounts if other.startswith(above)}
        return sorted(found - {""})

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that an absolute pattern matches, sorted."""
        wanted = pattern.strip("/").split("/")
        return sorted(path for path in self._paths() if _fits(path.strip("/").split("/"), wanted))

    def _paths(self) -> set[str]:
        """Return all that is known, with the directories that lead there."""
        found = set(self._mounts)
        for at, mount in self._mounts.items():
            prefix = f"{mount.part}/" if mount.part else ""
            for inside in (*mount.volume.files, *mount.volume.directories):
                path = posixpath.join(at, inside[len(prefix) :]).rstrip("/") or "/"
                if inside.startswith(prefix) and self._find(path)[0] is mount:
                    found.add(path)
        for path in list(found):
            above = posixpath.dirname(path)
            while above not in found:
                found.add(above)
                above = posixpath.dirname(above)
        return found

    def write(self, path: str, content: bytes, *, append: bool = False) -> None:
        if self.is_directory(path):
            raise Refused("Is a directory")
        if not self.is_directory(posixpath.dirname(path)):
            raise Refused("nonexistent directory")
        mount, inside = self._writable(path)
        before = mount.volume.files.get(inside, b"") if append else b""
        mount.volume.write(inside, before + content)

    def make_directory(self, path: str) -> None:
        mount, inside = self._writable(path)
        mount.volume.make_directory(inside)

    def remove(self, path: str) -> None:
        if path in self._mounts:
            raise Refused("Resource busy")
        mount, inside = self._writable(path)
        mount.volume.remove(inside)

    def _writable(self, path: str) -> tuple[Mount, str]:
        mount, inside = self._find(path)
        if not mount.writable:
            raise Refused("Read-only file system")
        return mount, inside


@dataclass(slots=True)
class NodeVolumes:
    """The volumes of the nodes of a cluster, and of the pods on them."""

    _of_pods: dict[str, dict[str, Volume]] = field(default_factory=dict)
    _of_nodes: dict[str, Volume] = field(default_factory=dict)

    def empty_dir(self, uid: str, name: str) -> Volume:
        return self._of_pods.setdefault(uid, {}).setdefault(f"volume {name}", Volume())

    def written_by(self, uid: str, container: str) -> Volume:
        """Return what a container writes outside its volumes."""
        return self._of_pods.setdefault(uid, {}).setdefault(f"container {container}", Volume())

    def restart(self, uid: str, container: str) -> None:
        """Begin a new run of a container with the files of its image."""
        self._of_pods.get(uid, {}).pop(f"container {container}", None)

    def host(self, node: str) -> Volume:
        return self._of_nodes.setdefault(node, Volume())

    def forget_pod(self, uid: str) -> None:
        self._of_pods.pop(uid, None)

    def forget_node(self, node: str) -> None:
        self._of_nodes.pop(node, None)
