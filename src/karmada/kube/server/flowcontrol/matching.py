"""FlowSchemas, compiled: which one a request falls under, and to which flow of it the request belongs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import AuthzAttributes, url_matches
from karmada.kube.server.auth.service_accounts import username
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.defaults import CATCH_ALL

_ANY = "*"


class Flow(NamedTuple):
    """The requests that share their seats as one: those of a user, or of a namespace, under one FlowSchema."""

    schema: str
    distinguisher: str


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    uid: str
    level: str
    precedence: int
    method: str
    rules: Sequence[Obj]

    def matches(self, user: User, request: AuthzAttributes) -> bool:
        return any(_is_subject(rule.get("subjects") or (), user) and _is_about(rule, request) for rule in self.rules)

    def flow(self, user: User, request: AuthzAttributes) -> Flow:
        by = {"ByUser": user.name, "ByNamespace": request.namespace}
        return Flow(self.name, by.get(self.method, ""))


def compiled(objects: Iterable[Obj]) -> list[Schema]:
    """In the order in which they are tried; catch-all is the last, whatever its precedence says."""
    schemas = [
        Schema(
            obj["metadata"]["name"],
            obj["metadata"].get("uid", ""),
            ((obj.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name", ""),
            int((obj.get("spec") or {}).get("matchingPrecedence") or 1000),
            ((obj.get("spec") or {}).get("distinguisherMethod") or {}).get("type", ""),
            (obj.get("spec") or {}).get("rules") or (),
        )
        for obj in objects
    ]
    return sorted(schemas, key=lambda schema: (schema.name == CATCH_ALL, schema.precedence, schema.name))


def _is_subject(subjects: Iterable[Obj], user: User) -> bool:
    for subject in subjects:
        kind = subject.get("kind")
        if kind == "User" and (subject.get("user") or {}).get("name") in (_ANY, user.name):
            return True
        if kind == "Group":
            name = (subject.get("group") or {}).get("name")
            if name == _ANY or name in user.groups:
                return True
        if kind == "ServiceAccount" and _is_account(subject.get("serviceAccount") or {}, user.name):
            return True
    return False


def _is_account(account: Obj, name: str) -> bool:
    namespace = account.get("namespace", "")
    if account.get("name") == _ANY:
        return name.startswith(username(namespace, ""))
    return name == username(namespace, account.get("name", ""))


def _is_about(rule: Obj, request: AuthzAttributes) -> bool:
    if request.is_resource:
        return any(_is_resource(found, request) for found in rule.get("resourceRules") or ())
    return any(
        _has(found.get("verbs"), request.verb)
        and any(url_matches(url, request.path) for url in found.get("nonResourceURLs") or ())
        for found in rule.get("nonResourceRules") or ()
    )


def _is_resource(rule: Obj, request: AuthzAttributes) -> bool:
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    if not (_has(rule.get("verbs"), request.verb) and _has(rule.get("apiGroups"), request.group)):
        return False
    if not _has(rule.get("resources"), resource):
        return False
    if not request.namespace:
        return bool(rule.get("clusterScope"))
    return _has(rule.get("namespaces"), request.namespace)


def _has(values: Any, wanted: str) -> bool:
    return bool(values) and (_ANY in values or wanted in values)
