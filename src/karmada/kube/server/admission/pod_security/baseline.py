"""The checks of the level baseline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import quote
from karmada.kube.server.admission.pod_security.pod import (
    Pod,
    Violation,
    named,
    plural,
    quoted,
    security_context,
    setters,
    where,
)

_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


def apparmor(pod: Pod) -> Violation | None:
    bad_pod, containers = _bad_profile("appArmorProfile", pod.context), where(pod, _bad_apparmor)
    values = _bad_types("appArmorProfile", pod)
    who = [setters(bad_pod, containers)] if values else []
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APPARMOR_ANNOTATION) and not _is_apparmor_annotation(value)
    )
    if annotations:
        who.append(plural("annotation", "annotations", len(annotations)))
        values += annotations
    if not who:
        return None
    reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", len(values))
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def _bad_profile(key: str, context: Obj) -> bool:
    """Return whether a security context sets a seccomp or AppArmor profile other than the allowed ones."""
    profile = context.get(key)
    return profile is not None and profile.get("type") not in ("RuntimeDefault", "Localhost")


_bad_apparmor: Callable[[Obj], bool] = partial(_bad_profile, "appArmorProfile")
_bad_seccomp: Callable[[Obj], bool] = partial(_bad_profile, "seccompProfile")


def _bad_types(key: str, pod: Pod) -> list[str]:
    contexts = (pod.context, *map(security_context, pod.containers))
    return sorted({context[key].get("type") or "" for context in contexts if _bad_profile(key, context)})


def _is_apparmor_annotation(value: str) -> bool:
    return value in ("", "runtime/default") or value.startswith("localhost/")


_DEFAULT_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)


def added(pod: Pod, allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the containers that add capabilities that are not allowed, and those capabilities."""
    bad: dict[str, list[str]] = {}
    for container in pod.containers:
        capabilities = security_context(container).get("capabilities") or {}
        extra = [name for name in capabilities.get("add") or () if name not in allowed]
        if extra:
            bad[container.get("name") or ""] = extra
    return list(bad), sorted({name for extra in bad.values() for name in extra})


def added_detail(containers: list[str], capabilities: list[str]) -> str:
    return f"{named(containers)} must not include {quoted(capabilities)} in securityContext.capabilities.add"


def default_capabilities(pod: Pod) -> Violation | None:
    containers, capabilities = added(pod, _DEFAULT_CAPABILITIES)
    if not containers:
        return None
    return Violation("non-default capabilities", added_detail(containers, capabilities))


def host_namespaces(pod: Pod) -> Violation | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_paths(pod: Pod) -> Violation | None:
    found = [v.get("name") or "" for v in pod.spec.get("volumes") or () if v.get("hostPath") is not None]
    if not found:
        return None
    return Violation("hostPath volumes", f"{plural('volume', 'volumes', len(found))} {quoted(found)}")


def host_ports(pod: Pod) -> Violation | None:
    used = {
        c.get("name") or "": ports
        for c in pod.containers
        if (ports := [str(p["hostPort"]) for p in c.get("ports") or () if p.get("hostPort")])
    }
    if not used:
        return None
    ports = sorted({port for found in used.values() for port in found})
    uses, noun = plural("uses", "use", len(used)), plural("hostPort", "hostPorts", len(ports))
    return Violation("hostPort", f"{named(list(used))} {uses} {noun} {', '.join(ports)}")


def probe_hosts(pod: Pod) -> Violation | None:
    used = {c.get("name") or "": hosts for c in pod.containers if (hosts := _hosts_of(c))}
    if not used:
        return None
    hosts = sorted({host for found in used.values() for host in found})
    uses = plural("uses", "use", len(used))
    noun = plural("probe or lifecycle host", "probe or lifecycle hosts", len(hosts))
    return Violation("probe or lifecycle host", f"{named(sorted(used))} {uses} {noun} {quoted(hosts)}")


def _hosts_of(container: Obj) -> list[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(key) for key in ("postStart", "preStop")]
    actions = [handler.get(kind) or {} for handler in handlers if handler for kind in ("httpGet", "tcpSocket")]
    return [action["host"] for action in actions if action.get("host")]


def privileged(pod: Pod) -> Violation | None:
    found = where(pod, lambda context: context.get("privileged") is True)
    if not found:
        return None
    return Violation("privileged", f"{named(found)} must not set securityContext.privileged=true")


def proc_mount(pod: Pod) -> Violation | None:
    found = where(pod, lambda context: context.get("procMount") not in (None, "Default"))
    if not found:
        return None
    types = {security_context(c).get("procMount") or "" for c in pod.containers} - {"", "Default"}
    return Violation("procMount", f"{named(found)} must not set securityContext.procMount to {quoted(sorted(types))}")


def selinux(allowed: frozenset[str], pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        options = context.get("seLinuxOptions") or {}
        return (options.get("type") or "") not in allowed or bool(options.get("user") or options.get("role"))

    containers = where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    options = [c.get("seLinuxOptions") or {} for c in (pod.context, *map(security_context, pod.containers))]
    types = sorted({o["type"] for o in options if (o.get("type") or "") not in allowed})
    parts = [f"{plural('type', 'types', len(types))} {quoted(types)}"] if types else []
    parts += [f"{key} may not be set" for key in ("user", "role") if any(o.get(key) for o in options)]
    who = setters(wrong(pod.context), containers)
    return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}")


def seccomp_annotations(pod: Pod) -> Violation | None:
    keys = [SECCOMP_POD_ANNOTATION, *(SECCOMP_CONTAINER_ANNOTATION + (c.get("name") or "") for c in pod.containers)]
    found = sorted(
        f"{key}={quote(pod.annotations[key])}"
        for key in keys
        if key in pod.annotations and not _is_seccomp_annotation(pod.annotations[key])
    )
    if not found:
        return None
    noun = plural("annotation", "annotations", len(found))
    return Violation("seccompProfile", f"forbidden {noun} {', '.join(found)}")


def _is_seccomp_annotation(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp(pod: Pod) -> Violation | None:
    bad_pod, containers = _bad_seccomp(pod.context), where(pod, _bad_seccomp)
    if not bad_pod and not containers:
        return None
    types, who = _bad_types("seccompProfile", pod), setters(bad_pod, containers)
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {quoted(types)}")


SYSCTLS = {
    0: "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start "
    "net.ipv4.tcp_syncookies net.ipv4.ping_group_range",
    27: "net.ipv4.ip_local_reserved_ports",
    29: "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl "
    "net.ipv4.tcp_keepalive_probes",
    32: "net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
}
"""The safe sysctls, by the minor version that added them."""


def sysctls(allowed: frozenset[str], pod: Pod) -> Violation | None:
    names = [sysctl.get("name") or "" for sysctl in pod.context.get("sysctls") or ()]
    found = [name for name in names if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def host_process(pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        return (context.get("windowsOptions") or {}).get("hostProcess") is True

    containers = where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    who = setters(wrong(pod.context), containers)
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")
