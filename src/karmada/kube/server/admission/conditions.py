"""CEL in admission: matchConditions and what else is evaluated over a write.

Expressions see `object`, `oldObject`, `request`, `namespaceObject`, `params`, `variables` and `authorizer`. The last
one asks the server's own authorizer, step by step: `authorizer.group("").resource("pods").check("create").allowed()`.
The language and its types are loaded with the first expression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.auth.rbac import Authorizer, AuthzAttributes, Decision
from karmada.kube.server.auth.user import User

if TYPE_CHECKING:
    from karmada.kube.schema.cel import Program

BASE = frozenset({"object", "oldObject", "request", "authorizer"})
POLICY = BASE | {"namespaceObject", "params", "variables"}


class EvaluationFailed(Exception):
    """An expression that does not compile or cannot be evaluated."""


class Expression:
    """Compiled when it is first evaluated; one that does not compile fails every time."""

    __slots__ = ("_error", "_program", "_variables", "text")

    def __init__(self, text: str, variables: frozenset[str] = BASE) -> None:
        self.text = text
        self._variables = variables
        self._program: Program | None = None
        self._error = ""

    def evaluate(self, bindings: dict[str, Any]) -> Any:
        from karmada.kube.schema.cel import CelError

        program = self._compiled()
        try:
            return program.evaluate(bindings)
        except CelError as error:
            raise EvaluationFailed(f"expression '{self.text}' resulted in error: {error}") from error

    def _compiled(self) -> Program:
        if self._program is None and not self._error:
            from karmada.kube.schema.cel import CompileError, compile_expression

            _teach_authorization()
            try:
                self._program = compile_expression(self.text, set(self._variables))
            except CompileError as error:
                self._error = f"compilation error: compilation failed: {error}"
        if self._program is None:
            raise EvaluationFailed(self._error)
        return self._program


@dataclass(frozen=True, slots=True)
class Conditions:
    """All must be true. One that is false decides whatever the others say; else an error is an error."""

    expressions: tuple[Expression, ...]

    @classmethod
    def of(cls, raw: list[Obj] | None, variables: frozenset[str] = BASE) -> Conditions:
        return cls(tuple(Expression(condition.get("expression") or "", variables) for condition in raw or ()))

    def __bool__(self) -> bool:
        return bool(self.expressions)

    def hold(self, bindings: dict[str, Any]) -> bool:
        errors: list[str] = []
        for expression in self.expressions:
            try:
                if expression.evaluate(bindings) is not True:
                    return False
            except EvaluationFailed as error:
                errors.append(str(error))
        if errors:
            raise EvaluationFailed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return True


_REQUEST_DEFAULTS: Obj = {
    "subResource": "",
    "requestSubResource": "",
    "name": "",
    "namespace": "",
    "dryRun": False,
    "options": None,
}
_USER_DEFAULTS: Obj = {"username": "", "uid": "", "groups": [], "extra": {}}


def bindings_of(
    attributes: Attributes, request: Obj, obj: Obj | None, old: Obj | None, authorizer: Authorizer | None
) -> dict[str, Any]:
    """The variables of an expression; in `request` every field can be selected, as in its declared type."""
    user = {**_USER_DEFAULTS, **request["userInfo"]}
    return {
        "object": obj,
        "oldObject": old,
        "request": {**_REQUEST_DEFAULTS, **request, "userInfo": user},
        "authorizer": Asking.about(attributes, authorizer),
    }


# authorizer.*


class Asking(dict[str, Any]):
    """`authorizer`: a map with the one field it has, and the start of every other question."""

    __slots__ = ("authorizer", "user")

    def __init__(self, authorizer: Authorizer | None, user: User) -> None:
        super().__init__()
        self.authorizer = authorizer
        self.user = user

    @classmethod
    def about(cls, attributes: Attributes, authorizer: Authorizer | None) -> Asking:
        asking = cls(authorizer, attributes.user)
        group, _, plural = attributes.resource.gvr
        asking["requestResource"] = ResourceCheck(
            asking, group, plural, attributes.subresource, attributes.namespace, attributes.name
        )
        return asking

    def decide(self, attributes: AuthzAttributes) -> Decision:
        if self.authorizer is None:
            return Decision(False, "no authorizer is configured")
        return self.authorizer.authorize(self.user, attributes)

    def service_account(self, namespace: str, name: str) -> Asking:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return Asking(self.authorizer, User(f"system:serviceaccount:{namespace}:{name}", groups=groups))


@dataclass(frozen=True, slots=True)
class PathCheck:
    asking: Asking
    path: str

    def check(self, verb: str) -> Decision:
        return self.asking.decide(AuthzAttributes(verb, path=self.path, is_resource=False))


@dataclass(frozen=True, slots=True)
class GroupCheck:
    asking: Asking
    group: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    asking: Asking
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def check(self, verb: str) -> Decision:
        return self.asking.decide(
            AuthzAttributes(verb, self.group, "*", self.resource, self.subresource, self.namespace, self.name)
        )


@cache
def _teach_authorization() -> None:
    """Make the questions known to the expression language."""
    from karmada.kube.schema.cel.registry import define, define_type
    from karmada.kube.schema.cel.types import BOOL, STRING, Type

    prefix = "kubernetes.authorization."
    kinds = {cls: Type(prefix + name) for cls, name in _TYPE_NAMES.items()}
    for cls, kind in kinds.items():
        define_type(kind, cls)
    asking, path, group, resource, decision = kinds.values()
    define("path", (asking, STRING), path, PathCheck, member=True)
    define("group", (asking, STRING), group, GroupCheck, member=True)
    define("serviceAccount", (asking, STRING, STRING), asking, Asking.service_account, member=True)
    define("resource", (group, STRING), resource, lambda g, r: ResourceCheck(g.asking, g.group, r), member=True)
    for field in ("subresource", "namespace", "name"):
        define(field, (resource, STRING), resource, _setter(field), member=True)
    define("check", (path, STRING), decision, PathCheck.check, member=True)
    define("check", (resource, STRING), decision, ResourceCheck.check, member=True)
    define("allowed", (decision,), BOOL, lambda d: d.allowed, member=True)
    define("reason", (decision,), STRING, lambda d: d.reason, member=True)
    define("errored", (decision,), BOOL, lambda _d: False, member=True)
    define("error", (decision,), STRING, lambda _d: "", member=True)


def _setter(field: str) -> Any:
    return lambda check, value: replace(check, **{field: value})


_TYPE_NAMES: dict[type, str] = {
    Asking: "Authorizer",
    PathCheck: "PathCheck",
    GroupCheck: "GroupCheck",
    ResourceCheck: "ResourceCheck",
    Decision: "Decision",
}
