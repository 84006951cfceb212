"""The kinds of networking.k8s.io: Ingress, IngressClass, NetworkPolicy, IPAddress, ServiceCIDR."""

from __future__ import annotations

import ipaddress
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.address_warnings import cidr_warnings
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.kinds.services import load_balancer_ingress
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_NOT_AN_IP = "must be a DNS name, not an IP address"


def _spec(obj: Obj) -> Any:
    return obj.get("spec")


# --- ingresses


def prepare_ingress(obj: Obj) -> None:
    obj["status"] = {"loadBalancer": {}}


def validate_ingress(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        _backend(errors, "spec.defaultBackend", backend)
    for index, rule in enumerate(rules):
        _rule(errors, f"spec.rules[{index}]", rule)
    for index, tls in enumerate(spec.get("tls") or ()):
        for place, host in enumerate(tls.get("hosts") or ()):
            _host_name(errors, f"spec.tls[{index}].hosts[{place}]", host)
        secret = tls.get("secretName")
        if secret:
            checks.add_invalid(errors, f"spec.tls[{index}].secretName", secret, names.dns1123_subdomain(secret))
    name = spec.get("ingressClassName")
    if name is not None:
        checks.add_invalid(errors, "spec.ingressClassName", name, names.dns1123_subdomain(name))
    return errors


def _host(errors: list[FieldError], path: str, host: str) -> None:
    if checks.is_ip(host):
        errors.append(invalid(path, host, _NOT_AN_IP))
    else:
        _host_name(errors, path, host)


def _host_name(errors: list[FieldError], path: str, host: str) -> None:
    if "*" in host:
        checks.add_invalid(errors, path, host, names.wildcard_dns1123_subdomain(host))
    else:
        checks.add_invalid(errors, path, host, names.dns1123_subdomain(host))


def _rule(errors: list[FieldError], path: str, rule: Obj) -> None:
    if rule.get("host"):
        _host(errors, f"{path}.host", rule["host"])
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or ()
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for index, entry in enumerate(paths):
        _path(errors, f"{path}.http.paths[{index}]", entry)


def _path(errors: list[FieldError], path: str, entry: Obj) -> None:
    kind, where = entry.get("pathType"), entry.get("path") or ""
    if not kind:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
    elif kind not in PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, PATH_TYPES))
    elif kind == "ImplementationSpecific":
        if where and not where.startswith("/"):
            errors.append(invalid(f"{path}.path", where, "must be an absolute path"))
    elif not where.startswith("/"):
        errors.append(invalid(f"{path}.path", where, "must be an absolute path"))
    else:
        details = [f"must not contain '{bad}'" for bad in ("//", "/./", "/../", "%2f", "%2F") if bad in where]
        details += [f"cannot end with '{bad}'" for bad in ("/..", "/.") if where.endswith(bad)]
        checks.add_invalid(errors, f"{path}.path", where, details)
    _backend(errors, f"{path}.backend", entry.get("backend") or {})


def _backend(errors: list[FieldError], path: str, backend: Obj) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        errors.append(invalid(path, "", "cannot set both resource and service backends"))
        return
    if resource is not None:
        group = resource.get("apiGroup")
        if group is not None:
            checks.add_invalid(errors, f"{path}.resource.apiGroup", group, names.dns1123_subdomain(group))
        for key in ("kind", "name"):
            checks.named(errors, f"{path}.resource.{key}", resource.get(key), names.path_segment, f"{key} is required")
        return
    if service is None:
        errors.append(required(path, "resource or service backend is required"))
        return
    checks.named(errors, f"{path}.service.name", service.get("name"), names.dns1035_label)
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        checks.add_invalid(errors, f"{path}.service.port.name", port["name"], names.port_name(port["name"]))
    elif port.get("number"):
        checks.port_number(errors, f"{path}.service.port.number", port["number"])
    else:
        errors.append(required(path, "port name or number is required"))


def validate_ingress_status(obj: Obj, _old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    load_balancer_ingress(errors, ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [])
    return errors


# --- ingress classes


def default_ingress_class(obj: Obj) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill_text(parameters, scope="Cluster")


def validate_ingress_class(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    controller, path = spec.get("controller") or "", "spec.controller"
    if not controller:
        errors.append(required(path))
    elif len(controller) > 250:
        errors.append(FieldError(path, "FieldValueTooLong", "Too long: may not be more than 250 bytes"))
    elif "/" not in controller:
        errors.append(invalid(path, controller, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    parameters = spec.get("parameters")
    if parameters is not None:
        for key in ("kind", "name"):
            checks.named(errors, f"spec.parameters.{key}", parameters.get(key), names.path_segment)
        scope = parameters.get("scope")
        checks.one_of(errors, "spec.parameters.scope", scope, ("Cluster", "Namespace"))
        if scope == "Namespace" and not parameters.get("namespace"):
            detail = "`parameters.scope` is set to 'Namespace'"
            errors.append(required("spec.parameters.namespace", detail))
        if scope == "Cluster" and parameters.get("namespace") is not None:
            detail = "`parameters.scope` is set to 'Cluster'"
            errors.append(forbidden_field("spec.parameters.namespace", detail))
    return errors


def update_ingress_class(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    checks.unchanged(errors, "spec.controller", new.get("controller"), was.get("controller"))
    return errors


# --- network policies


def default_network_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for kind in ("ingress", "egress"):
        for rule in spec.get(kind) or ():
            for port in rule.get("ports") or ():
                fill(port, protocol="TCP")


def validate_network_policy(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.label_selector(errors, "spec.podSelector", spec.get("podSelector"))
    for kind, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(kind) or ()):
            path = f"spec.{kind}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                _policy_port(errors, f"{path}.ports[{place}]", port)
            for place, peer in enumerate(rule.get(peers) or ()):
                _peer(errors, f"{path}.{peers}[{place}]", peer)
    kinds = spec.get("policyTypes") or ()
    if len(kinds) > 2:
        errors.append(invalid("spec.policyTypes", list(kinds), "may not specify more than two policyTypes"))
    else:
        for index, kind in enumerate(kinds):
            if kind not in ("Egress", "Ingress"):
                errors.append(not_supported(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress")))
    return errors


def _policy_port(errors: list[FieldError], path: str, port: Obj) -> None:
    checks.one_of(errors, f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            errors.append(required(f"{path}.port", "must be specified when `endPort` is set"))
        return
    checks.port_or_name(errors, f"{path}.port", number)
    if end is not None:
        if isinstance(number, str):
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        else:
            checks.port_number(errors, f"{path}.endPort", end)
            if end < number:
                errors.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))


def _peer(errors: list[FieldError], path: str, peer: Obj) -> None:
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        checks.label_selector(errors, f"{path}.{key}", peer[key])
    block = peer.get("ipBlock")
    if block is not None:
        _ip_block(errors, f"{path}.ipBlock", block)
        if selectors:
            errors.append(forbidden_field(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        errors.append(required(path, "must specify a peer"))


def _ip_block(errors: list[FieldError], path: str, block: Obj) -> None:
    whole = block.get("cidr")
    if not whole:
        errors.append(required(f"{path}.cidr"))
        return
    before = len(errors)
    checks.cidr(errors, f"{path}.cidr", whole)
    for index, text in enumerate(block.get("except") or ()):
        checks.cidr(errors, f"{path}.except[{index}]", text)
        if len(errors) == before and not _strictly_inside(text, whole):
            errors.append(invalid(f"{path}.except[{index}]", text, "must be a strict subset of `cidr`"))


def _strictly_inside(text: str, whole: str) -> bool:
    inner, outer = (ipaddress.ip_network(value, strict=False) for value in (text, whole))
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner != outer and inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner != outer and inner.subnet_of(outer)
    return False


# --- addresses


def _ip_name(name: str) -> list[str]:
    try:
        return [] if str(ipaddress.ip_address(name)) == name else ["must be in canonical form"]
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def validate_ip_address(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        return [required("spec.parentRef")]
    for key in ("resource", "name"):
        checks.needed(errors, f"spec.parentRef.{key}", parent.get(key))
    return errors


def update_ip_address(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    checks.unchanged(errors, "spec.parentRef", new.get("parentRef"), was.get("parentRef"))
    return errors


def validate_service_cidr(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    found = (obj.get("spec") or {}).get("cidrs") or []
    if not found:
        errors.append(required("spec.cidrs", "at least one CIDR required"))
    elif len(found) > 2:
        errors.append(invalid("spec", found, "may only hold up to 2 values"))
    for index, text in enumerate(found):
        checks.cidr(errors, f"spec.cidrs[{index}]", text)
    return errors


def update_service_cidr(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    checks.unchanged(errors, "spec.cidrs", new.get("cidrs"), was.get("cidrs"))
    return errors


_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def ingress_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    if _CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {}):
        return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
    return []


def network_policy_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    found: list[str] = []
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate((obj.get("spec") or {}).get(rules) or ()):
            for place, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{rules}[{index}].{peers}[{place}].ipBlock"
                found += cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
                for number, cidr in enumerate(block.get("except") or ()):
                    found += cidr_warnings(f"{path}.except[{number}]", cidr)
    return found


INGRESS = Strategy(
    warnings=ingress_warnings,
    prepare_create=prepare_ingress,
    validate=validate_ingress,
    validate_status=validate_ingress_status,
    generation=_spec,
)
INGRESS_CLASS = Strategy(
    default=default_ingress_class,
    validate=validate_ingress_class,
    validate_update=update_ingress_class,
    generation=_spec,
)
NETWORK_POLICY = Strategy(
    default=default_network_policy,
    validate=validate_network_policy,
    warnings=network_policy_warnings,
    generation=_spec,
)
IP_ADDRESS = Strategy(validate=validate_ip_address, validate_update=update_ip_address, name_errors=_ip_name)
SERVICE_CIDR = Strategy(validate=validate_service_cidr, validate_update=update_service_cidr)
