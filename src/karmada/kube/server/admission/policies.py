"""ValidatingAdmissionPolicies: rules in CEL that a write must fulfil, put into force by bindings.

A policy has the rules; a binding has the actions on a violation: Deny refuses the write, Warn warns the client, Audit
annotates the audit event. Whether an expression that cannot be evaluated is a violation is up to the failurePolicy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.conditions import EvaluationFailed, Expression
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import GROUP
from karmada.kube.server.admission.policy_plugin import (
    Bound,
    Misconfigured,
    Policy,
    PolicyPlugin,
    Scope,
    refusal,
    with_variables,
)

POLICIES = GroupResource(GROUP, "validatingadmissionpolicies")
BINDINGS = GroupResource(GROUP, "validatingadmissionpolicybindings")
_AUDIT = "validation.policy.admission.k8s.io/validation_failure"


class _Violation(NamedTuple):
    message: str
    reason: str = "Invalid"
    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    expression: Expression
    message: str
    computed: Expression | None
    reason: str

    @classmethod
    def of(cls, raw: Obj, scope: Scope) -> Validation:
        computed = (raw.get("messageExpression") or "").strip()
        return cls(
            scope.expression((raw.get("expression") or "").strip()),
            (raw.get("message") or "").strip(),
            scope.expression(computed) if computed else None,
            raw.get("reason") or "Invalid",
        )

    def violation(self, bindings: dict[str, Any], number: int) -> _Violation | None:
        """Return None if it holds; raises EvaluationFailed."""
        if self.expression.evaluate(bindings) is True:
            return None
        text = self._computed(bindings) or self.message or f"failed expression: {self.expression.text}"
        return _Violation(text, self.reason, number)

    def _computed(self, bindings: dict[str, Any]) -> str:
        if self.computed is None:
            return ""
        try:
            text = self.computed.evaluate(bindings)
        except EvaluationFailed:
            return ""  # the fixed message does as well
        return text.strip() if isinstance(text, str) and "\n" not in text else ""


@dataclass(frozen=True, slots=True, eq=False)
class AuditAnnotation:
    key: str
    value: Expression

    def text(self, bindings: dict[str, Any]) -> str:
        """Return the value of the annotation; "" for none."""
        value = self.value.evaluate(bindings)
        return value.strip() if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, eq=False)
class ValidatingPolicy(Policy):
    validations: tuple[Validation, ...]
    annotations: tuple[AuditAnnotation, ...]

    @staticmethod
    def actions(name: str, spec: Obj, scope: Scope) -> dict[str, Any]:
        return {
            "validations": tuple(Validation.of(raw, scope) for raw in spec.get("validations") or ()),
            "annotations": tuple(
                AuditAnnotation(f"{name}/{raw['key']}", scope.expression(raw["valueExpression"]))
                for raw in spec.get("auditAnnotations") or ()
            ),
        }


class ValidatingPolicies(PolicyPlugin[ValidatingPolicy]):
    name = "ValidatingAdmissionPolicy"
    policies, bindings, policy = POLICIES, BINDINGS, ValidatingPolicy

    async def validate(self, attributes: Attributes) -> None:
        refusals: list[Forbidden] = []
        for bound in self._concerned(attributes):
            if not self._selected(bound, attributes):
                continue
            for violation in await self._violations(bound, attributes):
                _act(bound, attributes, violation, refusals)
        if refusals:
            raise refusals[0]

    async def _violations(self, bound: Bound[ValidatingPolicy], attributes: Attributes) -> list[_Violation]:
        policy = bound.policy
        try:
            parameters = await self._parameters(bound, attributes)
        except Misconfigured as error:
            return [] if policy.fail_open else [_Violation(f"failed to configure binding: {error}")]
        values = await self._values(bound, attributes)
        found: list[_Violation] = []
        for parameter in parameters:
            found += _judge(policy, {**values, "params": parameter}, attributes)
        return found


def _judge(policy: ValidatingPolicy, values: dict[str, Any], attributes: Attributes) -> list[_Violation]:
    found: list[_Violation] = []

    def failed(error: EvaluationFailed, number: int = 0) -> None:
        if not policy.fail_open:
            found.append(_Violation(str(error), number=number))

    try:
        if not policy.conditions.hold(values):
            return []
    except EvaluationFailed as error:
        failed(error)
        return found
    bindings = with_variables(policy.variables, values)
    for number, validation in enumerate(policy.validations):
        try:
            violation = validation.violation(bindings, number)
        except EvaluationFailed as error:
            failed(error, number)
            continue
        if violation is not None:
            found.append(violation)
    for annotation in policy.annotations:
        try:
            text = annotation.text(bindings)
        except EvaluationFailed as error:
            failed(error)
            continue
        if text:
            attributes.annotations[annotation.key] = text
    return found


def _act(
    bound: Bound[ValidatingPolicy], attributes: Attributes, violation: _Violation, refusals: list[Forbidden]
) -> None:
    policy, binding = bound.policy.name, bound.binding
    if "Deny" in binding.actions:
        text = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}' denied request: {violation.message}"
        refusals.append(refusal(attributes, text, violation.reason))
    if "Warn" in binding.actions:
        text = f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}': "
        text += violation.message
        attributes.warnings.append(text)
    if "Audit" in binding.actions:
        _audit(bound, attributes, violation)


def _audit(bound: Bound[ValidatingPolicy], attributes: Attributes, violation: _Violation) -> None:
    said = orjson.loads(attributes.annotations.get(_AUDIT, "[]"))
    said.append(
        {
            "message": violation.message,
            "policy": bound.policy.name,
            "binding": bound.binding.name,
            "expressionIndex": violation.number,
            "validationActions": sorted(bound.binding.actions),
        }
    )
    attributes.annotations[_AUDIT] = orjson.dumps(said).decode()
