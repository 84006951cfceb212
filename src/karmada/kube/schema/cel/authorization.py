"""`authorizer` in expressions: `authorizer.group("").resource("pods").namespace("x").check("create").allowed()`.

A check is put together step by step; `decide`, which whoever binds the variable provides, answers it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from karmada.kube.schema.cel.registry import define, define_type
from karmada.kube.schema.cel.types import BOOL, STRING, FieldType, Type


class Check(NamedTuple):
    """May somebody do this? A path or a resource, for the caller or for a service account (namespace, name)."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    account: tuple[str, str] | None = None


class Decision(NamedTuple):
    allowed: bool
    reason: str


Decide = Callable[[Check], Decision]


class Authorizer(dict[str, Any]):
    """`authorizer`; a map, since it has one field: `requestResource`, the check of the request itself."""

    __slots__ = ("account", "decide")

    def __init__(self, decide: Decide, account: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.decide = decide
        self.account = account


@dataclass(frozen=True, slots=True)
class PathCheck:
    authorizer: Authorizer
    path: str

    def check(self, verb: str) -> Decision:
        return self.authorizer.decide(Check(verb, path=self.path, account=self.authorizer.account))


@dataclass(frozen=True, slots=True)
class GroupCheck:
    authorizer: Authorizer
    group: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    authorizer: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def check(self, verb: str) -> Decision:
        place = (self.group, self.resource, self.subresource, self.namespace, self.name)
        return self.authorizer.decide(Check(verb, "", *place, account=self.authorizer.account))


def _named(name: str, fields: dict[str, FieldType] | None = None) -> Type:
    return Type(f"kubernetes.authorization.{name}", fields=fields)


_RESOURCE_CHECK, _PATH_CHECK, _GROUP_CHECK = _named("ResourceCheck"), _named("PathCheck"), _named("GroupCheck")
_DECISION = _named("Decision")
AUTHORIZER = _named("Authorizer", {"requestResource": FieldType("requestResource", _RESOURCE_CHECK)})

for _kind, _class in (
    (AUTHORIZER, Authorizer),
    (_RESOURCE_CHECK, ResourceCheck),
    (_PATH_CHECK, PathCheck),
    (_GROUP_CHECK, GroupCheck),
    (_DECISION, Decision),
):
    define_type(_kind, _class)


def _setter(field: str) -> Callable[[Any, str], Any]:
    return lambda check, value: replace(check, **{field: value})


define("path", (AUTHORIZER, STRING), _PATH_CHECK, PathCheck, member=True)
define("group", (AUTHORIZER, STRING), _GROUP_CHECK, GroupCheck, member=True)
define(
    "serviceAccount",
    (AUTHORIZER, STRING, STRING),
    AUTHORIZER,
    lambda authorizer, namespace, name: Authorizer(authorizer.decide, (namespace, name)),
    member=True,
)
define(
    "resource",
    (_GROUP_CHECK, STRING),
    _RESOURCE_CHECK,
    lambda group, resource: ResourceCheck(group.authorizer, group.group, resource),
    member=True,
)
for _field in ("subresource", "namespace", "name"):
    define(_field, (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK, _setter(_field), member=True)
for _field in ("fieldSelector", "labelSelector"):  # RBAC does not look at them
    define(_field, (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK, lambda check, _selector: check, member=True)
define("check", (_PATH_CHECK, STRING), _DECISION, PathCheck.check, member=True)
define("check", (_RESOURCE_CHECK, STRING), _DECISION, ResourceCheck.check, member=True)
define("allowed", (_DECISION,), BOOL, lambda decision: decision.allowed, member=True)
define("reason", (_DECISION,), STRING, lambda decision: decision.reason, member=True)
define("errored", (_DECISION,), BOOL, lambda _decision: False, member=True)
define("error", (_DECISION,), STRING, lambda _decision: "", member=True)
