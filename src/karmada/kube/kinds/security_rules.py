"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.objects.errors import FieldError, invalid, not_supported, required
from karmada.kube.objects.types import Obj

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_ESCALATION = "cannot set `allowPrivilegeEscalation` to false and "


def container_context(errors: list[FieldError], path: str, context: Obj) -> None:
    identities(errors, path, context, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        checks.one_of(errors, f"{path}.procMount", mount, ("Default", "Unmasked"))
    seccomp(errors, f"{path}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            errors.append(invalid(path, context, f"{_ESCALATION}`privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            errors.append(invalid(path, context, f"{_ESCALATION}`capabilities.Add` CAP_SYS_ADMIN"))
    app_armor(errors, f"{path}.appArmorProfile", context.get("appArmorProfile"))


def identities(errors: list[FieldError], path: str, context: Obj, keys: tuple[str, ...]) -> None:
    for key in keys:
        checks.between(errors, f"{path}.{key}", context.get(key), 0, checks.MAX_INT32)


def seccomp(errors: list[FieldError], path: str, profile: Obj | None) -> None:
    if profile is None:
        return
    _profile_type(errors, f"{path}.type", profile.get("type"), "seccompProfile")
    local = profile.get("localhostProfile")
    if profile.get("type") == "Localhost":
        if local is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            checks.relative_path(errors, f"{path}.localhostProfile", local)
    elif local is not None:
        detail = "can only be set when seccomp type is Localhost"
        errors.append(invalid(f"{path}.localhostProfile", local, detail))


def app_armor(errors: list[FieldError], path: str, profile: Obj | None) -> None:
    if profile is None:
        return
    kind, local, place = profile.get("type"), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is not None and local != local.strip():
            errors.append(invalid(place, local, "must not be padded with whitespace"))
        if not (local or "").strip():
            errors.append(required(place, "must be set when AppArmor type is Localhost"))
        elif len(local or "") > _LONGEST_PROFILE:
            errors.append(invalid(place, local, f"must be no more than {_LONGEST_PROFILE} bytes"))
        return
    _profile_type(errors, f"{path}.type", kind, "appArmorProfile")
    if kind in _PROFILES and local is not None:
        errors.append(invalid(place, local, "can only be set when AppArmor type is Localhost"))


def _profile_type(errors: list[FieldError], path: str, kind: Any, field: str) -> None:
    if not kind:
        errors.append(required(path, f"type is required when {field} is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(path, kind, _PROFILES))
