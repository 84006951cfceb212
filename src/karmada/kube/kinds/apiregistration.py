"""APIServices: which server serves a group-version. One without a service is served here and available at once."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid
from karmada.kube.objects.types import Obj

_MAX_GROUP_PRIORITY, _MAX_VERSION_PRIORITY = 20000, 1000


def local_available(since: str) -> Obj:
    """Return the condition of an APIService that needs no backend."""
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": since,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def default(obj: Obj) -> None:
    service = (obj.get("spec") or {}).get("service")
    if service is not None:
        fill(service, port=443)


def prepare_create(obj: Obj) -> None:
    local = (obj.get("spec") or {}).get("service") is None
    since = obj["metadata"].get("creationTimestamp") or ""
    obj["status"] = {"conditions": [local_available(since)]} if local else {}


def validate(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    wanted = f"{version}.{group}"
    name = obj["metadata"].get("name") or ""
    if name != wanted:
        errors.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"'))
    if group:
        checks.add_invalid(errors, "spec.group", group, names.dns1123_subdomain(group))
    checks.add_invalid(errors, "spec.version", version, names.dns1035_label(version))
    for key, most in (("groupPriorityMinimum", _MAX_GROUP_PRIORITY), ("versionPriority", _MAX_VERSION_PRIORITY)):
        value = spec.get(key) or 0
        if not 0 < value <= most:
            errors.append(invalid(f"spec.{key}", value, f"must be positive and less than {most}"))
    _service(errors, spec)
    return errors


def _service(errors: list[FieldError], spec: Obj) -> None:
    service, insecure, bundle = spec.get("service"), spec.get("insecureSkipTLSVerify"), spec.get("caBundle")
    if service is None:
        if bundle:
            errors.append(forbidden_field("spec.caBundle", "local APIServices may not have a caBundle"))
        if insecure:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(forbidden_field("spec.insecureSkipTLSVerify", detail))
        return
    for key in ("namespace", "name"):
        checks.needed(errors, f"spec.service.{key}", service.get(key))
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        errors.append(invalid("spec.service.port", port, "port is not valid: " + checks.PORT_RANGE))
    if insecure and bundle:
        detail = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, detail))


API_SERVICE = Strategy(
    default=default,
    prepare_create=prepare_create,
    validate=validate,
    name_errors=names.path_segment,
    unconditional_update=False,
)
