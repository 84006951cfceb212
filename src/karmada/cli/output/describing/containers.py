"""Containers: image, state, resources, probes, environment and mounts.

They are described in pods, where they have a state, and in templates, where they have none and their names stand one
column further to the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from karmada.cli.output.describing.sheet import NONE, Sheet, shown
from karmada.cli.output.describing.words import amounts, at, joined, moment_or_zero, title_case

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_PROBES = {"Liveness": "livenessProbe", "Readiness": "readinessProbe", "Startup": "startupProbe"}
_KNOWN_OF_POD = ("metadata.name", "metadata.namespace")
"""The fields of a pod whose values are shown when a variable refers to them."""


def containers(
    sheet: Sheet,
    title: str,
    listed: Iterable[Obj],
    *,
    statuses: Iterable[Obj] = (),
    pod: Obj | None = None,
    template: bool = False,
) -> None:
    """`pod` is whose they are, unless they are of a template."""
    by_name = {status["name"]: status for status in statuses}
    sheet.row(int(template), f"{title}:")
    for container in listed:
        sheet.row(1, f"{' ' if template else ''}{container['name']}:")
        _container(sheet, container, by_name.get(container["name"]), pod)


def _container(sheet: Sheet, container: Obj, status: Obj | None, pod: Obj | None) -> None:
    _basics(sheet, container, status)
    for title, key in (("Command", "command"), ("Args", "args")):
        _lines(sheet, title, container.get(key))
    if status is not None:
        _state(sheet, "State", status.get("state") or {})
        if at(status, "lastState.terminated"):
            _state(sheet, "Last State", status["lastState"])
        sheet.field("Ready", title_case(bool(status.get("ready"))), 2)
        sheet.field("Restart Count", status.get("restartCount") or 0, 2)
    resources(sheet, container.get("resources"), 2)
    for title, key in _PROBES.items():
        if container.get(key):
            sheet.field(title, probe_text(container[key]), 2)
    _environment(sheet, container, pod)
    _mounts(sheet, container)


def _basics(sheet: Sheet, container: Obj, status: Obj | None) -> None:
    if status is not None:
        sheet.field("Container ID", status.get("containerID") or "", 2)
    sheet.field("Image", container.get("image") or "", 2)
    if status is not None:
        sheet.field("Image ID", status.get("imageID") or "", 2)
    ports = container.get("ports") or []
    plural = "s" if len(ports) > 1 else ""
    for title, key in (("Port", "containerPort"), ("Host Port", "hostPort")):
        listed = [f"{port.get(key) or 0}/{port.get('protocol', 'TCP')}" for port in ports]
        sheet.field(f"{title}{plural}", joined(listed), 2)
    seccomp(sheet, container.get("securityContext"), 2)


def seccomp(sheet: Sheet, context: Obj | None, level: int) -> None:
    profile = at(context, "seccompProfile", {})
    if profile:
        sheet.field("SeccompProfile", profile.get("type") or "", level)
        if profile.get("type") == "Localhost":
            sheet.field("LocalhostProfile", profile.get("localhostProfile") or "", level)


def resources(sheet: Sheet, found: Obj | None, level: int) -> None:
    for title, key in (("Limits", "limits"), ("Requests", "requests")):
        amounts(sheet, title, at(found, key, {}), level)


def _lines(sheet: Sheet, title: str, words: list[str] | None) -> None:
    if not words:
        return
    sheet.row(2, f"{title}:")
    for word in words:
        for line in word.split("\n"):
            sheet.row(3, line)


# state


def _state(sheet: Sheet, title: str, state: Mapping[str, Any]) -> None:
    if state.get("running") is not None:
        sheet.field(title, "Running", 2)
        sheet.field("Started", moment_or_zero(state["running"].get("startedAt")), 3)
    elif state.get("terminated") is not None:
        sheet.field(title, "Terminated", 2)
        _terminated(sheet, state["terminated"])
    else:
        sheet.field(title, "Waiting", 2)
        sheet.optional("Reason", at(state, "waiting.reason"), 3)


def _terminated(sheet: Sheet, ended: Obj) -> None:
    sheet.optional("Reason", ended.get("reason"), 3)
    sheet.optional("Message", ended.get("message"), 3)
    sheet.field("Exit Code", ended.get("exitCode") or 0, 3)
    if ended.get("signal"):
        sheet.field("Signal", ended["signal"], 3)
    sheet.field("Started", moment_or_zero(ended.get("startedAt")), 3)
    sheet.field("Finished", moment_or_zero(ended.get("finishedAt")), 3)


# probes


def probe_text(probe: Obj) -> str:
    numbers = (
        f"delay={probe.get('initialDelaySeconds') or 0}s timeout={probe.get('timeoutSeconds') or 0}s "
        f"period={probe.get('periodSeconds') or 0}s #success={probe.get('successThreshold') or 0} "
        f"#failure={probe.get('failureThreshold') or 0}"
    )
    return f"{_probe_action(probe)} {numbers}"


def _probe_action(probe: Obj) -> str:
    if probe.get("exec"):
        return f"exec {shown(probe['exec'].get('command') or [])}"
    if probe.get("httpGet"):
        return f"http-get {_url(probe['httpGet'])}"
    if probe.get("tcpSocket"):
        return f"tcp-socket {at(probe, 'tcpSocket.host')}:{probe['tcpSocket']['port']}"
    if probe.get("grpc"):
        return f"grpc <pod>:{probe['grpc']['port']} {at(probe, 'grpc.service')}"
    return "unknown"


def _url(http: Obj) -> str:
    from urllib.parse import quote

    port = http.get("port")
    place = f"{http.get('host') or ''}:{port}" if port not in (None, "", 0) else http.get("host") or ""
    path = quote(http.get("path") or "", safe="/$&+,:;=@~")
    if path and not path.startswith("/"):
        path = f"/{path}"
    return f"{(http.get('scheme') or '').lower()}://{place}{path}"


# environment


def _environment(sheet: Sheet, container: Obj, pod: Obj | None) -> None:
    sources = container.get("envFrom") or []
    if sources:
        sheet.row(2, "Environment Variables from:")
        for source in sources:
            _source(sheet, source)
    variables = container.get("env") or []
    if not variables:
        sheet.field("Environment", NONE, 2)
        return
    sheet.row(2, "Environment:")
    for variable in variables:
        _variable(sheet, variable, container, pod)


def _source(sheet: Sheet, source: Obj) -> None:
    kind, reference = ("ConfigMap", source.get("configMapRef")) if source.get("configMapRef") else ("Secret", None)
    reference = reference or source.get("secretRef") or {}
    prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
    sheet.row(3, reference.get("name") or "", f"{kind}{prefix}", _optional(reference))


def _optional(reference: Obj) -> str:
    return f"Optional: {shown(bool(reference.get('optional')))}"


def _variable(sheet: Sheet, variable: Obj, container: Obj, pod: Obj | None) -> None:
    name, source = f"{variable['name']}:", variable.get("valueFrom")
    if not source:
        first, *rest = (variable.get("value") or "").split("\n")
        sheet.row(3, name, first)
        for line in rest:
            sheet.row(3, "", line)
    elif source.get("fieldRef"):
        path = source["fieldRef"]["fieldPath"]
        value = at(pod, path) if path in _KNOWN_OF_POD else ""
        sheet.row(3, name, f"{value} ({source['fieldRef'].get('apiVersion', 'v1')}:{path})")
    elif source.get("resourceFieldRef"):
        reference = source["resourceFieldRef"]
        sheet.row(3, name, f"{_resource_value(reference, container)} ({reference['resource']})")
    elif source.get("secretKeyRef"):
        reference = source["secretKeyRef"]
        text = f"<set to the key '{reference['key']}' in secret '{reference.get('name', '')}'>"
        sheet.row(3, name, text, _optional(reference))
    elif source.get("configMapKeyRef"):
        reference = source["configMapKeyRef"]
        text = f"<set to the key '{reference['key']}' of config map '{reference.get('name', '')}'>"
        sheet.row(3, name, text, _optional(reference))


def _resource_value(reference: Obj, container: Obj) -> str:
    """In whole units of the divisor, rounded up; without a limit it is what the node has."""
    from karmada.kube.objects.quantity import Quantity

    name = reference["resource"]
    kind, _, resource = name.partition(".")
    amount = Quantity.parse(at(container, "resources", {}).get(kind, {}).get(resource) or "0")
    divisor = Quantity.parse(reference.get("divisor") or "1")
    if divisor.is_zero():
        divisor = Quantity.parse("1")
    if amount.is_zero() and name in ("limits.cpu", "limits.memory"):
        return "node allocatable"
    return str(-(-amount.nano // divisor.nano))


# mounts


def _mounts(sheet: Sheet, container: Obj) -> None:
    mounts = sorted(container.get("volumeMounts") or (), key=lambda mount: mount["mountPath"])
    if mounts:
        sheet.row(2, "Mounts:")
    else:
        sheet.field("Mounts", NONE, 2)
    for mount in mounts:
        flags = "ro" if mount.get("readOnly") else "rw"
        path = f',path="{mount["subPath"]}"' if mount.get("subPath") else ""
        sheet.row(3, f"{mount['mountPath']} from {mount['name']} ({flags}{path})")
    devices = sorted(container.get("volumeDevices") or (), key=lambda device: device["devicePath"])
    if devices:
        sheet.row(2, "Devices:")
    for device in devices:
        sheet.row(3, f"{device['devicePath']} from {device['name']}")
