"""Which level of the Pod Security Standards applies in a namespace, and who is exempt from it.

A namespace sets it by labels, one level and one version for each mode: `enforce` refuses, `warn` warns the client,
`audit` annotates the audit event. Defaults come from the configuration of the plug-in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.pod_security.standards import LEVELS, PRIVILEGED, RESTRICTED

PREFIX = "pod-security.kubernetes.io/"
GROUP = "pod-security.admission.config.k8s.io"
MODES = ("enforce", "audit", "warn")
LABELS = frozenset(PREFIX + label for mode in MODES for label in (mode, f"{mode}-version"))
LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_BAD_LEVEL = f"must be one of {', '.join(LEVELS)}"
_BAD_VERSION = 'must be "latest" or "v1.x"'


class LevelVersion(NamedTuple):
    level: str = PRIVILEGED
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int | None:
        """Return the minor version of Kubernetes whose rules hold; None for the latest."""
        found = _VERSION.fullmatch(self.version)
        return int(found[1]) if found else None

    def is_stricter_than(self, other: LevelVersion) -> bool:
        return LEVELS.index(self.level) > LEVELS.index(other.level)


_EVERYTHING = LevelVersion()


@dataclass(frozen=True, slots=True)
class Policy:
    enforce: LevelVersion = _EVERYTHING
    audit: LevelVersion = _EVERYTHING
    warn: LevelVersion = _EVERYTHING

    @property
    def allows_everything(self) -> bool:
        return self.reports_nothing and self.enforce.level == PRIVILEGED

    @property
    def reports_nothing(self) -> bool:
        return self.audit.level == PRIVILEGED and self.warn.level == PRIVILEGED

    def labelled(self, labels: Mapping[str, str]) -> str:
        """Return the modes that labels set to something stricter than privileged, in short."""
        said = [m for m in MODES if PREFIX + m in labels or f"{PREFIX}{m}-version" in labels]
        return ", ".join(f"{mode}={getattr(self, mode)}" for mode in said if getattr(self, mode).level != PRIVILEGED)


def is_labelled(labels: Mapping[str, str] | None) -> bool:
    """Return whether a namespace sets anything of its own."""
    return labels is not None and not LABELS.isdisjoint(labels)


def policy_of(labels: Mapping[str, str] | None, defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """Return the policy of a namespace, and which of its labels are wrong.

    An unreadable level to enforce counts as restricted, one to warn or audit about as privileged.
    """
    errors = FieldErrors()
    if labels is None or not is_labelled(labels):
        return defaults, errors
    found = {mode: _mode(labels, mode, getattr(defaults, mode), errors) for mode in MODES}
    policy = Policy(**found)
    if PREFIX + "warn" in labels or labels.get(PREFIX + "enforce") not in LEVELS:
        return policy, errors
    if policy.enforce.is_stricter_than(policy.warn):  # who enforces a level wants to be warned of what will be refused
        version = policy.warn.version if PREFIX + "warn-version" in labels else policy.enforce.version
        policy = Policy(policy.enforce, policy.audit, LevelVersion(policy.enforce.level, version))
    return policy, errors


def _mode(labels: Mapping[str, str], mode: str, default: LevelVersion, errors: list[FieldError]) -> LevelVersion:
    level, version = labels.get(PREFIX + mode, default.level), labels.get(f"{PREFIX}{mode}-version", default.version)
    if level not in LEVELS:
        errors.append(invalid(f"metadata.labels[{PREFIX}{mode}]", level, _BAD_LEVEL))
        level = RESTRICTED if mode == "enforce" else PRIVILEGED
    if not _is_version(version):
        errors.append(invalid(f"metadata.labels[{PREFIX}{mode}-version]", version, _BAD_VERSION))
        version = LATEST
    return LevelVersion(level, version)


def _is_version(text: str) -> bool:
    return text == LATEST or _VERSION.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A PodSecurityConfiguration: what holds without labels, and who is exempt."""

    defaults: Policy = field(default_factory=Policy)
    usernames: frozenset[str] = field(default_factory=frozenset)
    namespaces: frozenset[str] = field(default_factory=frozenset)
    runtime_classes: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, raw: Obj | None) -> Configuration:
        """Raise ValueError for a configuration that says something that is not possible."""
        if not raw:
            return cls()
        group = str(raw.get("apiVersion") or "").partition("/")[0]
        if raw.get("kind") != "PodSecurityConfiguration" or group != GROUP:
            found = f"{raw.get('kind')} of {raw.get('apiVersion')}"
            raise ValueError(
                f"PodSecurity: configuration must be a PodSecurityConfiguration of {GROUP}/v1, not {found}"
            )
        exemptions = raw.get("exemptions") or {}
        return cls(
            Policy(**{mode: _default(raw.get("defaults") or {}, mode) for mode in MODES}),
            *(frozenset(exemptions.get(key) or ()) for key in ("usernames", "namespaces", "runtimeClasses")),
        )


def _default(defaults: Obj, mode: str) -> LevelVersion:
    level, version = defaults.get(mode) or PRIVILEGED, defaults.get(f"{mode}-version") or LATEST
    if level not in LEVELS:
        raise ValueError(f"PodSecurity: defaults.{mode}: {level!r} {_BAD_LEVEL}")
    if not _is_version(version):
        raise ValueError(f"PodSecurity: defaults.{mode}-version: {version!r} {_BAD_VERSION}")
    return LevelVersion(level, version)
