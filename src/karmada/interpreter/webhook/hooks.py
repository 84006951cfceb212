"""ResourceInterpreterWebhookConfigurations, compiled: which webhook is called for which operation on which kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from karmada.api.interpreter_context import Operation
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

DEFAULT_SECONDS: Final = 10.0
_ALL: Final = "*"


class Rule(NamedTuple):
    """Operations on kinds; `*` in a set stands for every value."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    kinds: frozenset[str]

    @classmethod
    def of(cls, raw: Obj) -> Rule:
        return cls(*(frozenset(raw.get(field) or ()) for field in ("operations", "apiGroups", "apiVersions", "kinds")))

    def concerns(self, gvk: GVK) -> bool:
        return all(_has(*pair) for pair in zip((self.groups, self.versions, self.kinds), gvk, strict=True))

    def matches(self, gvk: GVK, operation: Operation) -> bool:
        return _has(self.operations, operation) and self.concerns(gvk)


def _has(values: frozenset[str], value: str) -> bool:
    return value in values or _ALL in values


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Hook:
    id: str
    """`<configuration>/<webhook>`."""
    rules: tuple[Rule, ...]
    client_config: Obj
    seconds: float
    """How long a call may take."""
    versions: tuple[str, ...]
    """Versions of ResourceInterpreterContext that it accepts."""

    @classmethod
    def of(cls, configuration: str, raw: Obj) -> Hook:
        return cls(
            id=f"{configuration}/{raw.get('name') or ''}",
            rules=_rules(raw),
            client_config=raw.get("clientConfig") or {},
            seconds=float(raw.get("timeoutSeconds") or DEFAULT_SECONDS),
            versions=tuple(raw.get("interpreterContextVersions") or ()),
        )

    def matches(self, gvk: GVK, operation: Operation) -> bool:
        return any(rule.matches(gvk, operation) for rule in self.rules)


def compile_hooks(configurations: Iterable[Obj]) -> list[Hook]:
    """Return all webhooks in the order of their ids: the first that matches is called."""
    found = (Hook.of(obj["metadata"]["name"], raw) for obj in configurations for raw in obj.get("webhooks") or ())
    return sorted(found, key=lambda hook: hook.id)


def concerned_by(configuration: Obj) -> Callable[[GVK], bool]:
    """Return whether a configuration has any rule about a kind."""
    rules = tuple(_all_rules(configuration))
    return lambda gvk: any(rule.concerns(gvk) for rule in rules)


def _all_rules(configuration: Obj) -> Iterator[Rule]:
    for raw in configuration.get("webhooks") or ():
        yield from _rules(raw)


def _rules(webhook: Obj) -> tuple[Rule, ...]:
    return tuple(Rule.of(raw) for raw in webhook.get("rules") or ())
