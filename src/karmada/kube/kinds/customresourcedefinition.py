"""CustomResourceDefinition: defaults, validation, and the finalizer that keeps it until its objects are deleted.

An update validates only the schemas it changed (see definition_schemas), which also keeps definitions valid that were
accepted under laxer rules. Definitions are served by kube/server/crds.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from karmada.kube.kinds.definition_schemas import compile_error, schema_errors
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import meta, names
from karmada.kube.objects.errors import (
    FieldError,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
APPROVED_ANNOTATION = "api-approved.kubernetes.io"
_APPROVAL_HELP = "see https://github.com/kubernetes/enhancements/pull/1111"
_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
IMMUTABLE = "field is immutable"


def storage_version(crd: Obj) -> str:
    for version in (crd.get("spec") or {}).get("versions") or ():
        if version.get("storage"):
            return str(version.get("name") or "")
    return ""


# Defaults and preparation.


def default(crd: Obj) -> None:
    """In place."""
    spec = crd.setdefault("spec", {})
    given = spec.setdefault("names", {})
    kind = given.get("kind") or ""
    if kind:
        given["singular"] = given.get("singular") or kind.lower()
        given["listKind"] = given.get("listKind") or kind + "List"
    conversion = spec.get("conversion")
    if not conversion:
        conversion = spec["conversion"] = {}
    if not conversion.get("strategy"):
        conversion["strategy"] = "None"
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None and not service.get("port"):
        service["port"] = 443


def _prepare_create(crd: Obj) -> None:
    stored = storage_version(crd)
    crd["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [stored] if stored else None,
    }


def _prepare_update(crd: Obj, _old: Obj) -> None:
    """Record the storage version in status.storedVersions, for as long as objects may exist in it."""
    stored = storage_version(crd)
    status = crd.get("status") or {}
    known = status.get("storedVersions") or []
    if stored and stored not in known:
        crd["status"] = {**status, "storedVersions": [*known, stored]}


def _begins_deletion(crd: Obj) -> bool:
    return "deletionTimestamp" not in crd["metadata"]


def _mark_deleting(crd: Obj) -> None:
    """In place: the definition stays until its objects are gone."""
    metadata = crd["metadata"]
    if CLEANUP_FINALIZER not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP_FINALIZER]
    status = crd.setdefault("status", {})
    if meta.has_condition(status.get("conditions"), "Terminating"):
        return
    condition = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    now = parse_time(metadata["deletionTimestamp"])
    status["conditions"] = meta.set_condition(status.get("conditions"), condition, now)


# Validation.


def validate(crd: Obj, old: Obj | None = None) -> list[FieldError]:
    """Return the errors of a definition; schemas equal to those of `old` are not validated again."""
    spec = crd.get("spec") or {}
    named = [] if old is not None else _name_errors(crd, spec)  # neither the name nor what it must match changes
    errors = [*named, *_approval_errors(crd, spec), *_spec_errors(spec)]
    known = {v.get("name"): v for v in ((old or {}).get("spec") or {}).get("versions") or ()}
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        errors.extend(_deprecation_errors(version, f"spec.versions[{index}]"))
    for path, version in _places(versions, "subresources", "spec"):
        errors.extend(_subresource_errors(version, path))
    for path, version in _places(versions, "additionalPrinterColumns", "spec"):
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            errors.extend(_column_errors(column, f"{path}.additionalPrinterColumns[{index}]"))
    for path, version in _places(versions, "schema", "spec.validation"):
        before = known.get(version.get("name"))
        if before is None or any(before.get(key) != version.get(key) for key in ("schema", "selectableFields")):
            at = path if path == "spec.validation" else f"{path}.schema"
            errors.extend(schema_errors(version, f"{at}.openAPIV3Schema", path.removesuffix(".validation")))
    errors.extend(_stored_errors(crd))
    return errors


def _places(versions: list[Obj], key: str, together: str) -> list[tuple[str, Obj]]:
    """Return the path of errors in a field of the versions: the top-level field if all have the same, else each."""
    if versions and versions[0].get(key) and all(version.get(key) == versions[0][key] for version in versions):
        return [(together, versions[0])]
    return [(f"spec.versions[{index}]", version) for index, version in enumerate(versions)]


def _validate_changed(crd: Obj, old: Obj) -> list[FieldError]:
    return validate(crd, old)


def _name_errors(crd: Obj, spec: Obj) -> Iterator[FieldError]:
    name = crd["metadata"].get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if name != wanted:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def is_protected(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(crd: Obj) -> tuple[str, str]:
    """Return the reason and message of the KubernetesAPIApprovalPolicyConformant condition of a protected group."""
    value = meta.annotations(crd).get(APPROVED_ANNOTATION) or ""
    if not value:
        text = f'protected groups must have approval annotation "{APPROVED_ANNOTATION}", {_APPROVAL_HELP}'
        return "MissingAnnotation", text
    if value.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{value}"'
    try:
        url = urlsplit(value)
        if url.scheme and url.netloc:
            return "ApprovedAnnotation", f"approved in {value}"
    except ValueError:
        pass
    text = (
        f'protected groups must have approval annotation "{APPROVED_ANNOTATION}" '
        f'with either a URL or a reason starting with "unapproved", {_APPROVAL_HELP}'
    )
    return "InvalidAnnotation", text


def _approval_errors(crd: Obj, spec: Obj) -> Iterator[FieldError]:
    if not is_protected(spec.get("group") or ""):
        return
    path = f"metadata.annotations[{APPROVED_ANNOTATION}]"
    reason, message = approval(crd)
    if reason == "MissingAnnotation":
        yield required(path, message)
    elif reason == "InvalidAnnotation":
        yield invalid(path, meta.annotations(crd).get(APPROVED_ANNOTATION), message)


def _spec_errors(spec: Obj) -> Iterator[FieldError]:
    group = spec.get("group") or ""
    if not group:
        yield required("spec.group")
    else:
        for text in names.dns1123_subdomain(group):
            yield invalid("spec.group", group, text)
        if "." not in group:
            yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)
    if spec.get("preserveUnknownFields"):
        message = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, message)
    yield from _versions_errors(spec.get("versions") or [])
    yield from names_errors(spec.get("names") or {})
    yield from _conversion_errors(spec.get("conversion") or {})


def _versions_errors(versions: list[Obj]) -> Iterator[FieldError]:
    given = [version.get("name") or "" for version in versions]
    for index, name in enumerate(given):
        for text in names.dns1035_label(name):
            yield invalid(f"spec.versions[{index}].name", name, text)
    if len(set(given)) != len(given):
        yield invalid("spec.versions", given, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", given, "must have exactly one version marked as storage version")


def names_errors(given: Obj) -> Iterator[FieldError]:
    for key in ("plural", "singular"):
        value = given.get(key) or ""
        if not value:
            yield required(f"spec.names.{key}")
        else:
            for text in names.dns1035_label(value):
                yield invalid(f"spec.names.{key}", value, text)
    for key in ("kind", "listKind"):
        value = given.get(key) or ""
        if not value:
            yield required(f"spec.names.{key}")
        else:
            for text in names.dns1035_label(value.lower()):
                yield invalid(f"spec.names.{key}", value, f"may have mixed case, but should otherwise match: {text}")
    for key in ("shortNames", "categories"):
        for index, value in enumerate(given.get(key) or ()):
            for text in names.dns1035_label(value):
                yield invalid(f"spec.names.{key}[{index}]", value, text)
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        yield invalid("spec.names.listKind", given["listKind"], "kind and listKind may not be the same")


def _conversion_errors(conversion: Obj) -> Iterator[FieldError]:
    path = "spec.conversion"
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook")
    if strategy not in ("None", "Webhook"):
        yield not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
        return
    if strategy == "None":
        if webhook:
            yield forbidden_field(f"{path}.webhook", "should not be set when strategy is not set to Webhook")
        return
    if not webhook or not webhook.get("clientConfig"):
        yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from _client_errors(webhook["clientConfig"], f"{path}.webhookClientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    at = f"{path}.conversionReviewVersions"
    if not versions:
        yield required(at)
    elif not {"v1", "v1beta1"} & set(versions):
        yield invalid(at, versions, "must include at least one of v1, v1beta1")
    if len(set(versions)) != len(versions):
        yield invalid(at, versions, "must contain unique versions")


def _client_errors(client: Obj, path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    if service is None:
        yield from _url_errors(url or "", f"{path}.url")
        return
    for key in ("name", "namespace"):
        if not service.get(key):
            yield required(f"{path}.service.{key}", f"service {key} is required")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")


def _url_errors(url: str, path: str) -> Iterator[FieldError]:
    form = "desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}; {form}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme; {form}")
    if not parts.netloc:
        yield invalid(path, parts.netloc, f"host must be specified; {form}")
    if "@" in parts.netloc:
        yield invalid(path, parts.netloc, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _deprecation_errors(version: Obj, path: str) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        yield invalid(f"{path}.deprecationWarning", warning, "can only be set for deprecated versions")
    if warning is not None and len(warning) > 256:
        yield invalid(f"{path}.deprecationWarning", warning, "must be <= 256 characters long")


def _subresource_errors(version: Obj, path: str) -> Iterator[FieldError]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from _scale_errors(scale, f"{path}.subresources.scale")


def _scale_errors(scale: Obj, path: str) -> Iterator[FieldError]:
    rules = (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    )
    for key, roots, message in rules:
        value = scale.get(key)
        if not value:
            if key != "labelSelectorPath":
                yield required(f"{path}.{key}")
            continue
        if "[" in value or compile_error(value):
            yield invalid(f"{path}.{key}", value, "is not a valid json path: it must be a path of plain fields")
        elif not value.startswith(roots):
            yield invalid(f"{path}.{key}", value, message)


def _column_errors(column: Obj, path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    kind = column.get("type")
    allowed = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield required(f"{path}.type", allowed)
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, allowed)
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
    json_path = column.get("jsonPath")
    if not json_path:
        yield required(f"{path}.jsonPath")
    elif error := compile_error(json_path):
        yield invalid(f"{path}.jsonPath", json_path, error)


def _stored_errors(crd: Obj) -> Iterator[FieldError]:
    """Yield the errors of versions that are gone although objects may be stored in them."""
    status = crd.get("status") or {}
    if "storedVersions" not in status:
        return
    stored = status["storedVersions"]
    if not stored:
        yield invalid("status.storedVersions", stored, "must have at least one stored version")
        return
    existing = {version.get("name") for version in crd["spec"].get("versions") or ()}
    for index, name in enumerate(stored):
        if name not in existing:
            message = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} "
                f"and removes {name} from status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{index}]", name, message)
    for version in crd["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            yield invalid("status.storedVersions", stored, f"must have the storage version {version.get('name')}")


def validate_update(crd: Obj, old: Obj) -> list[FieldError]:
    """Once a definition is established, names and scope are immutable."""
    if not meta.has_condition((old.get("status") or {}).get("conditions"), "Established"):
        return []
    new_spec, old_spec = crd["spec"], old["spec"]
    pairs = [
        ("spec.group", new_spec.get("group"), old_spec.get("group")),
        ("spec.scope", new_spec.get("scope"), old_spec.get("scope")),
        ("spec.names.kind", new_spec["names"].get("kind"), old_spec["names"].get("kind")),
        ("spec.names.plural", new_spec["names"].get("plural"), old_spec["names"].get("plural")),
    ]
    return [invalid(path, value, IMMUTABLE) for path, value, before in pairs if value != before]


def validate_status(crd: Obj, _old: Obj) -> list[FieldError]:
    return list(_stored_errors({**crd, "status": {"storedVersions": [], **(crd.get("status") or {})}}))


CUSTOM_RESOURCE_DEFINITION = Strategy(
    default=default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=validate,
    validate_ratcheting=_validate_changed,
    validate_update=validate_update,
    validate_status=validate_status,
    generation=lambda crd: crd.get("spec"),
    deleting=_begins_deletion,
    mark_deleting=_mark_deleting,
    unconditional_update=False,
)
STRATEGIES: dict[str, Strategy] = {"CustomResourceDefinition": CUSTOM_RESOURCE_DEFINITION}
