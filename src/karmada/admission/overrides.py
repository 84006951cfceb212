"""OverridePolicy and ClusterOverridePolicy.

A single rule can stand in the spec itself (targetCluster, overriders), which is an older form: it is accepted but not
looked into, and excludes overrideRules. Only an OverridePolicy is filled in and tidied up; a ClusterOverridePolicy
stays as it was written, so there an empty overrideRules counts as given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from karmada.admission.affinity import check_affinity
from karmada.admission.context import Context
from karmada.admission.limits import size_errors
from karmada.admission.selectors import check_namespace, fill_namespace
from karmada.admission.tidying import AFFINITY, SELECTOR, drop_empty
from karmada.kube.kinds import checks
from karmada.kube.kinds.metadata import annotation_errors
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, required
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.types import Obj
from karmada.overrides.identity import fixed_field_of, group_kind_of

_COUNTED = (
    "plaintext", "imageOverrider", "commandOverrider", "argsOverrider", "labelsOverrider", "annotationsOverrider",
    "replicasOverrider", "resourcesOverrider",
)  # fmt: skip
"""The overriders that make a spec non-empty; fieldOverrider is not among them."""
_LISTS = frozenset((*_COUNTED, "fieldOverrider", "json", "yaml", "overrideRules", "resourceSelectors"))
_POINTER = 'JSON pointer must be empty or start with a "/"'


def mutate(policy: Obj, _old: Obj | None, context: Context) -> None:
    spec = policy.get("spec")
    if spec is None:
        return
    fill_namespace(spec, context.namespace)
    spec.setdefault("overriders", {})
    _tidy(spec)


def _tidy(spec: Obj) -> None:
    """Values of overriders are the user's own and are left alone, whatever their fields are called."""
    for selector in spec.get("resourceSelectors") or ():
        drop_empty(selector, AFFINITY | SELECTOR)
    rules = spec.get("overrideRules") or []
    for rule in (spec, *rules):
        drop_empty(rule.get("targetCluster"), AFFINITY)
        overriders = rule.get("overriders")
        for holder in (overriders, *((overriders or {}).get("fieldOverrider") or ())):
            _drop_lists(holder)
    _drop_lists(spec)


def _drop_lists(holder: Any) -> None:
    for key in [key for key, value in (holder or {}).items() if not value and key in _LISTS]:
        del holder[key]


def validate(policy: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    """OverridePolicy; one of an earlier version may change in all but its spec."""
    named = (
        [] if old is not None and old.get("spec") == policy["spec"] else policy["spec"].get("resourceSelectors") or []
    )
    errors = _validate(policy["spec"], namespaced=True, kinds=[group_kind_of(selector) for selector in named])
    check_namespace(errors, policy["spec"], policy["metadata"].get("namespace") or "")
    return errors or size_errors(policy, old)


def validate_cluster_wide(policy: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    """ClusterOverridePolicy."""
    return _validate(policy["spec"], namespaced=False) or size_errors(policy, old)


def _validate(spec: Obj, *, namespaced: bool, kinds: Sequence[GroupKind] = ()) -> list[FieldError]:
    errors = FieldErrors()
    target, overriders, rules = spec.get("targetCluster"), spec.get("overriders") or {}, spec.get("overrideRules")
    check_affinity(errors, "spec.targetCluster", target)
    if rules is not None:
        if target is not None:
            errors.append(invalid("spec.targetCluster", target, "overrideRules and targetCluster can't co-exist"))
        if any(overriders.get(key) for key in _COUNTED):
            errors.append(invalid("spec.overriders", overriders, "overrideRules and overriders can't co-exist"))
    for index, rule in enumerate(rules or ()):
        path = f"spec.overrideRules[{index}]"
        _overriders(errors, f"{path}.overriders", rule.get("overriders") or {})
        check_affinity(errors, f"{path}.targetCluster", rule.get("targetCluster"))
        _fixed(errors, f"{path}.overriders", rule.get("overriders") or {}, namespaced=namespaced, kinds=kinds)
    _fixed(errors, "spec.overriders", overriders, namespaced=namespaced, kinds=kinds)
    return errors


def _fixed(
    errors: list[FieldError], path: str, overriders: Obj, *, namespaced: bool, kinds: Sequence[GroupKind]
) -> None:
    """Refuse every pointer at a field that no override may change."""
    for place, pointer in _pointers(overriders):
        field = fixed_field_of(pointer, namespaced=namespaced, kinds=kinds)
        if field:
            errors.append(invalid(f"{path}.{place}", pointer, f"an override policy must not change {field}"))


def _pointers(overriders: Obj) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointers of all overriders, with their places in the policy."""
    for index, item in enumerate(overriders.get("plaintext") or ()):
        yield f"plaintext[{index}].path", item.get("path") or ""
    for index, item in enumerate(overriders.get("fieldOverrider") or ()):
        if item.get("fieldPath"):
            yield f"fieldOverrider[{index}].fieldPath", item["fieldPath"]
    for index, item in enumerate(overriders.get("imageOverrider") or ()):
        if (item.get("predicate") or {}).get("path"):
            yield f"imageOverrider[{index}].predicate.path", item["predicate"]["path"]


_Check = Callable[[list[FieldError], str, Obj], None]


def _annotations(errors: list[FieldError], path: str, overrider: Obj) -> None:
    annotation_errors(errors, overrider.get("value") or {}, f"{path}.value")


def _labels(errors: list[FieldError], path: str, overrider: Obj) -> None:
    checks.labels(errors, f"{path}.value", overrider.get("value"))


def _image(errors: list[FieldError], path: str, overrider: Obj) -> None:
    predicate = overrider.get("predicate")
    if predicate is not None:
        _pointer(errors, f"{path}.predicate.path", predicate.get("path") or "")


def _field(errors: list[FieldError], path: str, overrider: Obj) -> None:
    json, yaml = overrider.get("json") or [], overrider.get("yaml") or []
    if json and yaml:
        detail = "FieldOverrider has both YAML and JSON set. Only one is allowed"
        errors.append(invalid(path, overrider, detail))
    if not json and not yaml:
        errors.append(required(path, "FieldOverrider must have either JSON or YAML set"))
    _pointer(errors, f"{path}.fieldPath", overrider.get("fieldPath") or "")
    for name, patches in (("json", json), ("yaml", yaml)):
        for index, patch in enumerate(patches):
            _patch(errors, f"{path}.{name}[{index}]", patch)


def _patch(errors: list[FieldError], path: str, patch: Obj) -> None:
    _pointer(errors, f"{path}.subPath", patch.get("subPath") or "")
    operator, value = patch.get("operator"), patch.get("value")
    if operator in ("add", "replace") and value is None:
        errors.append(invalid(f"{path}.value", value, "value is required for add or replace operation"))
    if operator == "remove" and value is not None:
        errors.append(invalid(f"{path}.value", value, "value is not allowed for remove operation"))


def _replicas(errors: list[FieldError], path: str, overrider: Obj) -> None:
    checks.non_negative(errors, path, overrider, "value")


def _resources(errors: list[FieldError], path: str, overrider: Obj) -> None:
    checks.needed(errors, f"{path}.containerName", overrider.get("containerName"))
    for part, amounts in (overrider.get("value") or {}).items():
        for name, amount in (amounts or {}).items():
            checks.resource_amount(errors, f"{path}.value.{part}[{name}]", amount)


_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("annotationsOverrider", _annotations),
    ("labelsOverrider", _labels),
    ("imageOverrider", _image),
    ("fieldOverrider", _field),
    ("replicasOverrider", _replicas),
    ("resourcesOverrider", _resources),
)


def _overriders(errors: list[FieldError], path: str, overriders: Obj) -> None:
    for name, check in _CHECKS:
        for index, overrider in enumerate(overriders.get(name) or ()):
            check(errors, f"{path}.{name}[{index}]", overrider)


def _pointer(errors: list[FieldError], path: str, text: str) -> None:
    """Only the first character is checked; escapes are checked when the pointer is applied."""
    if text and not text.startswith("/"):
        errors.append(invalid(path, text, _POINTER))
