"""ResourceInterpreterWebhookConfiguration: which kinds a webhook handles, and how it is reached."""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.kube.kinds import checks
from karmada.kube.kinds.admissionregistration import client_config
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, duplicate, invalid, not_supported, required
from karmada.kube.objects.types import Obj

OPERATIONS = (
    "*", "AggregateStatus", "InterpretComponent", "InterpretDependency", "InterpretHealth", "InterpretReplica",
    "InterpretStatus", "Retain", "ReviseReplica",
)  # fmt: skip
VERSIONS = ("v1alpha1",)
_LISTS = (("apiGroups", "API groups"), ("apiVersions", "API versions"), ("kinds", "kinds"))


def validate(configuration: Obj, _old: Obj | None, _context: Context) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", webhook.get("name") or ""
        _webhook(errors, path, webhook)
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _webhook(errors: list[FieldError], path: str, webhook: Obj) -> None:
    _domain(errors, f"{path}.name", webhook.get("name") or "")
    for index, rule in enumerate(webhook.get("rules") or ()):
        _rule(errors, f"{path}.rules[{index}]", rule)
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, detail))
    client_config(errors, f"{path}.clientConfig", webhook.get("clientConfig") or {})
    _versions(errors, f"{path}.interpreterContextVersions", webhook.get("interpreterContextVersions") or [])


def _domain(errors: list[FieldError], path: str, name: str) -> None:
    """Validate a fully qualified domain name, with or without the dot at its end."""
    if not name:
        errors.append(required(path))
        return
    name = name.removesuffix(".")
    wrong = names.dns1123_subdomain(name)
    if wrong:
        errors.append(invalid(path, name, ",".join(wrong)))
        return
    labels = name.split(".")
    if len(labels) < 2:
        errors.append(invalid(path, name, "should be a domain with at least two segments separated by dots"))
        return
    wrong_labels = ((label, names.dns1123_label(label)) for label in labels)
    errors += [invalid(path, label, ",".join(wrong)) for label, wrong in wrong_labels if wrong]


def _rule(errors: list[FieldError], path: str, rule: Obj) -> None:
    operations = rule.get("operations") or []
    _all_or_some(errors, f"{path}.operations", operations, "operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    for key, what in _LISTS:
        values = rule.get(key) or []
        _all_or_some(errors, f"{path}.{key}", values, what)
        if key != "apiGroups":
            for index, value in enumerate(values):
                checks.needed(errors, f"{path}.{key}[{index}]", value)


def _all_or_some(errors: list[FieldError], path: str, values: list[str], what: str) -> None:
    checks.needed(errors, path, values)
    if len(values) > 1 and "*" in values:
        errors.append(invalid(path, values, f"if '*' is present, must not specify other {what}"))


def _versions(errors: list[FieldError], path: str, versions: list[str]) -> None:
    if not versions:
        errors.append(required(path, f"must specify one of {', '.join(VERSIONS)}"))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        checks.add_invalid(errors, f"{path}[{index}]", version, names.dns1035_label(version))
    if seen.isdisjoint(VERSIONS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(VERSIONS)}"))
