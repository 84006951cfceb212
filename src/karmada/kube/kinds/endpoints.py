"""Endpoints and EndpointSlices: the addresses behind a Service.

Loopback addresses are allowed: on a laptop the API server's own endpoint is one.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, not_supported, required, too_many
from karmada.kube.objects.types import Obj

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_MAX_ENDPOINTS, _MAX_PORTS, _MAX_ADDRESSES = 1000, 20000, 100


def default_endpoints(obj: Obj) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill_text(port, protocol="TCP")


def validate_endpoints(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for kind in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(kind) or ()):
                checks.ip_address(errors, f"{path}.{kind}[{place}].ip", address.get("ip") or "")
        ports = subset.get("ports") or ()
        for place, port in enumerate(ports):
            where = f"{path}.ports[{place}]"
            if len(ports) > 1 and not port.get("name"):
                errors.append(required(f"{where}.name"))
            elif port.get("name"):
                checks.add_invalid(errors, f"{where}.name", port["name"], names.dns1123_label(port["name"]))
            checks.port_number(errors, f"{where}.port", port.get("port"))
            checks.one_of(errors, f"{where}.protocol", port.get("protocol"), PROTOCOLS)
    return errors


# --- slices


def default_slice(obj: Obj) -> None:
    for port in obj.get("ports") or ():
        fill(port, name="")
        fill_text(port, protocol="TCP")


def validate_slice(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    kind = obj.get("addressType")
    if not kind:
        errors.append(required("addressType"))
    elif kind not in ADDRESS_TYPES:
        errors.append(not_supported("addressType", kind, ADDRESS_TYPES))
    endpoints, ports = obj.get("endpoints") or [], obj.get("ports") or []
    if len(endpoints) > _MAX_ENDPOINTS:
        errors.append(too_many("endpoints", len(endpoints), _MAX_ENDPOINTS))
    else:
        for index, endpoint in enumerate(endpoints):
            _endpoint(errors, f"endpoints[{index}]", endpoint, kind)
    if len(ports) > _MAX_PORTS:
        errors.append(too_many("ports", len(ports), _MAX_PORTS))
    else:
        _slice_ports(errors, ports)
    return errors


def _endpoint(errors: list[FieldError], path: str, endpoint: Obj, kind: str | None) -> None:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > _MAX_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), _MAX_ADDRESSES))
    for index, address in enumerate(addresses):
        where = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            checks.add_invalid(errors, where, address, names.dns1123_subdomain(address))
        elif kind in ("IPv4", "IPv6"):
            _address(errors, where, address, kind)
    if endpoint.get("nodeName"):
        checks.add_invalid(
            errors, f"{path}.nodeName", endpoint["nodeName"], names.dns1123_subdomain(endpoint["nodeName"])
        )
    if endpoint.get("hostname"):
        checks.add_invalid(errors, f"{path}.hostname", endpoint["hostname"], names.dns1123_label(endpoint["hostname"]))


def _address(errors: list[FieldError], path: str, address: str, kind: str) -> None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        checks.ip_address(errors, path, address)
        return
    if parsed.version != int(kind[3]):
        errors.append(invalid(path, address, f"must be an {kind} address"))
    if parsed.is_unspecified or parsed.is_link_local or parsed.is_multicast:
        errors.append(invalid(path, address, _special_range(parsed)))


def _special_range(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if ip.is_unspecified:
        return f"may not be unspecified ({ip})"
    if ip.is_link_local:
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


def _slice_ports(errors: list[FieldError], ports: list[Obj]) -> None:
    checks.no_duplicates(errors, ((f"ports[{i}].name", port.get("name") or "") for i, port in enumerate(ports)))
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            checks.add_invalid(errors, f"ports[{index}].name", name, names.dns1123_label(name))
        checks.one_of(errors, f"ports[{index}].protocol", port.get("protocol"), PROTOCOLS)
        if port.get("port") is not None:
            checks.port_number(errors, f"ports[{index}].port", port["port"])


def update_slice(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.unchanged(errors, "addressType", obj.get("addressType"), old.get("addressType"))
    return errors


def _slice_generation(obj: Obj) -> Any:
    """Return everything but metadata, and labels."""
    outside = {key: value for key, value in obj.items() if key != "metadata"}
    return outside, obj["metadata"].get("labels") or None


ENDPOINTS = Strategy(
    default=default_endpoints,
    validate=validate_endpoints,
    create_on_update=True,
)
ENDPOINT_SLICE = Strategy(
    default=default_slice,
    validate=validate_slice,
    validate_update=update_slice,
    generation=_slice_generation,
)
