"""Webhook configurations and admission policies: defaults and validation."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from karmada.kube.kinds import admission_expressions as expressions
from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from karmada.kube.objects.types import Obj

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_KNOWN_REVIEWS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"
_ACTIONS = ("Audit", "Deny", "Warn")


def _default_match(holder: Obj) -> None:
    fill_text(holder, matchPolicy="Equivalent")
    fill(holder, namespaceSelector={}, objectSelector={})


def _default_scope(rules: list[Obj] | None) -> None:
    for rule in rules or ():
        fill_text(rule, scope="*")


def _default_webhook(webhook: Obj) -> None:
    fill_text(webhook, failurePolicy="Fail")
    _default_match(webhook)
    fill(webhook, timeoutSeconds=10)
    _default_scope(webhook.get("rules"))
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None:
        fill(service, port=443)


def default_mutating(obj: Obj) -> None:
    for webhook in obj.get("webhooks") or ():
        _default_webhook(webhook)
        fill_text(webhook, reinvocationPolicy="Never")


def default_validating(obj: Obj) -> None:
    for webhook in obj.get("webhooks") or ():
        _default_webhook(webhook)


def default_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_text(spec, failurePolicy="Fail")
    constraints = spec.get("matchConstraints")
    if constraints is not None:
        _default_match(constraints)
        _default_scope(constraints.get("resourceRules"))
        _default_scope(constraints.get("excludeResourceRules"))


def default_binding(obj: Obj) -> None:
    resources = (obj.get("spec") or {}).get("matchResources")
    if resources is not None:
        _default_match(resources)
        _default_scope(resources.get("resourceRules"))
        _default_scope(resources.get("excludeResourceRules"))


# --- rules


def validate_webhooks(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        _webhook(errors, path, webhook)
        if webhook.get("name") in seen:
            errors.append(duplicate(f"{path}.name", webhook["name"]))
        seen.add(webhook.get("name") or "")
    return errors


def _webhook(errors: list[FieldError], path: str, webhook: Obj) -> None:
    _qualified(errors, f"{path}.name", webhook.get("name") or "")
    _versions(errors, f"{path}.admissionReviewVersions", webhook.get("admissionReviewVersions") or [])
    side_effects = webhook.get("sideEffects")
    if side_effects is None:
        errors.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif side_effects not in _SIDE_EFFECTS:
        errors.append(not_supported(f"{path}.sideEffects", side_effects, _SIDE_EFFECTS))
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, detail))
    for key, allowed in (("failurePolicy", _POLICIES), ("matchPolicy", _MATCH_POLICIES)):
        if webhook.get(key) not in allowed:
            errors.append(not_supported(f"{path}.{key}", webhook.get(key), allowed))
    for key in ("namespaceSelector", "objectSelector"):
        checks.label_selector(errors, f"{path}.{key}", webhook.get(key))
    for index, rule in enumerate(webhook.get("rules") or ()):
        _rule(errors, f"{path}.rules[{index}]", rule)
    expressions.match_conditions(errors, f"{path}.matchConditions", webhook.get("matchConditions"))
    client_config(errors, f"{path}.clientConfig", webhook.get("clientConfig") or {})


def _qualified(errors: list[FieldError], path: str, name: str) -> None:
    if not name:
        errors.append(required(path))
        return
    messages = names.dns1123_subdomain(name)
    checks.add_invalid(errors, path, name, messages)
    if not messages and name.count(".") < 2:
        errors.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))


def _versions(errors: list[FieldError], path: str, versions: list[str]) -> None:
    if not versions:
        errors.append(required(path, "must specify one of v1, v1beta1"))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        seen.add(version)
        checks.add_invalid(errors, f"{path}[{index}]", version, names.dns1035_label(version))
    if not seen.intersection(_KNOWN_REVIEWS):
        errors.append(invalid(path, versions, "must include at least one of v1, v1beta1"))


def _rule(errors: list[FieldError], path: str, rule: Obj) -> None:
    operations = rule.get("operations") or []
    if not operations:
        errors.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", operations, detail))
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    for key, what in (("apiGroups", "API groups"), ("apiVersions", "API versions"), ("resources", "resources")):
        values = rule.get(key) or []
        if not values:
            errors.append(required(f"{path}.{key}"))
        if len(values) > 1 and "*" in values and key != "resources":
            detail = f"if '*' is present, must not specify other {what}"
            errors.append(invalid(f"{path}.{key}", values, detail))
        for index, value in enumerate(values):
            if not value and key != "apiGroups":
                errors.append(required(f"{path}.{key}[{index}]"))
    _resources(errors, f"{path}.resources", rule.get("resources") or [])
    scope = rule.get("scope")
    if scope is not None and scope not in ("*", "Cluster", "Namespaced"):
        errors.append(not_supported(f"{path}.scope", scope, ("*", "Cluster", "Namespaced")))


def _resources(errors: list[FieldError], path: str, resources: list[str]) -> None:
    """Wildcards must not stand beside what they include."""
    whole, parts = set(), set()
    for index, text in enumerate(resources):
        name, slash, part = text.partition("/")
        if name in whole and text != "*/*":
            errors.append(invalid(f"{path}[{index}]", text, f"if '{name}/*' is present, must not specify {text}"))
        if slash and part in parts and text != "*/*":
            errors.append(invalid(f"{path}[{index}]", text, f"if '*/{part}' is present, must not specify {text}"))
        if part == "*" and name != "*":
            whole.add(name)
        if name == "*" and slash and part != "*":
            parts.add(part)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in text and text != "*" for text in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))


def client_config(errors: list[FieldError], path: str, config: Obj) -> None:
    """Validate the clientConfig of a webhook: exactly one of URL and Service."""
    url: str | None = config.get("url")
    service: Obj | None = config.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
        return
    if service is None:
        _url(errors, f"{path}.url", url or "")
        return
    for key in ("name", "namespace"):
        checks.needed(errors, f"{path}.service.{key}", service.get(key), f"service {key} is required")
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        detail = "port is not valid: " + checks.PORT_RANGE
        errors.append(invalid(f"{path}.service.port", port, detail))
    _service_path(errors, f"{path}.service.path", service.get("path") or "/")


def _service_path(errors: list[FieldError], path: str, text: str) -> None:
    if not text.startswith("/"):
        errors.append(invalid(path, text, "must start with a '/'"))
    elif text != "/":
        for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
            if not segment:
                errors.append(invalid(path, text, f"segment[{index}] may not be empty"))
            else:
                details = [f"segment[{index}]: {wrong}" for wrong in names.dns1123_subdomain(segment)]
                checks.add_invalid(errors, path, text, details)


def _url(errors: list[FieldError], path: str, text: str) -> None:
    try:
        parsed = urlsplit(text)
    except ValueError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{_URL_FORM}"))
        return
    if parsed.scheme != "https":
        errors.append(invalid(path, parsed.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not parsed.netloc:
        errors.append(invalid(path, parsed.netloc, f"host must be specified{_URL_FORM}"))
    if parsed.username is not None:
        errors.append(invalid(path, parsed.username, "user information is not permitted in the URL"))
    if parsed.fragment:
        errors.append(invalid(path, parsed.fragment, "fragments are not permitted in the URL"))
    if parsed.query:
        errors.append(invalid(path, parsed.query, "query parameters are not permitted in the URL"))


def validate_policy(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    declared = _policy(errors, spec)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        errors += [required(f"spec.{key}", detail) for key in ("validations", "auditAnnotations")]
        return errors
    for index, validation in enumerate(spec.get("validations") or ()):
        expressions.validation(errors, f"spec.validations[{index}]", validation, declared)
    name, annotations = obj["metadata"].get("name") or "", spec.get("auditAnnotations") or []
    expressions.audit_annotations(errors, "spec.auditAnnotations", annotations, name, declared)
    return errors


def validate_mutating_policy(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    declared = _policy(errors, spec)
    mutations = spec.get("mutations")
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations or ()):
        expressions.mutation(errors, f"spec.mutations[{index}]", mutation, declared)
    checks.one_of(errors, "spec.reinvocationPolicy", spec.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    return errors


def _policy(errors: list[FieldError], spec: Obj) -> expressions.Declared:
    """Validate what both types of policies have; return the variables that their expressions may use."""
    checks.one_of(errors, "spec.failurePolicy", spec.get("failurePolicy"), _POLICIES)
    declared = expressions.Declared(spec)
    if spec.get("paramKind") is not None:
        _param_kind(errors, "spec.paramKind", spec["paramKind"])
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        _match_resources(errors, "spec.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    expressions.match_conditions(errors, "spec.matchConditions", spec.get("matchConditions"), declared)
    declared.check_variables(errors, "spec.variables", spec.get("variables") or [])
    return declared


def _param_kind(errors: list[FieldError], path: str, found: Obj) -> None:
    version, kind = found.get("apiVersion") or "", found.get("kind") or ""
    if not version:
        errors.append(required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, number = version.rpartition("/")
        if group:
            checks.add_invalid(errors, f"{path}.apiVersion", group, names.dns1123_subdomain(group))
        checks.add_invalid(errors, f"{path}.apiVersion", number, names.dns1035_label(number))
    if not kind:
        errors.append(required(f"{path}.kind"))
    else:
        wrong = names.dns1035_label(kind.lower())
        details = [f"may have mixed case, but should otherwise match: {', '.join(wrong)}"] if wrong else []
        checks.add_invalid(errors, f"{path}.kind", kind, details)


def _match_resources(errors: list[FieldError], path: str, found: Obj) -> None:
    if found.get("matchPolicy") is not None:
        checks.one_of(errors, f"{path}.matchPolicy", found["matchPolicy"], _MATCH_POLICIES)
    for key in ("namespaceSelector", "objectSelector"):
        checks.label_selector(errors, f"{path}.{key}", found.get(key))
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(found.get(key) or ()):
            _rule(errors, f"{path}.{key}[{index}]", rule)


def validate_binding(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.needed(errors, "spec.policyName", spec.get("policyName"))
    actions = spec.get("validationActions") or []
    if not actions:
        errors.append(required("spec.validationActions", "at least one validation action is required"))
    if "Deny" in actions and "Warn" in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid("spec.validationActions", actions, detail))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(f"spec.validationActions[{index}]", action, _ACTIONS))
        if action in actions[:index]:
            errors.append(duplicate(f"spec.validationActions[{index}]", action))
    _param_reference(errors, spec.get("paramRef"))
    return errors


def validate_mutating_binding(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.needed(errors, "spec.policyName", spec.get("policyName"))
    _param_reference(errors, spec.get("paramRef"))
    return errors


def _param_reference(errors: list[FieldError], reference: Obj | None) -> None:
    if reference is None:
        return
    if reference.get("name") and reference.get("selector") is not None:
        detail = "name and selector are mutually exclusive"
        errors.append(forbidden_field("spec.paramRef.name", detail))
    elif not reference.get("name") and reference.get("selector") is None:
        errors.append(required("spec.paramRef", "one of name or selector must be specified"))
    if reference.get("parameterNotFoundAction") not in ("Allow", "Deny"):
        action = reference.get("parameterNotFoundAction")
        if not action:
            errors.append(required("spec.paramRef.parameterNotFoundAction"))
        else:
            errors.append(not_supported("spec.paramRef.parameterNotFoundAction", action, ("Allow", "Deny")))


def _strategy(default: Callable[[Obj], None], validate: Callable[[Obj], list[FieldError]], content: str) -> Strategy:
    """`content` is the field whose changes count as generations."""
    return Strategy(
        default=default, validate=validate, generation=lambda obj: obj.get(content), unconditional_update=False
    )


MUTATING_WEBHOOKS = _strategy(default_mutating, validate_webhooks, "webhooks")
VALIDATING_WEBHOOKS = _strategy(default_validating, validate_webhooks, "webhooks")
VALIDATING_POLICY = _strategy(default_policy, validate_policy, "spec")
VALIDATING_BINDING = _strategy(default_binding, validate_binding, "spec")
MUTATING_POLICY = _strategy(default_policy, validate_mutating_policy, "spec")
MUTATING_BINDING = _strategy(default_binding, validate_mutating_binding, "spec")
