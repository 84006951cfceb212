"""The Pod Security Standards: what a pod must not do at the levels baseline and restricted, by Kubernetes version.

A check is a pure function of a pod's annotations and spec that returns None or a violation: a short reason and the
detail that names the containers. Checks change between versions; a namespace that pins a version gets that version's.
A restricted check may replace the baseline check that it tightens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.pod_security.baseline import (
    SYSCTLS,
    apparmor,
    default_capabilities,
    host_namespaces,
    host_paths,
    host_ports,
    host_process,
    privileged,
    probe_hosts,
    proc_mount,
    seccomp,
    seccomp_annotations,
    selinux,
    sysctls,
)
from karmada.kube.server.admission.pod_security.pod import Check, Pod, Violation
from karmada.kube.server.admission.pod_security.restricted import (
    privilege_escalation,
    restricted_capabilities,
    restricted_seccomp,
    restricted_volumes,
    run_as_non_root,
    run_as_user,
)

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
"""From the most permissive to the strictest."""


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


def _sysctl_rules() -> tuple[Rule, ...]:
    def safe(minor: int) -> frozenset[str]:
        return frozenset(name for since, names in SYSCTLS.items() if since <= minor for name in names.split())

    return tuple(Rule(minor, partial(sysctls, safe(minor))) for minor in SYSCTLS)


def _unless_windows(check: Check) -> Check:
    return lambda pod: None if pod.is_windows else check(pod)


def _unless_user_namespace(check: Check) -> Check:
    return lambda pod: None if pod.has_user_namespace else check(pod)


_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SELINUX_ENGINE = _SELINUX_TYPES | {"container_engine_t"}

STANDARDS: tuple[Standard, ...] = (
    Standard("appArmorProfile", BASELINE, (Rule(0, apparmor),)),
    Standard("capabilities_baseline", BASELINE, (Rule(0, default_capabilities),)),
    Standard("hostNamespaces", BASELINE, (Rule(0, host_namespaces),)),
    Standard("hostPathVolumes", BASELINE, (Rule(0, host_paths),)),
    Standard("hostPorts", BASELINE, (Rule(0, host_ports),)),
    Standard("hostProbesAndHostLifecycle", BASELINE, (Rule(34, probe_hosts),)),
    Standard("privileged", BASELINE, (Rule(0, privileged),)),
    Standard("procMount", BASELINE, (Rule(0, proc_mount), Rule(35, _unless_user_namespace(proc_mount)))),
    Standard(
        "seLinuxOptions",
        BASELINE,
        (Rule(0, partial(selinux, _SELINUX_TYPES)), Rule(31, partial(selinux, _SELINUX_ENGINE))),
    ),
    Standard("seccompProfile_baseline", BASELINE, (Rule(0, seccomp_annotations), Rule(19, seccomp))),
    Standard("sysctls", BASELINE, _sysctl_rules()),
    Standard("windowsHostProcess", BASELINE, (Rule(0, host_process),)),
    Standard(
        "allowPrivilegeEscalation",
        RESTRICTED,
        (Rule(8, privilege_escalation), Rule(25, _unless_windows(privilege_escalation))),
    ),
    Standard(
        "capabilities_restricted",
        RESTRICTED,
        (Rule(22, restricted_capabilities), Rule(25, _unless_windows(restricted_capabilities))),
        replaces="capabilities_baseline",
    ),
    Standard("procMount_restricted", RESTRICTED, (Rule(35, proc_mount),), replaces="procMount"),
    Standard("restrictedVolumes", RESTRICTED, (Rule(0, restricted_volumes),), replaces="hostPathVolumes"),
    Standard("runAsNonRoot", RESTRICTED, (Rule(0, run_as_non_root), Rule(35, _unless_user_namespace(run_as_non_root)))),
    Standard("runAsUser", RESTRICTED, (Rule(23, run_as_user), Rule(35, _unless_user_namespace(run_as_user)))),
    Standard(
        "seccompProfile_restricted",
        RESTRICTED,
        (Rule(19, restricted_seccomp), Rule(25, _unless_windows(restricted_seccomp))),
        replaces="seccompProfile_baseline",
    ),
)
"""In the order in which violations are reported."""
_NEWEST = max(rule.since for standard in STANDARDS for rule in standard.rules)


@lru_cache(maxsize=256)
def checks_of(level: str, minor: int | None) -> tuple[Check, ...]:
    """Return the checks of a level in a minor version of Kubernetes; None is the latest."""
    version = _NEWEST if minor is None else min(minor, _NEWEST)
    levels = LEVELS[1 : LEVELS.index(level) + 1]
    found = {s: check for s in STANDARDS if s.level in levels and (check := _check_in(s, version)) is not None}
    replaced = {standard.replaces for standard in found}
    return tuple(check for standard, check in found.items() if standard.name not in replaced)


def _check_in(standard: Standard, minor: int) -> Check | None:
    found = [rule.check for rule in standard.rules if rule.since <= minor]
    return found[-1] if found else None


def violations(level: str, minor: int | None, annotations: Mapping[str, str] | None, spec: Obj) -> list[Violation]:
    """Return what a pod does that a level forbids; empty for a pod that conforms."""
    pod = Pod(annotations or {}, spec)
    found = (check(pod) for check in checks_of(level, minor))
    return [violation for violation in found if violation is not None]
