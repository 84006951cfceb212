"""From an address to a store: `memory://`, `sqlite:///absolute/path` (or `sqlite:relative/path`)."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from karmada.kube.server.storage.interface import Store


def open_store(url: str) -> Store:
    """The store at this address, not opened yet; ValueError if no backend knows such an address."""
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        from karmada.kube.server.storage.memory import MemoryStore

        return MemoryStore()
    if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
        from karmada.kube.server.storage.sqlite import SqliteStore

        return SqliteStore(unquote(parts.path))
    raise ValueError(f'unknown store "{url}" (known: memory://, sqlite:///path/to/file)')
