"""The base of the plug-ins for validating and mutating policies: which policies match a write.

A policy and its binding both have match constraints; the binding also has parameters. Which bindings match a sort of
write is cached until a policy, a binding or the set of served kinds changes. A policy with parameters is evaluated once
for each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.conditions import Conditions, EvaluationFailed, Expression, bindings_of
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import NAMESPACES, Criteria, Request, exempt
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse
from karmada.kube.server.admission.review import admission_request, shown
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.handlers import versions
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.derived import Followed

if TYPE_CHECKING:
    from karmada.kube.objects.errors import Forbidden
    from karmada.kube.schema.cel.admission import Environment
    from karmada.kube.schema.cel.types import Type

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_DEFAULT_CODE = 422

Variables = tuple[tuple[str, Expression], ...]


class Misconfigured(Exception):
    """A binding whose parameters cannot be resolved."""


P = TypeVar("P", bound="Policy")


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


class Bound(NamedTuple, Generic[P]):
    policy: P
    binding: Binding
    resource: Resource
    """The version of the object that the policy's rule names."""


# --- the parts of a policy


class Scope:
    """The variables of a policy's expressions: declared one after the other, each visible to those behind it."""

    def __init__(self, spec: Obj) -> None:
        self.params = spec.get("paramKind") is not None
        self.variables: Variables = ()
        for variable in spec.get("variables") or ():
            expression = Expression(variable["expression"], self.declare(self.variables))
            self.variables = (*self.variables, (variable["name"], expression))

    def declare(self, variables: Variables | None) -> Callable[[], Environment]:
        """Return the environment of expressions that may use these variables; None: that have no `variables` at all."""

        def declared() -> Environment:
            from karmada.kube.schema.cel.admission import environment

            types = None if variables is None else {name: _type_of(expression) for name, expression in variables}
            return environment(params=self.params, variables=types)

        return declared

    def conditions(self, spec: Obj) -> Conditions:
        return Conditions.of(spec.get("matchConditions"), self.declare(None))

    def expression(self, text: str, *, patches: bool = False) -> Expression:
        return Expression(text, self.declare(self.variables), patches=patches)


def _type_of(expression: Expression) -> Type:
    """Return the type of a variable; unknown if it does not compile, which is noticed when it is used."""
    from karmada.kube.schema.cel.types import DYN

    try:
        return expression.program().type
    except EvaluationFailed:
        return DYN


@dataclass(frozen=True, slots=True, eq=False)
class Policy(ABC):
    """The common part of validating and mutating policies."""

    name: str
    criteria: Criteria
    conditions: Conditions
    variables: Variables
    parameters: GVK | None
    fail_open: bool

    @classmethod
    def of(cls, raw: Obj) -> Self:
        spec, name = raw.get("spec") or {}, raw["metadata"]["name"]
        scope = Scope(spec)
        return cls(
            name,
            Criteria.of(spec.get("matchConstraints") or {}, "resourceRules"),
            scope.conditions(spec),
            scope.variables,
            _parameter_kind(spec),
            spec.get("failurePolicy") == "Ignore",
            **cls.actions(name, spec, scope),
        )

    @staticmethod
    @abstractmethod
    def actions(name: str, spec: Obj, scope: Scope) -> dict[str, Any]:
        """Return the fields of one sort of policies."""


def _parameter_kind(spec: Obj) -> GVK | None:
    kind = spec.get("paramKind")
    return GVK.parse(kind.get("apiVersion") or "", kind.get("kind") or "") if kind else None


def with_variables(variables: Variables, bindings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bindings and the policy's variables.

    One that cannot be computed is missing for those that use it.
    """
    values: dict[str, Any] = {}
    for name, expression in variables:
        try:
            values[name] = expression.evaluate({**bindings, "variables": values})
        except EvaluationFailed:
            continue
    return {**bindings, "variables": values}


def refusal(attributes: Attributes, text: str, reason: str) -> Forbidden:
    error = refuse(attributes, text)
    error.status_reason = reason
    error.http_code = _CODES.get(reason, _DEFAULT_CODE)
    error.details["causes"] = [{"message": text}]
    return error


# --- which policies match a write


def _by_name(objects: list[Obj]) -> list[Obj]:
    return sorted(objects, key=lambda obj: str(obj["metadata"]["name"]))


class PolicyPlugin(BuiltinPlugin, Generic[P]):
    waits = True
    policies: ClassVar[GroupResource]
    bindings: ClassVar[GroupResource]
    policy: type[P]

    def __init__(self, reader: Reader, registry: Registry, authorizer: Authorizer | None = None) -> None:
        super().__init__(reader)
        self._registry = registry
        self._authorizer = authorizer
        self._policies = Followed(reader, self.policies, lambda raws: {p.name: p for p in map(self.policy.of, raws)})
        self._bindings = Followed(reader, self.bindings, lambda raws: [Binding.of(raw) for raw in _by_name(raws)])
        self.depends_on = (*self._policies.sources, *self._bindings.sources, registry)
        self._known: dict[tuple[str, Resource, str, bool, str], tuple[Bound[P], ...]] = {}
        self._known_for: tuple[int, int, int] = (-1, -1, -1)
        self._names_matter = False

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._concerned(attributes)) or self._names_matter

    def is_exempt(self, attributes: Attributes) -> bool:
        """Return whether no policy applies to this write."""
        return exempt(attributes)

    def _concerned(self, attributes: Attributes) -> tuple[Bound[P], ...]:
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
            known = () if self.is_exempt(attributes) else tuple(self._matching(policies, bindings, Request(*key)))
            if not self._names_matter:
                self._known[key] = known
        return known

    def _matching(self, policies: dict[str, P], bindings: list[Binding], request: Request) -> Iterator[Bound[P]]:
        for binding in bindings:
            policy = policies.get(binding.policy)
            resource = policy.criteria.resource_for(request, self._registry) if policy is not None else None
            if policy is None or resource is None:
                continue
            if binding.criteria.resource_for(request, self._registry) is not None:
                yield Bound(policy, binding, resource)

    def _selected(self, bound: Bound[P], attributes: Attributes) -> bool:
        both = (bound.policy.criteria, bound.binding.criteria)
        return all(criteria.selects(attributes, self.reader) for criteria in both)

    async def _values(self, bound: Bound[P], attributes: Attributes) -> dict[str, Any]:
        """Return the variables of a policy's expressions, without `params`."""
        obj = await shown(attributes, attributes.obj, bound.resource)
        old = await shown(attributes, attributes.old, bound.resource)
        request = admission_request(attributes, bound.resource, "")
        del request["uid"]
        values = bindings_of(attributes, request, obj, old, self._authorizer)
        values["namespaceObject"] = self._namespace(attributes)
        return values

    def _namespace(self, attributes: Attributes) -> Obj | None:
        if not attributes.namespace or attributes.group_resource == NAMESPACES:
            return None
        return self.reader.get(NAMESPACES, "", attributes.namespace)

    async def _parameters(self, bound: Bound[P], attributes: Attributes) -> list[Obj | None]:
        """Return the values of `params`, one for each evaluation; raises Misconfigured."""
        kind, reference = bound.policy.parameters, bound.binding.parameter
        if kind is None or reference is None:
            return [None]
        resource = self._registry.by_kind(kind)
        if resource is None:
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{kind}'")
        namespace = _parameter_namespace(resource, reference, attributes)
        found = await self._referred(resource, reference, namespace)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(await versions.converter(resource)(found))

    async def _referred(self, resource: Resource, reference: Obj, namespace: str) -> list[Obj]:
        name = reference.get("name")
        if name:
            found = self.reader.get(resource.storage_resource, namespace, name)
            return [found] if found is not None else []
        selector = labels_from(reference.get("selector") or {})
        candidates = self.reader.scan(resource.storage_resource, namespace)
        return [obj async for obj in candidates if selector.matches(obj["metadata"].get("labels"))]


def _parameter_namespace(resource: Resource, reference: Obj, attributes: Attributes) -> str:
    given = str(reference.get("namespace") or "")
    if not resource.namespaced:
        if given:
            raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not attributes.namespace:
        raise Misconfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return given or attributes.namespace
