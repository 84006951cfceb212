"""The settings of a start, from its flags and from the settings of the previous start.

A flag that is not given keeps its previous value. Members are only added: removing one could lose data. The store of an
existing control plane cannot change; that is refused instead of starting with an empty store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from karmada.kube.server.config import DEFAULT_PORT
from karmada.local.folder import ETCD, SQLITE, Choices, Refused

DEFAULT_MEMBERS = 3
DASHBOARD_PORT = 5480


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The flags; None: not given."""

    members: int | None = None
    pull_members: int | None = None
    port: int | None = None
    """0: any free port, for the dashboard as well."""
    dashboard: bool = True
    etcd: bool = False
    etcd_server: str = ""


def choose(
    requested: Requested,
    kept: Choices | None,
    *,
    has_database: bool,
    is_free: Callable[[int], bool],
    free_port: Callable[[], int],
) -> tuple[Choices, list[str]]:
    """Return the settings, and notes for the user."""
    port, notes = _port(requested.port, kept.port if kept else DEFAULT_PORT, is_free, free_port)
    storage = _storage(requested, kept.storage if kept else None, has_database)
    etcd_ports = kept.etcd_ports if kept else (0, 0)
    if storage == ETCD:
        client, peer = (own if own and is_free(own) else free_port() for own in etcd_ports)
        etcd_ports = (client, peer)
    dashboard = 0
    if requested.dashboard:
        usual = kept.dashboard_port if kept and kept.dashboard_port else DASHBOARD_PORT
        dashboard = free_port() if requested.port == 0 or not is_free(usual) else usual
    members = kept.members if kept and requested.members is None else requested.members
    members = DEFAULT_MEMBERS if members is None else members
    choices = Choices(
        members=members,
        pull_members=pull_members(requested, kept.pull_members if kept else 0, members),
        port=port,
        storage=storage,
        etcd_ports=etcd_ports,
        dashboard_port=dashboard,
    )
    return choices, notes


def pull_members(requested: Requested, kept: int, members: int) -> int:
    """Return how many of so many members are in mode Pull."""
    if requested.pull_members is None:
        return min(kept, members)
    if requested.pull_members > members:
        raise Refused(f"--pull-members {requested.pull_members}: there are {members} members; add --members")
    return requested.pull_members


def _port(
    requested: int | None, usual: int, is_free: Callable[[int], bool], free_port: Callable[[], int]
) -> tuple[int, list[str]]:
    if requested == 0:
        return free_port(), []
    if requested is not None:
        if not is_free(requested):
            raise Refused(
                f"port {requested} is in use by another program; choose another --port, or 0 for any free one"
            )
        return requested, []
    if is_free(usual):
        return usual, []
    other = free_port()
    return other, [f"port {usual} is in use by another program; the control plane takes {other} instead"]


def storage_of(requested: Requested) -> str | None:
    """Return the store in the flags; None if none is given."""
    if requested.etcd and requested.etcd_server:
        raise Refused("--etcd starts an etcd and --etcd-server uses one that runs: choose one of them")
    return _address(requested.etcd_server) if requested.etcd_server else ETCD if requested.etcd else None


def _storage(requested: Requested, kept: str | None, has_database: bool) -> str:
    wanted = storage_of(requested)
    if kept is None and has_database:
        kept = SQLITE
    if wanted is not None and kept is not None and wanted != kept:
        raise Refused(
            f"the state is in {_named(kept)}, not in {_named(wanted)}: omit the flag, or use another --data-dir "
            "(karmadactl backup and restore move state from one store to another)"
        )
    return wanted or kept or SQLITE


def _named(storage: str) -> str:
    return {SQLITE: "SQLite", ETCD: "an etcd of its own"}.get(storage, f"the etcd at {storage.partition('?')[0]}")


def _address(text: str) -> str:
    """http://host:port, host:port, … as the address of a store."""
    if text.startswith("etcd://"):
        return text
    if text.startswith("https://"):
        raise Refused(
            f"{text}: for TLS, name the files: --etcd-server "
            f"'etcd://{text.removeprefix('https://').rstrip('/')}?cacert=ca.crt&cert=client.crt&key=client.key'"
        )
    return "etcd://" + ",".join(part.removeprefix("http://").rstrip("/") for part in text.split(","))
