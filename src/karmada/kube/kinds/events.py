"""Events: one storage (core v1), two APIs. events.k8s.io/v1 renames fields and requires more on creation."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds import checks
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, required
from karmada.kube.objects.types import Obj

_CORE_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_NEW_TO_CORE = {new: core for core, new in _CORE_TO_NEW.items()}
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_NO_MATCH = "does not match event.namespace"
_MAX_TEXT, _MAX_MESSAGE = 128, 1024
_DEPRECATED_FIELDS = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")
_NEW_IMMUTABLE = (
    "regarding", "reason", "note", "action", "related", "reportingController", "reportingInstance", "type", "eventTime",
    *_DEPRECATED_FIELDS,
)  # fmt: skip


def to_core(obj: Obj) -> Obj:
    """Return an events.k8s.io/v1 Event as it is stored."""
    new = _renamed(obj, _NEW_TO_CORE, "v1")
    for key in ("reportingComponent", "reportingInstance"):
        new.setdefault(key, "")
    for key in ("involvedObject", "source"):
        new.setdefault(key, {})
    return new


def from_core(obj: Obj) -> Obj:
    """Return a stored Event as events.k8s.io/v1 shows it."""
    new = _renamed(obj, _CORE_TO_NEW, "events.k8s.io/v1")
    for key in ("reportingController", "reportingInstance"):
        if not new.get(key):
            new.pop(key, None)
    return new


def _renamed(obj: Obj, names_: dict[str, str], api_version: str) -> Obj:
    new: Obj = {names_.get(key, key): copy_json(value) for key, value in obj.items()}
    new["apiVersion"] = api_version
    return new


def default_core(obj: Obj) -> None:
    for key in ("reportingComponent", "reportingInstance"):
        if obj.get(key) is None:
            obj[key] = ""


def validate_core(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    involved = (obj.get("involvedObject") or {}).get("namespace") or ""
    namespace = obj["metadata"].get("namespace") or ""
    if not obj.get("eventTime"):
        fits = namespace in ("", "default") if not involved else namespace == involved
        if not fits:
            errors.append(invalid("involvedObject.namespace", involved, _NO_MATCH))
        return errors
    if (not involved and namespace not in ("default", "kube-system")) or (involved and namespace != involved):
        errors.append(invalid("involvedObject.namespace", involved, _NO_MATCH))
    _new_style(errors, obj, "reportingComponent", "message")
    return errors


def _new_style(errors: list[FieldError], obj: Obj, controller: str, message: str) -> None:
    """Validate what every event with an eventTime must have."""
    checks.named(errors, controller, obj.get(controller), names.qualified_name)
    for key in ("reportingInstance", "action", "reason"):
        if not obj.get(key):
            errors.append(required(key))
        elif len(obj[key]) > _MAX_TEXT:
            errors.append(invalid(key, "", f"can have at most {_MAX_TEXT} characters"))
    if len(obj.get(message) or "") > _MAX_MESSAGE:
        errors.append(invalid(message, "", f"can have at most {_MAX_MESSAGE} characters"))


def validate_new(obj: Obj) -> list[FieldError]:
    """events.k8s.io/v1; what an event written through core lacks stays acceptable on update."""
    errors = FieldErrors()
    if not obj.get("eventTime"):
        return errors
    regarding = (obj.get("regarding") or {}).get("namespace") or ""
    namespace = obj["metadata"].get("namespace") or ""
    if (not regarding and namespace not in ("default", "kube-system")) or (regarding and namespace != regarding):
        errors.append(invalid("involvedObject.namespace", regarding, _NO_MATCH))
    _new_style(errors, obj, "reportingController", "note")
    if obj.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {obj.get('type') or ''}"))
    series = obj.get("series")
    if series is not None:
        if (series.get("count") or 0) < 2:
            errors.append(invalid("series.count", "", "should be at least 2"))
        checks.needed(errors, "series.lastObservedTime", series.get("lastObservedTime"))
    return errors


def _validate_new_create(obj: Obj) -> list[FieldError]:
    errors = validate_new(obj)
    if not obj.get("eventTime") and not any(obj.get(key) for key in _DEPRECATED_FIELDS):
        errors.insert(0, required("eventTime"))
    return errors


def update_new(obj: Obj, old: Obj) -> list[FieldError]:
    """Only the series may move on."""
    errors = FieldErrors()
    checks.keys_unchanged(errors, "", obj, old, _NEW_IMMUTABLE)
    return errors


def _reference(holder: str) -> dict[str, Callable[[Obj], str]]:
    def getter(key: str) -> Callable[[Obj], str]:
        return lambda obj: (obj.get(holder) or {}).get(key) or ""

    return {f"{holder}.{key}": getter(key) for key in _REFERENCE}


def _text(key: str) -> Callable[[Obj], str]:
    return lambda obj: obj.get(key) or ""


def _source(obj: Obj) -> str:
    """Return the component that reports, by its old name or its new one."""
    return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""


EVENT = Strategy(
    default=default_core,
    validate=validate_core,
    create_on_update=True,
    seldom_read=True,
    fields={
        **_reference("involvedObject"),
        "reason": _text("reason"),
        "reportingComponent": _text("reportingComponent"),
        "source": _source,
        "type": _text("type"),
    },
)
EVENT_V1 = Strategy(
    validate=_validate_new_create,
    validate_update=update_new,
    create_on_update=True,
    fields={
        **_reference("regarding"),
        "reason": _text("reason"),
        "reportingController": _text("reportingController"),
        "type": _text("type"),
    },
)
