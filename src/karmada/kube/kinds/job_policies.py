"""Validation of what a Job does about pods that fail or succeed: its failure, success and replacement policies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from karmada.kube.objects.types import Obj

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES, _MOST_CODES = 20, 255
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")


def job_policies(errors: list[FieldError], path: str, spec: Obj) -> None:
    if spec.get("podFailurePolicy") is not None:
        _failure_policy(errors, f"{path}.podFailurePolicy.rules", spec)
    success = spec.get("successPolicy")
    if success is not None:
        if spec.get("completionMode") == "Indexed":
            _success_policy(errors, f"{path}.successPolicy.rules", success, spec.get("completions") or 0)
        else:
            errors.append(invalid(f"{path}.successPolicy", success, "requires indexed completion mode"))
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        allowed = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
        checks.one_of(errors, f"{path}.podReplacementPolicy", replacement, allowed)


def _supported(errors: list[FieldError], path: str, value: Any, allowed: Sequence[str]) -> None:
    if not value:
        listed = " ".join(f'"{text}"' for text in allowed)
        errors.append(required(path, f"valid values: [{listed}]"))
    elif value not in allowed:
        errors.append(not_supported(path, value, allowed))


# --- failures


def _failure_policy(errors: list[FieldError], path: str, spec: Obj) -> None:
    rules = spec["podFailurePolicy"].get("rules") or ()
    if len(rules) > _MOST_RULES:
        errors.append(too_many(path, len(rules), _MOST_RULES))
    pod = (spec.get("template") or {}).get("spec") or {}
    known = {one.get("name") for key in ("containers", "initContainers") for one in pod.get(key) or ()}
    for index, rule in enumerate(rules):
        _failure_rule(errors, f"{path}[{index}]", rule, spec, known)


def _failure_rule(errors: list[FieldError], path: str, rule: Obj, spec: Obj, known: set[Any]) -> None:
    action = rule.get("action")
    _supported(errors, f"{path}.action", action, _ACTIONS)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        _exit_codes(errors, f"{path}.onExitCodes", codes, known)
    if len(conditions) > _MOST_RULES:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), _MOST_RULES))
    for index, condition in enumerate(conditions):
        place, kind = f"{path}.onPodConditions[{index}]", condition.get("type") or ""
        checks.add_invalid(errors, f"{place}.type", kind, names.qualified_name(kind))
        _supported(errors, f"{place}.status", condition.get("status"), _STATUSES)
    if (codes is not None) == bool(conditions):
        which = "both OnExitCodes and OnPodConditions is not supported"
        detail = which if conditions else "one of OnExitCodes and OnPodConditions is required"
        errors.append(FieldError(path, "FieldValueInvalid", f"Invalid value: specifying {detail}"))


def _exit_codes(errors: list[FieldError], path: str, rule: Obj, known: set[Any]) -> None:
    operator, container = rule.get("operator"), rule.get("containerName")
    _supported(errors, f"{path}.operator", operator, _OPERATORS)
    if container is not None and container not in known:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, detail))
    values = rule.get("values") or []
    if not values:
        errors.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _MOST_CODES:
        errors.append(too_many(f"{path}.values", len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", 0, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if any(before > after for before, after in itertools.pairwise(values)):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))


# --- successes


def _success_policy(errors: list[FieldError], path: str, policy: Obj, completions: int) -> None:
    rules = policy.get("rules") or ()
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(path, detail))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(path, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        _success_rule(errors, f"{path}[{index}]", rule, completions)


def _success_rule(errors: list[FieldError], path: str, rule: Obj, completions: int) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, detail))
    total = completions
    if indexes is not None:
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            detail = f"error parsing succeededIndexes: {error}"
            errors.append(invalid(f"{path}.succeededIndexes", indexes, detail))
    if count is None:
        return
    place = f"{path}.succeededCount"
    checks.positive(errors, path, rule, "succeededCount")
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(place, count, detail))
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        errors.append(invalid(place, count, detail))


def count_indexes(text: str, completions: int) -> int:
    """Return how many indexes "1,3-5,7" names; ValueError unless they grow and are below the completions."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if len(limits) > 2:
            raise ValueError(
                f'the fragment "{part}" violates the requirement that an index interval can have at most two parts '
                "separated by '-'"
            )
        first = last
        for limit in limits:
            if not limit.isascii() or not limit.isdigit():
                raise ValueError(f'cannot convert string to integer for index: "{limit}"')
            if int(limit) >= completions:
                raise ValueError(f'too large index: "{limit}"')
            if int(limit) <= last:
                raise ValueError(f"non-increasing order, previous: {last}, current: {int(limit)}")
            first, last = last, int(limit)
        total += 1 if len(limits) == 1 else last - first + 1
    return total
