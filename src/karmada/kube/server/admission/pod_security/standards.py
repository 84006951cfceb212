"""The Pod Security Standards: what a pod must not do at the levels baseline and restricted, by Kubernetes version.

A check is a pure function of a pod's annotations and spec that returns None or a violation: a short reason and the
detail that names the containers. Checks change between versions; a namespace that pins a version gets that version's.
A restricted check may replace the baseline check that it tightens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from karmada.kube.kinds.podspec import containers_of
from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import quote

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
"""From the most permissive to the strictest."""

_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


class Violation(NamedTuple):
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class Pod(NamedTuple):
    annotations: Mapping[str, str]
    spec: Obj

    @property
    def containers(self) -> list[Obj]:
        return list(containers_of(self.spec))

    @property
    def context(self) -> Obj:
        return self.spec.get("securityContext") or {}

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        return self.spec.get("hostUsers") is False


Check: TypeAlias = Callable[[Pod], Violation | None]


class Rule(NamedTuple):
    """A check and the Kubernetes minor version from which it holds, until the next one of the same name."""

    since: int
    check: Check


class Standard(NamedTuple):
    name: str
    level: str
    rules: tuple[Rule, ...]
    replaces: str = ""
    """The baseline check that a restricted one makes superfluous."""


# --- words


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(quote(value) for value in values)


def _plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _named(containers: Sequence[str]) -> str:
    return f"{_plural('container', 'containers', len(containers))} {_quoted(containers)}"


def _setters(pod: bool, containers: Sequence[str]) -> str:
    """Who set a forbidden value: the pod, containers, or both."""
    who = ["pod"] if pod else []
    if containers:
        who.append(_named(containers))
    return " and ".join(who)


def _context(container: Obj) -> Obj:
    return container.get("securityContext") or {}


def _where(pod: Pod, condition: Callable[[Obj], bool]) -> list[str]:
    """The names of the containers for whose security context a condition holds."""
    return [c.get("name") or "" for c in pod.containers if condition(_context(c))]


# --- baseline


def _apparmor(pod: Pod) -> Violation | None:
    bad_pod, containers = _bad_profile("appArmorProfile", pod.context), _where(pod, _bad_apparmor)
    values = _bad_types("appArmorProfile", pod)
    who = [_setters(bad_pod, containers)] if values else []
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APPARMOR_ANNOTATION) and not _is_apparmor_annotation(value)
    )
    if annotations:
        who.append(_plural("annotation", "annotations", len(annotations)))
        values += annotations
    if not who:
        return None
    reason = _plural("forbidden AppArmor profile", "forbidden AppArmor profiles", len(values))
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {_quoted(values)}")


def _bad_profile(key: str, context: Obj) -> bool:
    """Whether a security context sets a seccomp or AppArmor profile other than the allowed ones."""
    profile = context.get(key)
    return profile is not None and profile.get("type") not in ("RuntimeDefault", "Localhost")


_bad_apparmor: Callable[[Obj], bool] = partial(_bad_profile, "appArmorProfile")
_bad_seccomp: Callable[[Obj], bool] = partial(_bad_profile, "seccompProfile")


def _bad_types(key: str, pod: Pod) -> list[str]:
    contexts = (pod.context, *map(_context, pod.containers))
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


def _added(pod: Pod, allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    """The containers that add capabilities that are not allowed, and those capabilities."""
    bad: dict[str, list[str]] = {}
    for container in pod.containers:
        capabilities = _context(container).get("capabilities") or {}
        extra = [name for name in capabilities.get("add") or () if name not in allowed]
        if extra:
            bad[container.get("name") or ""] = extra
    return list(bad), sorted({name for extra in bad.values() for name in extra})


def _added_detail(containers: list[str], capabilities: list[str]) -> str:
    return f"{_named(containers)} must not include {_quoted(capabilities)} in securityContext.capabilities.add"


def _default_capabilities(pod: Pod) -> Violation | None:
    containers, capabilities = _added(pod, _DEFAULT_CAPABILITIES)
    if not containers:
        return None
    return Violation("non-default capabilities", _added_detail(containers, capabilities))


def _host_namespaces(pod: Pod) -> Violation | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: Pod) -> Violation | None:
    found = [v.get("name") or "" for v in pod.spec.get("volumes") or () if v.get("hostPath") is not None]
    if not found:
        return None
    return Violation("hostPath volumes", f"{_plural('volume', 'volumes', len(found))} {_quoted(found)}")


def _host_ports(pod: Pod) -> Violation | None:
    used = {
        c.get("name") or "": ports
        for c in pod.containers
        if (ports := [str(p["hostPort"]) for p in c.get("ports") or () if p.get("hostPort")])
    }
    if not used:
        return None
    ports = sorted({port for found in used.values() for port in found})
    uses, noun = _plural("uses", "use", len(used)), _plural("hostPort", "hostPorts", len(ports))
    return Violation("hostPort", f"{_named(list(used))} {uses} {noun} {', '.join(ports)}")


def _probe_hosts(pod: Pod) -> Violation | None:
    used = {c.get("name") or "": hosts for c in pod.containers if (hosts := _hosts_of(c))}
    if not used:
        return None
    hosts = sorted({host for found in used.values() for host in found})
    uses = _plural("uses", "use", len(used))
    noun = _plural("probe or lifecycle host", "probe or lifecycle hosts", len(hosts))
    return Violation("probe or lifecycle host", f"{_named(sorted(used))} {uses} {noun} {_quoted(hosts)}")


def _hosts_of(container: Obj) -> list[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(key) for key in ("postStart", "preStop")]
    actions = [handler.get(kind) or {} for handler in handlers if handler for kind in ("httpGet", "tcpSocket")]
    return [action["host"] for action in actions if action.get("host")]


def _privileged(pod: Pod) -> Violation | None:
    found = _where(pod, lambda context: context.get("privileged") is True)
    if not found:
        return None
    return Violation("privileged", f"{_named(found)} must not set securityContext.privileged=true")


def _proc_mount(pod: Pod) -> Violation | None:
    found = _where(pod, lambda context: context.get("procMount") not in (None, "Default"))
    if not found:
        return None
    types = {_context(c).get("procMount") or "" for c in pod.containers} - {"", "Default"}
    return Violation("procMount", f"{_named(found)} must not set securityContext.procMount to {_quoted(sorted(types))}")


def _selinux(allowed: frozenset[str], pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        options = context.get("seLinuxOptions") or {}
        return (options.get("type") or "") not in allowed or bool(options.get("user") or options.get("role"))

    containers = _where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    options = [c.get("seLinuxOptions") or {} for c in (pod.context, *map(_context, pod.containers))]
    types = sorted({o["type"] for o in options if (o.get("type") or "") not in allowed})
    parts = [f"{_plural('type', 'types', len(types))} {_quoted(types)}"] if types else []
    parts += [f"{key} may not be set" for key in ("user", "role") if any(o.get(key) for o in options)]
    who = _setters(wrong(pod.context), containers)
    return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}")


def _seccomp_annotations(pod: Pod) -> Violation | None:
    keys = [SECCOMP_POD_ANNOTATION, *(SECCOMP_CONTAINER_ANNOTATION + (c.get("name") or "") for c in pod.containers)]
    found = sorted(
        f"{key}={quote(pod.annotations[key])}"
        for key in keys
        if key in pod.annotations and not _is_seccomp_annotation(pod.annotations[key])
    )
    if not found:
        return None
    noun = _plural("annotation", "annotations", len(found))
    return Violation("seccompProfile", f"forbidden {noun} {', '.join(found)}")


def _is_seccomp_annotation(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def _seccomp(pod: Pod) -> Violation | None:
    bad_pod, containers = _bad_seccomp(pod.context), _where(pod, _bad_seccomp)
    if not bad_pod and not containers:
        return None
    types, who = _bad_types("seccompProfile", pod), _setters(bad_pod, containers)
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_quoted(types)}")


_SYSCTLS = {
    0: "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start "
    "net.ipv4.tcp_syncookies net.ipv4.ping_group_range",
    27: "net.ipv4.ip_local_reserved_ports",
    29: "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl "
    "net.ipv4.tcp_keepalive_probes",
    32: "net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
}
"""The safe sysctls, by the minor version that added them."""


def _sysctls(allowed: frozenset[str], pod: Pod) -> Violation | None:
    names = [sysctl.get("name") or "" for sysctl in pod.context.get("sysctls") or ()]
    found = [name for name in names if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def _sysctl_rules() -> tuple[Rule, ...]:
    def safe(minor: int) -> frozenset[str]:
        return frozenset(name for since, names in _SYSCTLS.items() if since <= minor for name in names.split())

    return tuple(Rule(minor, partial(_sysctls, safe(minor))) for minor in _SYSCTLS)


def _host_process(pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        return (context.get("windowsOptions") or {}).get("hostProcess") is True

    containers = _where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    who = _setters(wrong(pod.context), containers)
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")


# --- restricted


def _privilege_escalation(pod: Pod) -> Violation | None:
    found = _where(pod, lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not found:
        return None
    detail = f"{_named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _restricted_capabilities(pod: Pod) -> Violation | None:
    keeping = _where(pod, lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()))
    adding, capabilities = _added(pod, frozenset({"NET_BIND_SERVICE"}))
    details = []
    if keeping:
        details.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(_added_detail(adding, capabilities))
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def _restricted_volumes(pod: Pod) -> Violation | None:
    found = {
        v.get("name") or "": next((kind for kind in _OTHER_VOLUMES if v.get(kind) is not None), "unknown")
        for v in pod.spec.get("volumes") or ()
        if all(v.get(kind) is None for kind in _VOLUMES)
    }
    if not found:
        return None
    types = sorted(set(found.values()))
    volumes = f"{_plural('volume', 'volumes', len(found))} {_quoted(found)}"
    noun = _plural("restricted volume type", "restricted volume types", len(types))
    return Violation(
        "restricted volume types", f"{volumes} {_plural('uses', 'use', len(found))} {noun} {_quoted(types)}"
    )


def _run_as_non_root(pod: Pod) -> Violation | None:
    own = pod.context.get("runAsNonRoot")
    explicit = _where(pod, lambda context: context.get("runAsNonRoot") is False)
    reason = "runAsNonRoot != true"
    if own is False or explicit:
        return Violation(reason, f"{_setters(own is False, explicit)} must not set securityContext.runAsNonRoot=false")
    unset = _where(pod, lambda context: context.get("runAsNonRoot") is None) if own is None else []
    if not unset:
        return None
    return Violation(reason, f"pod or {_named(unset)} must set securityContext.runAsNonRoot=true")


def _run_as_user(pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        return context.get("runAsUser") == 0

    containers = _where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    return Violation("runAsUser=0", f"{_setters(wrong(pod.context), containers)} must not set runAsUser=0")


def _restricted_seccomp(pod: Pod) -> Violation | None:
    explicit = _seccomp(pod)
    if explicit is not None or pod.context.get("seccompProfile"):
        return explicit
    unset = _where(pod, lambda context: context.get("seccompProfile") is None)
    if not unset:
        return None
    detail = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_named(unset)} {detail}")


def _unless_windows(check: Check) -> Check:
    return lambda pod: None if pod.is_windows else check(pod)


def _unless_user_namespace(check: Check) -> Check:
    return lambda pod: None if pod.has_user_namespace else check(pod)


_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SELINUX_ENGINE = _SELINUX_TYPES | {"container_engine_t"}

STANDARDS: tuple[Standard, ...] = (
    Standard("appArmorProfile", BASELINE, (Rule(0, _apparmor),)),
    Standard("capabilities_baseline", BASELINE, (Rule(0, _default_capabilities),)),
    Standard("hostNamespaces", BASELINE, (Rule(0, _host_namespaces),)),
    Standard("hostPathVolumes", BASELINE, (Rule(0, _host_paths),)),
    Standard("hostPorts", BASELINE, (Rule(0, _host_ports),)),
    Standard("hostProbesAndHostLifecycle", BASELINE, (Rule(34, _probe_hosts),)),
    Standard("privileged", BASELINE, (Rule(0, _privileged),)),
    Standard("procMount", BASELINE, (Rule(0, _proc_mount), Rule(35, _unless_user_namespace(_proc_mount)))),
    Standard(
        "seLinuxOptions",
        BASELINE,
        (Rule(0, partial(_selinux, _SELINUX_TYPES)), Rule(31, partial(_selinux, _SELINUX_ENGINE))),
    ),
    Standard("seccompProfile_baseline", BASELINE, (Rule(0, _seccomp_annotations), Rule(19, _seccomp))),
    Standard("sysctls", BASELINE, _sysctl_rules()),
    Standard("windowsHostProcess", BASELINE, (Rule(0, _host_process),)),
    Standard(
        "allowPrivilegeEscalation",
        RESTRICTED,
        (Rule(8, _privilege_escalation), Rule(25, _unless_windows(_privilege_escalation))),
    ),
    Standard(
        "capabilities_restricted",
        RESTRICTED,
        (Rule(22, _restricted_capabilities), Rule(25, _unless_windows(_restricted_capabilities))),
        replaces="capabilities_baseline",
    ),
    Standard("procMount_restricted", RESTRICTED, (Rule(35, _proc_mount),), replaces="procMount"),
    Standard("restrictedVolumes", RESTRICTED, (Rule(0, _restricted_volumes),), replaces="hostPathVolumes"),
    Standard(
        "runAsNonRoot", RESTRICTED, (Rule(0, _run_as_non_root), Rule(35, _unless_user_namespace(_run_as_non_root)))
    ),
    Standard("runAsUser", RESTRICTED, (Rule(23, _run_as_user), Rule(35, _unless_user_namespace(_run_as_user)))),
    Standard(
        "seccompProfile_restricted",
        RESTRICTED,
        (Rule(19, _restricted_seccomp), Rule(25, _unless_windows(_restricted_seccomp))),
        replaces="seccompProfile_baseline",
    ),
)
"""In the order in which violations are reported."""
_NEWEST = max(rule.since for standard in STANDARDS for rule in standard.rules)


@lru_cache(maxsize=256)
def checks_of(level: str, minor: int | None) -> tuple[Check, ...]:
    """The checks of a level in a minor version of Kubernetes; None is the latest."""
    version = _NEWEST if minor is None else min(minor, _NEWEST)
    levels = LEVELS[1 : LEVELS.index(level) + 1]
    found = {s: check for s in STANDARDS if s.level in levels and (check := _check_in(s, version)) is not None}
    replaced = {standard.replaces for standard in found}
    return tuple(check for standard, check in found.items() if standard.name not in replaced)


def _check_in(standard: Standard, minor: int) -> Check | None:
    found = [rule.check for rule in standard.rules if rule.since <= minor]
    return found[-1] if found else None


def violations(level: str, minor: int | None, annotations: Mapping[str, str] | None, spec: Obj) -> list[Violation]:
    """What a pod does that a level forbids; empty for a pod that conforms."""
    pod = Pod(annotations or {}, spec)
    found = (check(pod) for check in checks_of(level, minor))
    return [violation for violation in found if violation is not None]
