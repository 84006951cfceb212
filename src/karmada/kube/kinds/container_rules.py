"""Validation of a container: names, image, ports, environment, mounts, resources, probes.

The same rules serve init, main and ephemeral containers of Pods and of every pod template. `volumes` maps the names of
the pod's volumes to whether they are claims, the only ones that may be mapped as devices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.security_rules import container_context
from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    not_supported,
    required,
)
from karmada.kube.objects.types import Obj

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_TYPES = _STANDARD_RESOURCES | {
    "storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_ENV_NAME = re.compile(r"[ -<>-~]+")
_ENV_NAME_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_CONTAINER_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_SUBSCRIPT = re.compile(r"metadata\.(annotations|labels)\['(.+)'\]")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")

Volumes = Mapping[str, bool]


def containers(
    errors: list[FieldError], path: str, found: Sequence[Obj], volumes: Volumes, taken: set[str], host_network: bool
) -> None:
    """Validate a list of containers; `taken` are the names used before it, and grows."""
    host_ports: set[tuple[str, int, str]] = set()
    for index, container in enumerate(found):
        place = f"{path}[{index}]"
        name = container.get("name")
        checks.named(errors, f"{place}.name", name, names.dns1123_label)
        if name in taken:
            errors.append(duplicate(f"{place}.name", name))
        elif name:
            taken.add(name)
        if not container.get("image"):
            errors.append(required(f"{place}.image"))
        checks.one_of(
            errors, f"{place}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES
        )
        if container.get("ports"):
            _ports(errors, f"{place}.ports", container["ports"], host_network, host_ports)
        if container.get("env"):
            _environment(errors, f"{place}.env", container["env"])
        if container.get("envFrom"):
            _environment_sources(errors, f"{place}.envFrom", container["envFrom"])
        if container.get("volumeMounts"):
            _mounts(errors, f"{place}.volumeMounts", container["volumeMounts"], volumes)
        if container.get("volumeDevices"):
            _devices(errors, f"{place}.volumeDevices", container["volumeDevices"], volumes)
        checks.one_of(errors, f"{place}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
        if container.get("resources"):
            resources(errors, f"{place}.resources", container["resources"])
        _while_running(errors, place, container)


def _while_running(errors: list[FieldError], path: str, container: Obj) -> None:
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(key):
            _probe(errors, f"{path}.{key}", container[key], key)
    if container.get("lifecycle"):
        _lifecycle(errors, f"{path}.lifecycle", container["lifecycle"])
    if container.get("securityContext"):
        container_context(errors, f"{path}.securityContext", container["securityContext"])


def _ports(
    errors: list[FieldError], path: str, ports: Sequence[Obj], host_network: bool, host_ports: set[tuple[str, int, str]]
) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        name, number, host = port.get("name"), port.get("containerPort"), port.get("hostPort")
        if name:
            messages = names.port_name(name)
            checks.add_invalid(errors, f"{place}.name", name, messages)
            if name in seen:
                errors.append(duplicate(f"{place}.name", name))
            seen.add(name)
        if not number:
            errors.append(required(f"{place}.containerPort"))
        else:
            checks.port_number(errors, f"{place}.containerPort", number)
        checks.one_of(errors, f"{place}.protocol", port.get("protocol"), PROTOCOLS)
        if host:
            checks.port_number(errors, f"{place}.hostPort", host)
            if host_network and host != number:
                errors.append(
                    invalid(f"{place}.containerPort", number, "must match `hostPort` when `hostNetwork` is true")
                )
            key = (port.get("protocol") or "", host, port.get("hostIP") or "")
            if key in host_ports:
                errors.append(duplicate(f"{place}.hostPort", f"{key[0]}/{key[2]}/{key[1]}"))
            host_ports.add(key)


# --- environment


def _environment(errors: list[FieldError], path: str, variables: Sequence[Obj]) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif not _ENV_NAME.fullmatch(name):
            errors.append(invalid(f"{path}[{index}].name", name, _ENV_NAME_TEXT))
        source = variable.get("valueFrom")
        if source is not None:
            _environment_value(errors, f"{path}[{index}].valueFrom", source, bool(variable.get("value")))


def _environment_value(errors: list[FieldError], path: str, source: Obj, has_value: bool) -> None:
    given = [key for key in _ENV_SOURCES if source.get(key) is not None]
    if not given:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid(path, "", detail))
    elif has_value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    for key in given:
        if key == "fieldRef":
            field_reference(errors, f"{path}.fieldRef", source[key], _ENV_FIELDS)
        elif key == "resourceFieldRef":
            resource_reference(errors, f"{path}.resourceFieldRef", source[key], in_volume=False)
        elif key != "fileKeyRef":
            checks.needed(errors, f"{path}.{key}.name", source[key].get("name"))
            checks.named(errors, f"{path}.{key}.key", source[key].get("key"), names.config_key)


def field_reference(errors: list[FieldError], path: str, reference: Obj, allowed: Sequence[str]) -> None:
    checks.needed(errors, f"{path}.apiVersion", reference.get("apiVersion"))
    field = reference.get("fieldPath")
    if not field:
        errors.append(required(f"{path}.fieldPath"))
        return
    subscript = _SUBSCRIPT.fullmatch(field)
    if subscript:
        checks.add_invalid(errors, path, subscript[2], names.qualified_name(subscript[2].lower()))
    elif field not in allowed:
        known = field in ("metadata.annotations", "metadata.labels") or field in _ENV_FIELDS
        if known:
            errors.append(not_supported(f"{path}.fieldPath", field, allowed))
        else:
            detail = f"error converting fieldPath: field label not supported: {field}"
            errors.append(invalid(f"{path}.fieldPath", field, detail))


def resource_reference(errors: list[FieldError], path: str, reference: Obj, *, in_volume: bool) -> None:
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    resource = reference.get("resource")
    if not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _CONTAINER_RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        errors.append(not_supported(f"{path}.resource", resource, _CONTAINER_RESOURCES))


def _environment_sources(errors: list[FieldError], path: str, sources: Sequence[Obj]) -> None:
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        prefix = source.get("prefix")
        if prefix and not _ENV_NAME.fullmatch(prefix):
            errors.append(invalid(f"{place}.prefix", prefix, _ENV_NAME_TEXT))
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        if not given:
            errors.append(invalid(place, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(place, "", "may not have more than one field specified at a time"))
        for key in given:
            checks.needed(errors, f"{place}.{key}.name", source[key].get("name"))


# --- mounts


def _mounts(errors: list[FieldError], path: str, mounts: Sequence[Obj], volumes: Volumes) -> None:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        place = f"{path}[{index}]"
        name, mount_path = mount.get("name"), mount.get("mountPath")
        if not name:
            errors.append(required(f"{place}.name"))
        elif name not in volumes:
            errors.append(not_found_field(f"{place}.name", name))
        if not mount_path:
            errors.append(required(f"{place}.mountPath"))
        elif mount_path in places:
            errors.append(invalid(f"{place}.mountPath", mount_path, "must be unique"))
        places.add(mount_path or "")
        if mount.get("subPath"):
            checks.relative_path(errors, f"{place}.subPath", mount["subPath"])
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                detail = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{place}.subPathExpr", mount["subPathExpr"], detail))
            checks.relative_path(errors, f"{place}.subPathExpr", mount["subPathExpr"])
        propagation = mount.get("mountPropagation")
        if propagation is not None:
            allowed = ("Bidirectional", "HostToContainer", "None")
            checks.one_of(errors, f"{place}.mountPropagation", propagation, allowed)


def _devices(errors: list[FieldError], path: str, devices: Sequence[Obj], volumes: Volumes) -> None:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        place = f"{path}[{index}]"
        name, device_path = device.get("name"), device.get("devicePath")
        if not name:
            errors.append(required(f"{place}.name"))
        elif name not in volumes:
            errors.append(not_found_field(f"{place}.name", name))
        elif not volumes[name]:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{place}.name", name, detail))
        if not device_path:
            errors.append(required(f"{place}.devicePath"))
        elif device_path in seen:
            errors.append(invalid(f"{place}.devicePath", device_path, "must be unique"))
        seen.add(device_path or "")


# --- resources


def resources(errors: list[FieldError], path: str, found: Obj) -> None:
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, amount in limits.items():
        resource_name_errors(errors, f"{path}.limits", name)
        _resource_amount(errors, f"{path}.limits[{name}]", name, amount)
    for name, amount in requests.items():
        resource_name_errors(errors, f"{path}.requests", name)
        _resource_amount(errors, f"{path}.requests[{name}]", name, amount)
        _request_against_limit(errors, path, name, amount, limits.get(name))


def _request_against_limit(errors: list[FieldError], path: str, name: str, amount: Any, limit: Any) -> None:
    fixed = not is_overcommittable(name)
    if limit is None:
        if fixed:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        return
    requested, most = checks.quantity(amount), checks.quantity(limit)
    if requested is None or most is None:
        return
    if fixed and requested != most:
        errors.append(invalid(f"{path}.requests", str(requested), f"must be equal to {name} limit of {most}"))
    elif requested > most:
        detail = f"must be less than or equal to {name} limit of {most}"
        errors.append(invalid(f"{path}.requests", str(requested), detail))


def is_standard_resource(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-")


def is_extended_resource(name: str) -> bool:
    """Named with a domain that is not Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_overcommittable(name: str) -> bool:
    if name.startswith("hugepages-"):
        return False
    return "/" not in name or "kubernetes.io/" in name


def resource_name_errors(errors: list[FieldError], path: str, name: str) -> None:
    if is_standard_resource(name):
        return
    messages = names.qualified_name(name)
    if messages:
        checks.add_invalid(errors, path, name, messages)
    elif "/" not in name:
        if name not in _STANDARD_TYPES:
            errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
        errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif "kubernetes.io/" not in name and not is_extended_resource(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))


def _resource_amount(errors: list[FieldError], path: str, name: str, amount: Any) -> None:
    checks.resource_amount(errors, path, amount)
    parsed = checks.quantity(amount)
    if parsed is not None and is_extended_resource(name) and parsed.milli() % 1000:
        errors.append(invalid(path, str(parsed), "must be an integer"))


# --- probes and hooks


def _probe(errors: list[FieldError], path: str, probe: Obj, kind: str) -> None:
    _handler(errors, path, probe)
    checks.non_negative(errors, path, probe, *_PROBE_NUMBERS)
    grace = probe.get("terminationGracePeriodSeconds")
    if kind == "readinessProbe":
        if grace is not None:
            errors.append(
                invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
            )
        return
    checks.positive(errors, path, probe, "terminationGracePeriodSeconds")
    if probe.get("successThreshold", 1) != 1:
        errors.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))


def _handler(errors: list[FieldError], path: str, holder: Obj) -> None:
    given = [key for key in _HANDLERS if holder.get(key) is not None]
    if not given:
        errors.append(required(path, "must specify a handler type"))
    errors.extend(forbidden_field(f"{path}.{key}", "may not specify more than 1 handler type") for key in given[1:])
    for key in given[:1]:
        _action(errors, f"{path}.{key}", key, holder[key])


def _action(errors: list[FieldError], path: str, kind: str, action: Obj) -> None:
    if kind == "exec":
        checks.needed(errors, f"{path}.command", action.get("command"))
        return
    if kind == "grpc":
        checks.port_number(errors, f"{path}.port", action.get("port") or 0)
        return
    checks.port_or_name(errors, f"{path}.port", action.get("port"))
    if kind == "httpGet":
        checks.needed(errors, f"{path}.path", action.get("path"))
        checks.one_of(errors, f"{path}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
        for index, header in enumerate(action.get("httpHeaders") or ()):
            if not _HEADER.fullmatch(header.get("name") or ""):
                errors.append(invalid(f"{path}.httpHeaders[{index}]", header.get("name") or "", _HEADER_TEXT))


_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)


def _lifecycle(errors: list[FieldError], path: str, lifecycle: Obj) -> None:
    for key in ("postStart", "preStop"):
        hook = lifecycle.get(key)
        if hook is None:
            continue
        if hook.get("sleep") is not None:
            if hook["sleep"].get("seconds", 0) < 0:
                detail = "must be greater than or equal to 0 and less than or equal to terminationGracePeriodSeconds"
                errors.append(invalid(f"{path}.{key}.sleep.seconds", hook["sleep"]["seconds"], detail))
        else:
            _handler(errors, f"{path}.{key}", hook)
