"""From an address to a store.

- `memory://`
- `sqlite:///absolute/path` or `sqlite:relative/path`, with `?sync=off` for writes that need not survive a power cut
- `etcd://host:port,host:port`, with `?prefix=` for the keys, and for TLS `cacert=`, `cert=` and `key=` (files in PEM)
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from karmada.kube.client.grpc_extra import missing_grpc
from karmada.kube.server.storage.encryption import AS_STORED, Encryption
from karmada.kube.server.storage.interface import Store

_ETCD_PORT = 2379
_ETCD_OPTIONS = ("cacert", "cert", "key", "prefix")


def open_store(url: str, *, accept_loss: bool = False, encryption: Encryption = AS_STORED) -> Store:
    """Return the store at this address, not opened yet; ValueError if no backend knows such an address.

    `accept_loss`: a damaged SQLite store is opened without what is lost, instead of being refused.
    """
    parts = _split(url)
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        from karmada.kube.server.storage.memory import MemoryStore

        return MemoryStore()
    if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
        from karmada.kube.server.storage.sqlite import SqliteStore

        if parts.query not in ("", "sync=off", "sync=on"):
            raise ValueError(f'store "{url}": unknown option "{parts.query}" (known: sync=on, sync=off)')
        return SqliteStore(
            unquote(parts.path), synced=parts.query != "sync=off", accept_loss=accept_loss, encryption=encryption
        )
    if parts.scheme == "etcd" and parts.netloc and not parts.path.strip("/"):
        return _etcd(url, parts, encryption)
    raise ValueError(f'unknown store "{url}" (known: memory://, sqlite:///path/to/file, etcd://host:port,host:port)')


def begin_check(url: str) -> None:
    """Examine the store at this address while the program loads, if that takes long; opening it uses the result."""
    parts = _split(url)
    if parts.scheme == "sqlite":
        from karmada.kube.server.storage import sqlite_early_check

        sqlite_early_check.begin_check(Path(unquote(parts.path)))


def _split(url: str) -> SplitResult:
    """`urlsplit` takes what is between the slashes for one host, and some versions of it refuse several in brackets."""
    scheme, found, rest = url.partition("://")
    if not found or scheme != "etcd":
        return urlsplit(url)
    rest, _, query = rest.partition("?")
    hosts, slash, path = rest.partition("/")
    return SplitResult(scheme, hosts, slash + path, query, "")


def _etcd(url: str, parts: SplitResult, encryption: Encryption) -> Store:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(options.keys() - set(_ETCD_OPTIONS))
    if unknown:
        raise ValueError(f'store "{url}": unknown option "{unknown[0]}" (known: {", ".join(_ETCD_OPTIONS)})')
    empty = sorted(name for name, value in options.items() if not value.strip("/"))
    if empty:
        raise ValueError(f'store "{url}": option "{empty[0]}" is empty')
    if ("cert" in options) != ("key" in options):
        raise ValueError(f'store "{url}": cert and key go together')
    if "cert" in options and "cacert" not in options:
        raise ValueError(f'store "{url}": cert and key need cacert, the authority of the servers')
    addresses = [_with_port(url, host) for host in parts.netloc.split(",")]
    try:
        from karmada.kube.server.storage.etcd import DEFAULT_PREFIX, EtcdStore, TlsFiles
    except ModuleNotFoundError as error:
        raise ValueError(missing_grpc(f'store "{url}"', error, "etcd")) from error

    tls = None
    if "cacert" in options:
        own = [Path(options[name]) if name in options else None for name in ("cert", "key")]
        tls = TlsFiles(Path(options["cacert"]), *own)
    return EtcdStore(addresses, prefix=options.get("prefix", DEFAULT_PREFIX), tls=tls, encryption=encryption)


def _with_port(url: str, address: str) -> str:
    """`host:port`; the port may be left out, an IPv6 address stands in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(_ETCD_PORT)
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or "@" in host or (":" in host and not bracketed) or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f'store "{url}": "{address}" is not host:port')
    return f"{host}:{port}"
