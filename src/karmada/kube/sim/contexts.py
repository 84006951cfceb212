"""The kubeconfig of a fleet: the kubeconfigs of many clusters in one file, as contexts named like them.

It is written whenever a cluster comes or goes, so the text of each cluster is made once and kept; the current-context
is read from the file only when somebody else has written it since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from karmada.kube.schema.yamlio import dump_yaml, load_yaml
from karmada.kube.server.auth.files import write_private

_PARTS: Final = ("clusters", "users", "contexts")
_Identity: TypeAlias = tuple[int, int, int]


class Contexts:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts: dict[Path, tuple[_Identity | None, dict[str, bytes]]] = {}
        """The entries of each cluster's kubeconfig, by part."""
        self._current = ""
        self._written: _Identity | None = None
        """The file as it was last written here."""

    def write(self, kubeconfigs: Mapping[str, Path]) -> None:
        """Write one file with these clusters, by name. The current-context stays while there is such a cluster."""
        texts = [self._of(path) for path in kubeconfigs.values()]
        self._texts = {path: self._texts[path] for path in kubeconfigs.values()}
        current = self._current_context()
        self._current = current if current in kubeconfigs else next(iter(kubeconfigs), "")
        head = dump_yaml({"apiVersion": "v1", "kind": "Config", "current-context": self._current})
        write_private(self._path, head + b"".join(_list(part, [text[part] for text in texts]) for part in _PARTS))
        self._written = _identity(self._path)

    def _of(self, path: Path) -> dict[str, bytes]:
        identity = _identity(path)
        known = self._texts.get(path)
        if known is None or known[0] != identity:
            single = load_yaml(path.read_text())
            known = self._texts[path] = identity, {part: dump_yaml(single[part]) for part in _PARTS}
        return known[1]

    def _current_context(self) -> str:
        """Return the one that the user has set in the file, which rewriting it must keep."""
        identity = _identity(self._path)
        if identity is None or identity == self._written:
            return self._current
        return str((load_yaml(self._path.read_text()) or {}).get("current-context") or "")


def _list(name: str, entries: Sequence[bytes]) -> bytes:
    return name.encode() + (b":\n" + b"".join(entries) if entries else b": []\n")


def _identity(path: Path) -> _Identity | None:
    """Return the identity of the content of a file; None without a file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
