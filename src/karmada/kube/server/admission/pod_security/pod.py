"""What the checks of the Pod Security Standards read and return: a pod, and a violation with its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from karmada.kube.kinds.podspec import containers_of
from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import quote


class Violation(NamedTuple):
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class Pod(NamedTuple):
    annotations: Mapping[str, str]
    spec: Obj

    @property
    def containers(self) -> list[Obj]:
        return list(containers_of(self.spec))

    @property
    def context(self) -> Obj:
        return self.spec.get("securityContext") or {}

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        return self.spec.get("hostUsers") is False


Check: TypeAlias = Callable[[Pod], Violation | None]


def quoted(values: Iterable[str]) -> str:
    return ", ".join(quote(value) for value in values)


def plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def named(containers: Sequence[str]) -> str:
    return f"{plural('container', 'containers', len(containers))} {quoted(containers)}"


def setters(pod: bool, containers: Sequence[str]) -> str:
    """Who set a forbidden value: the pod, containers, or both."""
    who = ["pod"] if pod else []
    if containers:
        who.append(named(containers))
    return " and ".join(who)


def security_context(container: Obj) -> Obj:
    return container.get("securityContext") or {}


def where(pod: Pod, condition: Callable[[Obj], bool]) -> list[str]:
    """Return the names of the containers for whose security context a condition holds."""
    return [c.get("name") or "" for c in pod.containers if condition(security_context(c))]
