"""ValidatingAdmissionPolicies: rules in CEL that a write must fulfil, put into force by bindings.

A policy says what it is about and what must hold; a binding says where it applies, with which parameters, and what
becomes of a violation: the write is refused or the client is warned. A policy with parameters is judged once for each
of them. An expression that cannot be evaluated violates the policy or does not, as its failurePolicy says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.conditions import POLICY, Conditions, EvaluationFailed, Expression, bindings_of
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import GROUP, NAMESPACES, Criteria, Request, exempt
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse
from karmada.kube.server.admission.review import admission_request, shown
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.handlers.versions import Versions
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.derived import Followed

POLICIES = GroupResource(GROUP, "validatingadmissionpolicies")
BINDINGS = GroupResource(GROUP, "validatingadmissionpolicybindings")
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_DEFAULT_CODE = 422
_versions = Versions()


class _Misconfigured(Exception):
    """A binding whose parameters cannot be had."""


class _Violation(NamedTuple):
    message: str
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    expression: Expression
    message: str
    computed: Expression | None
    reason: str

    @classmethod
    def of(cls, raw: Obj) -> Validation:
        computed = (raw.get("messageExpression") or "").strip()
        return cls(
            Expression((raw.get("expression") or "").strip(), POLICY),
            (raw.get("message") or "").strip(),
            Expression(computed, POLICY) if computed else None,
            raw.get("reason") or "Invalid",
        )

    def violation(self, bindings: dict[str, Any]) -> _Violation | None:
        """None if it holds; raises EvaluationFailed."""
        if self.expression.evaluate(bindings) is True:
            return None
        text = self._computed(bindings) or self.message or f"failed expression: {self.expression.text}"
        return _Violation(text, self.reason)

    def _computed(self, bindings: dict[str, Any]) -> str:
        if self.computed is None:
            return ""
        try:
            text = self.computed.evaluate(bindings)
        except EvaluationFailed:
            return ""  # the fixed message does as well
        return text.strip() if isinstance(text, str) and "\n" not in text else ""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    name: str
    criteria: Criteria
    conditions: Conditions
    variables: tuple[tuple[str, Expression], ...]
    validations: tuple[Validation, ...]
    parameters: GVK | None
    fail_open: bool

    @classmethod
    def of(cls, raw: Obj) -> Policy:
        spec = raw.get("spec") or {}
        kind = spec.get("paramKind")
        return cls(
            raw["metadata"]["name"],
            Criteria.of(spec.get("matchConstraints") or {}, "resourceRules"),
            Conditions.of(spec.get("matchConditions"), POLICY),
            tuple((v["name"], Expression(v["expression"], POLICY)) for v in spec.get("variables") or ()),
            tuple(Validation.of(v) for v in spec.get("validations") or ()),
            GVK.parse(kind.get("apiVersion") or "", kind.get("kind") or "") if kind else None,
            spec.get("failurePolicy") == "Ignore",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    name: str
    policy: str
    criteria: Criteria
    parameter: Obj | None
    actions: frozenset[str]

    @classmethod
    def of(cls, raw: Obj) -> Binding:
        spec = raw.get("spec") or {}
        resources = spec.get("matchResources") or {}
        return cls(
            raw["metadata"]["name"],
            spec.get("policyName") or "",
            Criteria.of(resources, "resourceRules", open_without_rules=True),
            spec.get("paramRef"),
            frozenset(spec.get("validationActions") or ()),
        )


class Bound(NamedTuple):
    policy: Policy
    binding: Binding
    resource: Resource
    """The version of the object that the policy's rule names."""


def _by_name(objects: list[Obj]) -> list[Obj]:
    return sorted(objects, key=lambda obj: str(obj["metadata"]["name"]))


class ValidatingPolicies(BuiltinPlugin):
    name = "ValidatingAdmissionPolicy"
    static = False

    def __init__(self, reader: Reader, registry: Registry, authorizer: Authorizer | None = None) -> None:
        super().__init__(reader)
        self._registry = registry
        self._authorizer = authorizer
        self._policies = Followed(reader, POLICIES, lambda raws: {p.name: p for p in map(Policy.of, raws)})
        self._bindings = Followed(reader, BINDINGS, lambda raws: [Binding.of(raw) for raw in _by_name(raws)])
        self._known: dict[tuple[str, Resource, str, bool, str], tuple[Bound, ...]] = {}
        self._known_for: tuple[int, int, int] = (-1, -1, -1)
        self._names_matter = False

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._bindings.get()) and bool(self._concerned(attributes))

    async def validate(self, attributes: Attributes) -> None:
        refusals: list[Forbidden] = []
        for bound in self._concerned(attributes):
            if not self._selected(bound, attributes):
                continue
            for violation in await self._violations(bound, attributes):
                _act(bound, attributes, violation, refusals)
        if refusals:
            raise refusals[0]

    # what is concerned

    def _concerned(self, attributes: Attributes) -> tuple[Bound, ...]:
        policies, bindings = self._policies.get(), self._bindings.get()
        current = (self._policies.generation, self._bindings.generation, self._registry.generation)
        if current != self._known_for:
            self._known.clear()
            self._known_for = current
            criteria = [p.criteria for p in policies.values()] + [b.criteria for b in bindings]
            self._names_matter = any(one.by_name for one in criteria)
        name = attributes.name if self._names_matter else ""
        key = (attributes.operation, attributes.resource, attributes.subresource, bool(attributes.namespace), name)
        known = self._known.get(key)
        if known is None:
            known = () if exempt(attributes) else tuple(self._matching(policies, bindings, Request(*key)))
            if not self._names_matter:
                self._known[key] = known
        return known

    def _matching(self, policies: dict[str, Policy], bindings: list[Binding], request: Request) -> Iterator[Bound]:
        for binding in bindings:
            policy = policies.get(binding.policy)
            resource = policy.criteria.resource_for(request, self._registry) if policy is not None else None
            if policy is None or resource is None:
                continue
            if binding.criteria.resource_for(request, self._registry) is not None:
                yield Bound(policy, binding, resource)

    def _selected(self, bound: Bound, attributes: Attributes) -> bool:
        both = (bound.policy.criteria, bound.binding.criteria)
        return all(criteria.selects(attributes, self.reader) for criteria in both)

    # judging

    async def _violations(self, bound: Bound, attributes: Attributes) -> list[_Violation]:
        policy = bound.policy
        try:
            parameters = await self._parameters(bound, attributes)
        except _Misconfigured as error:
            return [] if policy.fail_open else [_Violation(f"failed to configure binding: {error}")]
        obj = await shown(attributes, attributes.obj, bound.resource)
        old = await shown(attributes, attributes.old, bound.resource)
        request = admission_request(attributes, bound.resource, "")
        del request["uid"]
        bindings = bindings_of(attributes, request, obj, old, self._authorizer)
        bindings["namespaceObject"] = self._namespace(attributes)
        found: list[_Violation] = []
        for parameter in parameters:
            found += _judge(policy, {**bindings, "params": parameter})
        return found

    def _namespace(self, attributes: Attributes) -> Obj | None:
        if not attributes.namespace or attributes.group_resource == NAMESPACES:
            return None
        return self.reader.get(NAMESPACES, "", attributes.namespace)

    async def _parameters(self, bound: Bound, attributes: Attributes) -> list[Obj | None]:
        """What `params` is, one after the other."""
        kind, reference = bound.policy.parameters, bound.binding.parameter
        if kind is None or reference is None:
            return [None]
        resource = self._registry.by_kind(kind)
        if resource is None:
            raise _Misconfigured(f"failed to find resource referenced by paramKind: '{kind}'")
        namespace = self._parameter_namespace(resource, reference, attributes)
        found = self._referred(resource, reference, namespace)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(await _versions.converter(resource)(found))

    def _parameter_namespace(self, resource: Resource, reference: Obj, attributes: Attributes) -> str:
        given = str(reference.get("namespace") or "")
        if not resource.namespaced:
            if given:
                raise _Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        if not given and not attributes.namespace:
            raise _Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        return given or attributes.namespace

    def _referred(self, resource: Resource, reference: Obj, namespace: str) -> list[Obj]:
        name = reference.get("name")
        if name:
            found = self.reader.get(resource.storage_resource, namespace, name)
            return [found] if found is not None else []
        selector = labels_from(reference.get("selector") or {})
        candidates = self.reader.list(resource.storage_resource, namespace)
        return [obj for obj in candidates if selector.matches(obj["metadata"].get("labels"))]


def _judge(policy: Policy, bindings: dict[str, Any]) -> list[_Violation]:
    try:
        if not policy.conditions.hold({**bindings, "variables": {}}):
            return []
    except EvaluationFailed as error:
        return [] if policy.fail_open else [_Violation(str(error))]
    bindings["variables"] = _variables(policy, bindings)
    found: list[_Violation] = []
    for validation in policy.validations:
        try:
            violation = validation.violation(bindings)
        except EvaluationFailed as error:
            violation = None if policy.fail_open else _Violation(str(error))
        if violation is not None:
            found.append(violation)
    return found


def _variables(policy: Policy, bindings: dict[str, Any]) -> dict[str, Any]:
    """Each may use those before it. One that cannot be computed is missing, which only those notice who use it."""
    values: dict[str, Any] = {}
    for name, expression in policy.variables:
        try:
            values[name] = expression.evaluate({**bindings, "variables": values})
        except EvaluationFailed:
            continue
    return values


def _act(bound: Bound, attributes: Attributes, violation: _Violation, refusals: list[Forbidden]) -> None:
    policy, binding = bound.policy.name, bound.binding
    if "Deny" in binding.actions:
        text = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}' denied request: {violation.message}"
        refusals.append(_refusal(attributes, text, violation.reason))
    if "Warn" in binding.actions:
        text = f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}': "
        text += violation.message
        if text not in attributes.warnings:
            attributes.warnings.append(text)


def _refusal(attributes: Attributes, text: str, reason: str) -> Forbidden:
    error = refuse(attributes, text)
    error.status_reason = reason
    error.http_code = _CODES.get(reason, _DEFAULT_CODE)
    error.details["causes"] = [{"message": text}]
    return error
