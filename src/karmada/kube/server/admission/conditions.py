"""CEL in admission: matchConditions and what else is evaluated over a write.

Which variables an expression sees and of which types they are is in schema.cel.admission; here they get their values,
and `authorizer` the server's own authorizer. The language and its types are loaded with the first expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.auth.rbac import Authorizer, AuthzAttributes
from karmada.kube.server.auth.user import User

if TYPE_CHECKING:
    from karmada.kube.schema.cel import Program
    from karmada.kube.schema.cel.admission import Environment
    from karmada.kube.schema.cel.authorization import Authorizer as AuthorizerValue
    from karmada.kube.schema.cel.authorization import Check, Decide, Decision

Declare = Callable[[], "Environment"]
"""Makes the variables of an expression and their types, when it is compiled."""


def base_environment() -> Environment:
    from karmada.kube.schema.cel.admission import environment

    return environment()


class EvaluationFailed(Exception):
    """An expression that does not compile or cannot be evaluated."""


class Expression:
    """Compiled when it is first evaluated; one that does not compile fails every time."""

    __slots__ = ("_declare", "_error", "_patches", "_program", "text")

    def __init__(self, text: str, declare: Declare = base_environment, *, patches: bool = False) -> None:
        self.text = text
        self._declare = declare
        self._patches = patches
        self._program: Program | None = None
        self._error = ""

    def evaluate(self, bindings: dict[str, Any]) -> Any:
        from karmada.kube.schema.cel import CelError

        program = self.program()
        try:
            return program.evaluate(bindings)
        except CelError as error:
            raise EvaluationFailed(f"expression '{self.text}' resulted in error: {error}") from error

    def program(self) -> Program:
        """Return the compiled expression; raises EvaluationFailed."""
        if self._program is None and not self._error:
            from karmada.kube.schema.cel import CompileError, Program

            try:
                self._program = Program(self.text, self._declare(), patches=self._patches)
            except CompileError as error:
                self._error = f"compilation error: compilation failed: {error}"
        if self._program is None:
            raise EvaluationFailed(self._error)
        return self._program


@dataclass(frozen=True, slots=True)
class Conditions:
    """All must be true. One that is false decides, even if others fail; otherwise an error is raised."""

    expressions: tuple[Expression, ...]

    @classmethod
    def of(cls, raw: list[Obj] | None, declare: Declare = base_environment) -> Conditions:
        return cls(tuple(Expression(condition.get("expression") or "", declare) for condition in raw or ()))

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
    """Return the variables of an expression; in `request` every field can be selected, as in its declared type."""
    user = {**_USER_DEFAULTS, **request["userInfo"]}
    return {
        "object": obj,
        "oldObject": old,
        "namespaceObject": None,
        "request": {**_REQUEST_DEFAULTS, **request, "userInfo": user},
        "authorizer": _authorizer(attributes, authorizer),
    }


def _authorizer(attributes: Attributes, authorizer: Authorizer | None) -> AuthorizerValue:
    from karmada.kube.schema.cel.authorization import Authorizer as AuthorizerValue
    from karmada.kube.schema.cel.authorization import ResourceCheck

    value = AuthorizerValue(_decide(attributes.user, authorizer))
    group, _, plural = attributes.resource.gvr
    place = (attributes.subresource, attributes.namespace, attributes.name)
    value["requestResource"] = ResourceCheck(value, group, plural, *place)
    return value


def _decide(caller: User, authorizer: Authorizer | None) -> Decide:
    from karmada.kube.schema.cel.authorization import Decision

    def decide(check: Check) -> Decision:
        if authorizer is None:
            return Decision(False, "no authorizer is configured")
        user = caller if check.account is None else _service_account(*check.account)
        found = authorizer.authorize(user, _attributes(check))
        return Decision(found.allowed, found.reason)

    return decide


def _attributes(check: Check) -> AuthzAttributes:
    if check.path:
        return AuthzAttributes(check.verb, path=check.path, is_resource=False)
    place = (check.resource, check.subresource, check.namespace, check.name)
    return AuthzAttributes(check.verb, check.group, "*", *place)


def _service_account(namespace: str, name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups=groups)
