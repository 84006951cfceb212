"""The addresses of load balancers in all clusters as one list: each once, in an order that does not depend on theirs.

What is the same address in two clusters has the ports of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karmada.interpreter.native.fields import entries, number, section
from karmada.interpreter.operations import Report
from karmada.kube.objects.types import Obj

_Key = tuple[str, str, str | None]
_Port = tuple[int, str, str | None]


def service_status(obj: Obj, reports: Sequence[Report]) -> Obj | None:
    """Return None for a Service that is not balanced from outside."""
    if section(obj, "spec").get("type") != "LoadBalancer":
        return None
    return _merged(reports, with_mode=True)


def ingress_status(_: Obj, reports: Sequence[Report]) -> Obj:
    return _merged(reports, with_mode=False)


def _merged(reports: Iterable[Report], *, with_mode: bool) -> Obj:
    found: dict[_Key, set[_Port]] = {}
    for report in reports:
        if report.status is None:
            continue
        for entry in entries(section(report.status, "loadBalancer"), "ingress"):
            key = entry.get("hostname") or "", entry.get("ip") or "", entry.get("ipMode") if with_mode else None
            found.setdefault(key, set()).update(map(_port, entries(entry, "ports")))
    if not found:
        return {"loadBalancer": {}}
    return {"loadBalancer": {"ingress": [_entry(key, found[key]) for key in sorted(found, key=_rank)]}}


def _port(port: Obj) -> _Port:
    return number(port, "port"), port.get("protocol") or "", port.get("error")


def _rank(key: _Key) -> Any:
    """Return the sort key: by name, what has none last; then by address; then by mode, what has none last."""
    hostname, address, mode = key
    return not hostname, hostname, address, mode is None, mode or ""


def _entry(key: _Key, ports: set[_Port]) -> Obj:
    entry: Obj = {field: value for field, value in zip(("hostname", "ip", "ipMode"), key, strict=True) if value}
    if ports:
        ordered = sorted(ports, key=lambda port: (port[0], port[1], port[2] is not None, port[2] or ""))
        entry["ports"] = [_written(*port) for port in ordered]
    return entry


def _written(port: int, protocol: str, error: str | None) -> Obj:
    written: Obj = {"port": port, "protocol": protocol}
    if error is not None:
        written["error"] = error
    return written
