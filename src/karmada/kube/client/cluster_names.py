"""Names of Services for programs that run as processes of a simulated cluster, which has no DNS.

The process runtime of a simulated cluster sets these environment variables. NAMES_FILE names a JSON file with the
cluster's Services, which changes while the program runs; it is read again when it has. Outside of such a process
nothing here has an effect. A name only decides where a connection goes: certificates are checked against the name.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NAMES_FILE, POD_ROOT, POD_ADDRESS = "SIM_CLUSTER_NAMES", "SIM_POD_ROOT", "SIM_POD_IP"
POD_NAMESPACE = "SIM_POD_NAMESPACE"
_DOMAIN = ".cluster.local"


def enabled() -> bool:
    return NAMES_FILE in os.environ


def lookup(host: str, port: int) -> list[tuple[str, int]]:
    """Return the addresses and ports of a Service by any of its names; empty for every other name."""
    path = os.environ.get(NAMES_FILE)
    if path is None:
        return []
    return resolve(read(path), host, port, os.environ.get(POD_NAMESPACE, ""))


def resolve(names: dict[str, Any], host: str, port: int, namespace: str) -> list[tuple[str, int]]:
    """`namespace` is that of the program, in which short names are looked up.

    A port may be served at another number, where the user may not listen at the Service's own.
    """
    for key in _keys(host.rstrip(".").lower(), namespace):
        found = names.get(key)
        if found is not None:
            number = int(found.get("ports", {}).get(str(port), port))
            return [(address, number) for address in found.get("addresses", ())]
    return []


def _keys(host: str, namespace: str) -> list[str]:
    """Return the names in the file that a host may mean: <service>.<namespace>, or <pod>.<service>.<namespace>."""
    name = host.removesuffix(_DOMAIN)
    if name.endswith(".svc"):
        return [name.removesuffix(".svc")]
    if name != host or name.count(".") > 2:
        return []
    return [name] if "." in name else [f"{name}.{namespace}"]


def read(path: str | Path) -> dict[str, Any]:
    """Return the content of a file of names; it is read again only when it has changed."""
    try:
        version = os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return {}
    known = _read.get(str(path))
    if known is None or known[0] != version:
        with open(path, "rb") as file:
            known = _read[str(path)] = version, json.load(file)
    return known[1]


_read: dict[str, tuple[int, dict[str, Any]]] = {}
