"""Services: defaults, rules, and what a PUT that leaves out allocated values keeps.

Addresses and node ports are allocated by kube/server/addresses; here is what a Service must satisfy before and after.
A type that changes drops the fields that only the old type had, unless the user sets them anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.kinds import checks
from karmada.kube.kinds.address_warnings import cidr_warnings, ip_warnings
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from karmada.kube.objects.types import Obj

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
NONE = "None"
SET_ONCE = "may not change once set"
_POLICIES = ("Cluster", "Local")
_LOAD_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FAMILIES = ("IPv4", "IPv6")
_MAX_AFFINITY = 86400


def needs_cluster_ip(spec: Obj) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_ports(spec: Obj) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def needs_health_port(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def is_headless(spec: Obj) -> bool:
    return spec.get("clusterIP") == NONE or spec.get("clusterIPs") == [NONE]


def cluster_ips(spec: Obj) -> list[str]:
    """Return the addresses a Service has or requests."""
    found = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [ip for ip in found if ip and ip != NONE]


def default(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_text(spec, type="ClusterIP", sessionAffinity="None")
    kind = spec["type"]
    if spec["sessionAffinity"] == "ClientIP":
        fill(part(part(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=10800)
    elif spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        fill_text(port, protocol="TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port")
    if kind in ("NodePort", "LoadBalancer"):
        fill_text(spec, externalTrafficPolicy="Cluster")
    if kind != "ExternalName":
        fill_text(spec, internalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
        for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if ingress.get("ip"):
                fill(ingress, ipMode="VIP")


def prepare_create(obj: Obj) -> None:
    obj["status"] = {"loadBalancer": {}}
    _normalize_ips(obj["spec"])


def _normalize_ips(spec: Obj) -> None:
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec.get("clusterIPs") and not spec.get("clusterIP"):
        spec["clusterIP"] = spec["clusterIPs"][0]


def prepare_update(obj: Obj, old: Obj) -> None:
    new, was = part(obj, "spec"), old.get("spec") or {}
    _keep_allocated(new, was)
    _drop_foreign(new, was)
    _normalize_update(new, was)


def _keep_allocated(new: Obj, was: Obj) -> None:
    if needs_cluster_ip(was) and needs_cluster_ip(new):
        if not new.get("clusterIP"):
            _copy(new, was, "clusterIP")
        if not new.get("clusterIPs") and new.get("clusterIP") == was.get("clusterIP"):
            _copy(new, was, "clusterIPs")
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if not new.get(key):
                _copy(new, was, key)
    if needs_node_ports(was) and needs_node_ports(new):
        _keep_node_ports(new, was)
    if needs_health_port(was) and needs_health_port(new) and not new.get("healthCheckNodePort"):
        _copy(new, was, "healthCheckNodePort")


def _copy(new: Obj, was: Obj, key: str) -> None:
    value = was.get(key)
    if value:
        new[key] = list(value) if isinstance(value, list) else value


def _keep_node_ports(new: Obj, was: Obj) -> None:
    """Ports are the same when they have the same name."""
    requested = {port.get("nodePort") for port in new.get("ports") or ()}
    known = {port.get("name") or "": port.get("nodePort") for port in was.get("ports") or ()}
    for port in new.get("ports") or ():
        kept = known.get(port.get("name") or "")
        if kept and not port.get("nodePort") and kept not in requested:
            port["nodePort"] = kept


def _drop_foreign(new: Obj, was: Obj) -> None:
    if needs_cluster_ip(was) and not needs_cluster_ip(new):
        if new.get("clusterIP") == was.get("clusterIP"):
            new.pop("clusterIP", None)
            new.pop("clusterIPs", None)
        for key in ("ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            _drop_same(new, was, key)
    if needs_node_ports(was) and new.get("type") in ("ClusterIP", "ExternalName"):
        before = {port.get("nodePort") for port in was.get("ports") or ()}
        for port in new.get("ports") or ():
            if port.get("nodePort") in before:
                port.pop("nodePort", None)
    if needs_health_port(was) and not needs_health_port(new):
        _drop_same(new, was, "healthCheckNodePort")
    if was.get("type") == "LoadBalancer" and new.get("type") != "LoadBalancer":
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            _drop_same(new, was, key)
    if new.get("type") not in ("NodePort", "LoadBalancer") and not new.get("externalIPs"):
        _drop_same(new, was, "externalTrafficPolicy")


def _drop_same(new: Obj, was: Obj, key: str) -> None:
    if key in new and new[key] == was.get(key):
        del new[key]


def _normalize_update(new: Obj, was: Obj) -> None:
    """Make clusterIP the first of clusterIPs, whichever of the two the user changed."""
    single, many = new.get("clusterIP"), new.get("clusterIPs")
    if not single and many and was.get("clusterIP") and many == was.get("clusterIPs"):
        new.pop("clusterIPs")
    elif single and many and single != many[0] and many == was.get("clusterIPs"):
        new["clusterIPs"] = [single]
    elif single and many and single != many[0] and single == was.get("clusterIP"):
        new["clusterIP"] = many[0]
    else:
        _normalize_ips(new)


# --- rules


def validate(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    kind = spec.get("type")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    _type_rules(errors, spec, kind)
    _ports(errors, spec, kind)
    _affinity(errors, spec)
    checks.labels(errors, "spec.selector", spec.get("selector"))
    checks.one_of(errors, "spec.type", kind, TYPES)
    _addresses(errors, spec)
    _traffic(errors, spec, kind)
    if kind != "LoadBalancer":
        foreign = [key for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass") if spec.get(key) is not None]
        errors.extend(forbidden_field(f"spec.{key}", _LOAD_BALANCER_ONLY) for key in foreign)
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        checks.cidr(errors, f"spec.loadBalancerSourceRanges[{index}]", text)
    return errors


def _type_rules(errors: list[FieldError], spec: Obj, kind: str | None) -> None:
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", NONE, detail))
    if kind == "LoadBalancer":
        for index, port in enumerate(spec.get("ports") or ()):
            if port.get("port") == 10250:
                detail = "may not expose port 10250 externally since it is used by kubelet"
                errors.append(invalid(f"spec.ports[{index}]", 10250, detail))
    if kind == "ExternalName":
        if spec.get("clusterIP") or spec.get("clusterIPs"):
            errors.append(forbidden_field("spec.clusterIPs", "may not be set for ExternalName services"))
        name = (spec.get("externalName") or "").removesuffix(".")
        checks.named(errors, "spec.externalName", name, names.dns1123_subdomain)


def _ports(errors: list[FieldError], spec: Obj, kind: str | None) -> None:
    ports = spec.get("ports") or ()
    seen_names: set[str] = set()
    seen: set[tuple[str | None, int | None]] = set()
    node_ports: set[tuple[str | None, int]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name, number, protocol, node_port = (port.get(key) for key in ("name", "port", "protocol", "nodePort"))
        if not name:
            if len(ports) > 1:
                errors.append(required(f"{path}.name"))
        else:
            checks.add_invalid(errors, f"{path}.name", name, names.dns1123_label(name))
            if name in seen_names:
                errors.append(duplicate(f"{path}.name", name))
            seen_names.add(name)
        checks.port_number(errors, f"{path}.port", number)
        checks.one_of(errors, f"{path}.protocol", protocol, PROTOCOLS)
        if port.get("targetPort") is not None:
            checks.port_or_name(errors, f"{path}.targetPort", port["targetPort"])
        if (protocol, number) in seen:
            errors.append(duplicate(path, {"protocol": protocol, "port": number}))
        seen.add((protocol, number))
        if node_port:
            if kind == "ClusterIP":
                errors.append(forbidden_field(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
            if (protocol, node_port) in node_ports:
                errors.append(duplicate(f"{path}.nodePort", node_port))
            node_ports.add((protocol, node_port))


def _affinity(errors: list[FieldError], spec: Obj) -> None:
    affinity = spec.get("sessionAffinity")
    checks.one_of(errors, "spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP":
        seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        if seconds is None:
            errors.append(required(path, "should not be nil when session affinity is ClientIP"))
        elif not 0 < seconds <= _MAX_AFFINITY:
            errors.append(invalid(path, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY}"))


def address_errors(obj: Obj) -> list[FieldError]:
    """Return the errors of the addresses that a Service requests; checked before any are allocated."""
    spec: Obj = obj.get("spec") or {}
    many = spec.get("clusterIPs") or []
    if len(many) > 2:  # one look is enough: this is done on the event loop
        return [_too_many_addresses(many)]
    errors = FieldErrors()
    _addresses(errors, {**spec, "externalIPs": None})
    return errors


def _too_many_addresses(addresses: list[str]) -> FieldError:
    return invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")


def _addresses(errors: list[FieldError], spec: Obj) -> None:
    single, many = spec.get("clusterIP"), spec.get("clusterIPs") or []
    if single and many and single != many[0]:
        errors.append(invalid("spec.clusterIPs", many, "first value must match `clusterIP`"))
    if len(many) > 2:
        errors.append(_too_many_addresses(many))
    if NONE in many and len(many) > 1:
        errors.append(invalid("spec.clusterIPs", many, "'None' must be the first and only value"))
    for index, ip in enumerate(many):
        if ip != NONE:
            checks.ip_address(errors, f"spec.clusterIPs[{index}]", ip)
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        checks.ip_address(errors, f"spec.externalIPs[{index}]", ip)
    policy = spec.get("ipFamilyPolicy")
    if policy and policy not in _FAMILY_POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
    if spec.get("type") == "ExternalName":
        foreign = [key for key in ("ipFamilies", "ipFamilyPolicy") if spec.get(key)]
        errors.extend(forbidden_field(f"spec.{key}", "may not be set for ExternalName services") for key in foreign)


def _traffic(errors: list[FieldError], spec: Obj, kind: str | None) -> None:
    external = spec.get("externalTrafficPolicy")
    if external:
        if external not in _POLICIES:
            errors.append(not_supported("spec.externalTrafficPolicy", external, _POLICIES))
        if kind not in ("NodePort", "LoadBalancer") and not spec.get("externalIPs"):
            detail = "may only be set for externally-accessible services"
            errors.append(invalid("spec.externalTrafficPolicy", external, detail))
    internal = spec.get("internalTrafficPolicy")
    if internal and internal not in _POLICIES:
        errors.append(not_supported("spec.internalTrafficPolicy", internal, _POLICIES))
    health = spec.get("healthCheckNodePort") or 0
    if health < 0:
        errors.append(invalid("spec.healthCheckNodePort", health, checks.NON_NEGATIVE))
    if health and not needs_health_port(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", health, detail))


def validate_update(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    if new.get("type") == "LoadBalancer" and was.get("type") == "LoadBalancer":
        before = was.get("loadBalancerClass")
        if new.get("loadBalancerClass") != before:
            errors.append(invalid("spec.loadBalancerClass", new.get("loadBalancerClass"), SET_ONCE))
    if needs_health_port(new) and needs_health_port(was):
        before = was.get("healthCheckNodePort")
        if before and new.get("healthCheckNodePort") != before:
            errors.append(forbidden_field("spec.healthCheckNodePort", checks.IMMUTABLE))
    if "ExternalName" in (new.get("type"), was.get("type")):
        return errors
    for key in ("clusterIPs", "ipFamilies"):
        now, had = new.get(key) or [], was.get(key) or []
        if had and (not now or now[0] != had[0]):
            errors.append(invalid(f"spec.{key}[0]", now, SET_ONCE))
    return errors


def validate_status(obj: Obj, _old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    found = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if found and (obj.get("spec") or {}).get("type") != "LoadBalancer":
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        errors.append(forbidden_field("status.loadBalancer.ingress", detail))
    load_balancer_ingress(errors, found)
    return errors


def load_balancer_ingress(errors: list[FieldError], found: list[Obj]) -> None:
    for index, ingress in enumerate(found):
        path = f"status.loadBalancer.ingress[{index}]"
        if ingress.get("ip"):
            checks.ip_address(errors, f"{path}.ip", ingress["ip"])
        hostname = ingress.get("hostname")
        if hostname:
            checks.add_invalid(errors, f"{path}.hostname", hostname, names.dns1123_subdomain(hostname))
            if checks.is_ip(hostname):
                errors.append(invalid(f"{path}.hostname", hostname, "must be a DNS name, not an IP address"))


_HINTS, _TOPOLOGY = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def service_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    return list(_warnings(obj["metadata"].get("annotations") or {}, obj.get("spec") or {}))


def _warnings(annotations: Obj, spec: Obj) -> Iterator[str]:
    if _HINTS in annotations:
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY} instead"
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if headless:
        yield from _ignored_when_headless(spec)
    else:
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            yield from ip_warnings(f"spec.clusterIPs[{index}]", address)
    for index, address in enumerate(external):
        yield from ip_warnings(f"spec.externalIPs[{index}]", address)
    if external and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("loadBalancerIP"):
        yield from ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", cidr)
    if kind == "ExternalName" and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _ignored_when_headless(spec: Obj) -> Iterator[str]:
    given = [key for key in ("loadBalancerIP", "externalIPs") if spec.get(key)]
    if spec.get("sessionAffinity") not in (None, "None"):
        given.append("SessionAffinity")
    return (f"spec.{key} is ignored for headless services" for key in given)


SERVICE = Strategy(
    warnings=service_warnings,
    default=default,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    name_errors=names.dns1123_label,
    create_on_update=True,
    returns_deleted=True,
    fields={
        "spec.clusterIP": lambda obj: (obj.get("spec") or {}).get("clusterIP") or "",
        "spec.type": lambda obj: (obj.get("spec") or {}).get("type") or "",
    },
)
