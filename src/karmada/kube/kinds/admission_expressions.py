"""CEL in webhook configurations and admission policies: compiled when it is written.

An expression that does not compile, or evaluates to another type than its field requires, is an invalid value. So
mistakes are reported when the policy is written, not by the next write that it matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from karmada.kube.schema.cel.admission import Environment
    from karmada.kube.schema.cel.types import Type

MOST_CONDITIONS = 64
MOST_ANNOTATIONS = 20
MOST_VARIABLES = 500
"""Each is compiled with the types of all before it."""
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_NOT_GIVEN = "expression is not specified"
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_PATCHES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


class Declared:
    """The variables that the expressions of one policy may refer to: each after it was declared."""

    def __init__(self, spec: Obj) -> None:
        self._params = spec.get("paramKind") is not None
        self._variables: dict[str, Type] = {}

    def environment(self, *, variables: bool = True) -> Environment:
        from karmada.kube.schema.cel.admission import environment

        return environment(params=self._params, variables=self._variables if variables else None)

    def check_variables(self, errors: list[FieldError], path: str, variables: list[Obj]) -> None:
        if len(variables) > MOST_VARIABLES:
            errors.append(too_many(path, len(variables), MOST_VARIABLES))
            return
        for index, variable in enumerate(variables):
            name, place = variable.get("name") or "", f"{path}[{index}]"
            if not name.strip():
                errors.append(required(f"{place}.name", "name is not specified"))
            elif not _is_identifier(name):
                errors.append(invalid(f"{place}.name", name, "name is not a valid CEL identifier"))
            expression = variable.get("expression") or ""
            if not expression.strip():
                errors.append(required(f"{place}.expression", _NOT_GIVEN))
            else:
                self._variables[name] = _compiled(errors, f"{place}.expression", expression, self.environment())


def _is_identifier(name: str) -> bool:
    from karmada.kube.schema.cel.syntax import RESERVED

    return _IDENTIFIER.fullmatch(name) is not None and name not in RESERVED | {"true", "false", "null", "in"}


def _compiled(errors: list[FieldError], path: str, expression: str, known: Environment) -> Type:
    """Return the type of a variable; unknown if it does not compile."""
    from karmada.kube.schema.cel import CompileError
    from karmada.kube.schema.cel.admission import result_type
    from karmada.kube.schema.cel.types import DYN

    try:
        return result_type(expression, known)
    except CompileError as error:
        errors.append(invalid(path, expression, f"compilation failed: {error}"))
        return DYN


def _check(
    errors: list[FieldError], path: str, expression: str, known: Environment, *wanted: Type, patches: bool = False
) -> None:
    from karmada.kube.schema.cel.admission import fault

    wrong = fault(expression, known, *wanted, patches=patches)
    if wrong:
        errors.append(invalid(path, expression, wrong))


def match_conditions(
    errors: list[FieldError], path: str, conditions: list[Obj] | None, declared: Declared | None = None
) -> None:
    """Validate the match conditions of webhooks, or (with what it declares) of a policy."""
    if not conditions:
        return
    from karmada.kube.schema.cel.types import BOOL

    if len(conditions) > MOST_CONDITIONS:
        errors.append(too_many(path, len(conditions), MOST_CONDITIONS))
    known = (declared or Declared({})).environment(variables=False)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        place, name = f"{path}[{index}]", condition.get("name") or ""
        expression = (condition.get("expression") or "").strip()
        if not expression:
            errors.append(required(f"{place}.expression"))
        else:
            _check(errors, f"{place}.expression", expression, known, BOOL)
        checks.named(errors, f"{place}.name", name, names.qualified_name)
        if name and name in seen:
            errors.append(duplicate(f"{place}.name", name))
        seen.add(name)


def validation(errors: list[FieldError], path: str, raw: Obj, declared: Declared) -> None:
    """Validate one validation of a ValidatingAdmissionPolicy."""
    from karmada.kube.schema.cel.types import BOOL, STRING

    known = declared.environment()
    expression, computed = raw.get("expression") or "", raw.get("messageExpression") or ""
    message = raw.get("message") or ""
    if not expression.strip():
        errors.append(required(f"{path}.expression", _NOT_GIVEN))
    else:
        _check(errors, f"{path}.expression", expression, known, BOOL)
    if computed and not computed.strip():
        errors.append(invalid(f"{path}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        _check(errors, f"{path}.messageExpression", computed, known, STRING)
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid(f"{path}.message", message, "message must not contain line breaks"))
    elif "\n" in expression.strip() and not message:
        detail = "message must be specified if expression contains line breaks"
        errors.append(required(f"{path}.message", detail))
    reason = raw.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(not_supported(f"{path}.reason", reason, _REASONS))


def audit_annotations(errors: list[FieldError], path: str, found: list[Obj], policy: str, declared: Declared) -> None:
    from karmada.kube.schema.cel.types import NULL, STRING

    if len(found) > MOST_ANNOTATIONS:
        detail = f"must not have more than {MOST_ANNOTATIONS} auditAnnotations"
        errors.append(invalid(path, found, detail))
    seen: set[str] = set()
    for index, annotation in enumerate(found):
        place, key = f"{path}[{index}]", annotation.get("key") or ""
        if policy:
            checks.add_invalid(errors, f"{place}.key", key, names.qualified_name(f"{policy}/{key}"))
        expression = annotation.get("valueExpression") or ""
        if not expression.strip():
            errors.append(required(f"{place}.valueExpression", "valueExpression is not specified"))
        else:
            _check(errors, f"{place}.valueExpression", expression, declared.environment(), STRING, NULL)
        if key in seen:
            errors.append(duplicate(f"{place}.key", key))
        seen.add(key)


def mutation(errors: list[FieldError], path: str, raw: Obj, declared: Declared) -> None:
    """Validate one mutation of a MutatingAdmissionPolicy: exactly the patch that its type names."""
    kind = raw.get("patchType")
    if not kind:
        errors.append(required(f"{path}.patchType"))
        return
    field = _PATCHES.get(kind)
    if field is None:
        errors.append(not_supported(f"{path}.patchType", kind, tuple(_PATCHES)))
        return
    given: Mapping[str, str] | None = raw.get(field)
    if given is None:
        errors.append(required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
    else:
        _patch_expression(errors, f"{path}.{field}.expression", given.get("expression") or "", kind, declared)
    for other in _PATCHES.values():
        if other != field and raw.get(other) is not None:
            detail = f"must not be specified when patchType is {kind}"
            errors.append(invalid(f"{path}.{other}", f"{{{other}}}", detail))


def _patch_expression(errors: list[FieldError], path: str, expression: str, kind: str, declared: Declared) -> None:
    from karmada.kube.schema.cel.admission import APPLY_CONFIGURATION, PATCHES

    if not expression.strip():
        errors.append(required(path, _NOT_GIVEN))
        return
    wanted = PATCHES if kind == "JSONPatch" else APPLY_CONFIGURATION
    _check(errors, path, expression, declared.environment(), wanted, patches=True)
