"""Which requests are audited, and how much of them: audit.k8s.io/v1 Policy.

The first rule that matches a request decides its level and which stages are left out; without one it is not audited.
Bodies of Secrets and of tokens are never recorded, whatever a rule says: such requests have at most level Metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.server.auth.user import User
    from karmada.kube.server.http.request import RequestInfo

API_VERSION: Final = "audit.k8s.io/v1"
RECEIVED, STARTED, COMPLETE, PANIC = STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_SECRET: Final = frozenset({("", "secrets"), ("", "serviceaccounts/token"), ("authentication.k8s.io", "tokenreviews")})


class Level(IntEnum):
    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS: Final = {
    Level.NONE: "None",
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}
_LEVELS: Final = {word: level for level, word in _WORDS.items()}


class Plan(NamedTuple):
    """The parts of one request that are recorded."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False
    confidential: bool = False
    """Not even an error message is recorded: it may quote what was sent."""


NOTHING: Final = Plan(Level.NONE)


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one group: plain, with a subresource, `*`, `*/status` or `pods/*`; none means all of them."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def match(self, info: RequestInfo) -> bool:
        if self.group != info.group:
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        return any(_same_resource(pattern, info) for pattern in self.resources)


def _same_resource(pattern: str, info: RequestInfo) -> bool:
    if pattern == "*" or pattern == _combined(info):
        return True
    resource, _, subresource = pattern.partition("/")
    if resource == "*":
        return bool(subresource) and info.subresource == subresource
    return subresource == "*" and info.resource == resource


def _combined(info: RequestInfo) -> str:
    return f"{info.resource}/{info.subresource}" if info.subresource else info.resource


@dataclass(frozen=True, slots=True)
class Rule:
    level: Level
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[Resources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    urls: tuple[str, ...] = ()
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool | None = None

    def match(self, user: User | None, info: RequestInfo) -> bool:
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return info.is_resource and self._match_resource(info)
        if self.urls:
            return not info.is_resource and any(_same_url(pattern, info.path) for pattern in self.urls)
        return True

    def _match_resource(self, info: RequestInfo) -> bool:
        if self.namespaces and info.namespace not in self.namespaces:
            return False
        return not self.resources or any(resources.match(info) for resources in self.resources)


def _same_url(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


@dataclass(frozen=True, slots=True)
class Policy:
    rules: tuple[Rule, ...]
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False

    def plan(self, user: User | None, info: RequestInfo) -> Plan:
        for rule in self.rules:
            if rule.match(user, info):
                return self._plan(rule, info)
        return NOTHING

    def _plan(self, rule: Rule, info: RequestInfo) -> Plan:
        secret = info.is_resource and (info.group, _combined(info)) in _SECRET
        level = min(rule.level, Level.METADATA) if secret else rule.level
        omit = self.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
        return Plan(level, self.omit_stages | rule.omit_stages, omit, secret)


METADATA_ONLY: Final = Policy((Rule(Level.METADATA),), omit_stages=frozenset({RECEIVED, STARTED}))
"""Without a policy file: one event a request, when it is answered, and no bodies."""


# from a file


def read_policy(path: Path) -> Policy:
    """OSError or ValueError, which names the field, for a file that is no policy."""
    from karmada.kube.schema.yamlio import load_yaml

    document = load_yaml(path.read_bytes())
    if not isinstance(document, dict):
        raise ValueError("it is not a Policy: give apiVersion audit.k8s.io/v1, kind Policy and rules")
    return parse_policy(document)


def parse_policy(document: Obj) -> Policy:
    if (document.get("apiVersion"), document.get("kind")) != (API_VERSION, "Policy"):
        raise ValueError(f"apiVersion and kind must be {API_VERSION} and Policy")
    _known(document, "", "apiVersion", "kind", "metadata", "omitStages", "omitManagedFields", "rules")
    rules = _items(document, "rules", "", dict)
    if not rules:
        raise ValueError("rules: at least one is needed: without any, nothing is audited")
    return Policy(
        rules=tuple(_rule(rule, f"rules[{index}]") for index, rule in enumerate(rules)),
        omit_stages=_stages(document, ""),
        omit_managed_fields=bool(_flag(document, "")),
    )


def _rule(rule: Obj, path: str) -> Rule:
    _known(
        rule, path, "level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages",
        "omitManagedFields",
    )  # fmt: skip
    level, urls = rule.get("level"), _items(rule, "nonResourceURLs", path, str)
    if level not in _LEVELS:
        raise ValueError(f"{path}.level: {level!r} must be one of {', '.join(_LEVELS)}")
    if urls and (rule.get("resources") or rule.get("namespaces")):
        raise ValueError(f"{path}.nonResourceURLs: a rule is about paths or about resources and namespaces, not both")
    for index, url in enumerate(urls):
        if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
            raise ValueError(f'{path}.nonResourceURLs[{index}]: "{url}" must begin with / and may end with *')
    resources = _items(rule, "resources", path, dict)
    return Rule(
        level=_LEVELS[level],
        users=frozenset(_items(rule, "users", path, str)),
        groups=frozenset(_items(rule, "userGroups", path, str)),
        verbs=frozenset(_items(rule, "verbs", path, str)),
        resources=tuple(_resources(group, f"{path}.resources[{index}]") for index, group in enumerate(resources)),
        namespaces=frozenset(_items(rule, "namespaces", path, str)),
        urls=tuple(urls),
        omit_stages=_stages(rule, path),
        omit_managed_fields=_flag(rule, path),
    )


def _resources(group: Obj, path: str) -> Resources:
    _known(group, path, "group", "resources", "resourceNames")
    resources, names = _items(group, "resources", path, str), _items(group, "resourceNames", path, str)
    name = group.get("group") or ""
    if not isinstance(name, str) or "/" in name:
        raise ValueError(f"{path}.group: {name!r} must be the name of a group, without a version")
    if names and not resources:
        raise ValueError(f"{path}.resourceNames: needs resources, too")
    return Resources(name, tuple(resources), tuple(names))


def _known(obj: Mapping[str, Any], path: str, *fields: str) -> None:
    unknown = [field for field in obj if field not in fields]
    if unknown:
        raise ValueError(f"{_below(path, unknown[0])}: unknown field; known: {', '.join(fields)}")


def _items(obj: Obj, field: str, path: str, of: type) -> list[Any]:
    value = obj.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, of) for item in value):
        raise ValueError(f"{_below(path, field)}: must be a list of {'texts' if of is str else 'objects'}")
    return value


def _stages(obj: Obj, path: str) -> frozenset[str]:
    stages = _items(obj, "omitStages", path, str)
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            raise ValueError(f"{_below(path, 'omitStages')}[{index}]: {stage!r} must be one of {', '.join(STAGES)}")
    return frozenset(stages)


def _flag(obj: Obj, path: str) -> bool | None:
    value = obj.get("omitManagedFields")
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{_below(path, 'omitManagedFields')}: must be true or false")
    return value


def _below(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
