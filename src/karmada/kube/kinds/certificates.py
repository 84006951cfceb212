"""CertificateSigningRequest: the spec is immutable, and each part of the status has one endpoint that writes it.

An ordinary update writes metadata only. `/approval` adds Approved or Denied, `/status` sets the certificate or adds
Failed and other conditions; these conditions are never removed.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.resource import Strategy
from karmada.kube.kinds.signing_requests import (
    APPROVED,
    DENIED,
    FAILED,
    LEGACY_UNKNOWN,
    MIN_SECONDS,
    conditions,
    load_certificate,
    parse_request,
    request_pem,
)
from karmada.kube.kinds.usages import ALL_USAGES
from karmada.kube.objects import names
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from karmada.kube.objects.quoting import go_quote
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

_STATUSES = {APPROVED: ("True",), DENIED: ("True",), FAILED: ("True",)}
_USAGES = sorted(ALL_USAGES)


def signer_name_errors(signer: str, path: str = "spec.signerName") -> list[FieldError]:
    if not signer:
        return [required(path)]
    domain, slash, rest = signer.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, signer, why)]
    errors = [too_long(path, 253)] if len(domain) > 253 else []
    labels = domain.split(".")
    for label in labels:
        errors += [
            invalid(path, domain, f"validating label {go_quote(label)}: {e}") for e in names.dns1123_label(label)
        ]
    if len(labels) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += [invalid(path, rest, f"validating label {go_quote(rest)}: {e}") for e in names.dns1123_subdomain(rest)]
    return errors


def _request_errors(spec: Obj) -> list[FieldError]:
    try:
        parse_request(request_pem({"spec": spec}))
    except ValueError as error:
        return [invalid("spec.request", spec.get("request"), str(error))]
    return []


def _usage_errors(usages: list[str]) -> list[FieldError]:
    if not usages:
        return [required("spec.usages")]
    errors = [
        not_supported(f"spec.usages[{index}]", usage, _USAGES)
        for index, usage in enumerate(usages)
        if usage not in ALL_USAGES
    ]
    repeated = [(i, usage) for i, usage in enumerate(usages) if usage in usages[:i]]
    return errors + [duplicate(f"spec.usages[{index}]", usage) for index, usage in repeated]


def _condition_errors(csr: Obj) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, entry in enumerate(conditions(csr)):
        path = f"status.conditions[{index}]"
        kind, status = entry.get("type", ""), entry.get("status", "")
        if not kind:
            errors.append(required(f"{path}.type"))
        allowed = _STATUSES.get(kind, ("True", "False", "Unknown"))
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in allowed:
            errors.append(not_supported(f"{path}.status", status, allowed))
        if {APPROVED: DENIED, DENIED: APPROVED}.get(kind) in seen:
            errors.append(invalid("status.conditions", kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


def validate_create(csr: Obj) -> list[FieldError]:
    spec = csr.get("spec") or {}
    errors = _request_errors(spec) + _usage_errors(spec.get("usages") or [])
    signer = spec.get("signerName", "")
    if signer == LEGACY_UNKNOWN:
        why = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", signer, why))
    else:
        errors += signer_name_errors(signer)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < MIN_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    return errors


# --- changes ------------------------------------------------------------------------------------------------------


def _without_status(csr: Obj) -> None:
    csr.pop("status", None)


def _keep_spec_and_status(csr: Obj, old: Obj) -> None:
    """Ordinary updates take metadata only."""
    csr["spec"] = copy_json(old.get("spec") or {})
    if old.get("status"):
        csr["status"] = copy_json(old["status"])
    else:
        csr.pop("status", None)


def prepare_approval(csr: Obj, old: Obj, now: float) -> None:
    """In place: `/approval` takes the conditions and nothing else."""
    wanted = conditions(csr)
    _keep_spec_and_status(csr, old)
    status = csr.setdefault("status", {})
    status["conditions"] = copy_json(wanted)
    if not wanted:
        del status["conditions"]
    _stamp(csr, old, now)


def prepare_status(csr: Obj, old: Obj, now: float) -> None:
    """In place: `/status` keeps the spec and the approval, and fills in the times of conditions."""
    csr["spec"] = copy_json(old.get("spec") or {})
    stored = {kind: _by_type(old, kind) for kind in (APPROVED, DENIED)}
    entries = conditions(csr)
    for index, entry in enumerate(entries):
        same = stored.get(entry.get("type", ""))
        if same:
            entries[index] = copy_json(same[0])
    _stamp(csr, old, now)


def _stamp(csr: Obj, old: Obj, now: float) -> None:
    before = {(c.get("type"), c.get("status")): c.get("lastTransitionTime") for c in conditions(old)}
    for entry in conditions(csr):
        if not entry.get("lastUpdateTime"):
            entry["lastUpdateTime"] = rfc3339(now)
        if not entry.get("lastTransitionTime"):
            entry["lastTransitionTime"] = before.get((entry.get("type"), entry.get("status"))) or rfc3339(now)


def _by_type(csr: Obj, kind: str) -> list[Any]:
    return [entry for entry in conditions(csr) if entry.get("type") == kind]


def _kept_condition_errors(csr: Obj, old: Obj, may_set: tuple[str, ...]) -> list[FieldError]:
    """Approved, Denied and Failed are never removed; the first two are added through `/approval` only."""
    errors = []
    for kind in (APPROVED, DENIED, FAILED):
        before, after = _by_type(old, kind), _by_type(csr, kind)
        if before and not after:
            what = "remove"
        elif kind in may_set or before == after:
            continue
        else:
            what = "modify" if before else "add"
        errors.append(
            forbidden_field("status.conditions", f"updates may not {what} a condition of type {go_quote(kind)}")
        )
    return errors


def _certificate(csr: Obj) -> str:
    return (csr.get("status") or {}).get("certificate") or ""


def validate_update(csr: Obj, old: Obj) -> list[FieldError]:
    errors = _condition_errors(csr) + _kept_condition_errors(csr, old, ())
    if _certificate(csr) != _certificate(old):
        errors.append(forbidden_field("status.certificate", "updates may not set certificate content"))
    return errors


def validate_approval(csr: Obj, old: Obj) -> list[FieldError]:
    errors = _condition_errors(csr) + _kept_condition_errors(csr, old, (APPROVED, DENIED))
    if _certificate(csr) != _certificate(old):
        errors.append(forbidden_field("status.certificate", "updates may not set certificate content"))
    return errors


def validate_status(csr: Obj, old: Obj) -> list[FieldError]:
    errors = _condition_errors(csr) + _kept_condition_errors(csr, old, (FAILED,))
    new, before = _certificate(csr), _certificate(old)
    if new == before:
        return errors
    if before:
        errors.append(forbidden_field("status.certificate", "updates may not modify existing certificate content"))
    elif load_certificate(new) is None:
        errors.append(
            invalid("status.certificate", "<certificate data>", "expected at least one PEM CERTIFICATE block")
        )
    return errors


CERTIFICATE_SIGNING_REQUEST = Strategy(
    prepare_create=_without_status,
    prepare_update=_keep_spec_and_status,
    validate=validate_create,
    validate_update=validate_update,
    validate_status=validate_status,
    name_errors=names.path_segment,
    fields={"spec.signerName": lambda csr: str((csr.get("spec") or {}).get("signerName", ""))},
)
STRATEGIES: dict[str, Strategy] = {"CertificateSigningRequest": CERTIFICATE_SIGNING_REQUEST}
