"""Configured responses of simulated containers to requests from outside.

Responses are set and removed while the cluster runs, by name; of those that match, the last one set is used. They are
for the owner of the simulation, not the users of its API: a `Forward` connects to a port of the machine it runs on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias, TypeVar

import msgspec

from karmada.kube.objects import meta
from karmada.kube.objects.selectors import LabelSelector, parse_labels
from karmada.kube.objects.types import Obj


class _Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The containers of a response; an empty field matches all."""

    namespace: str = ""
    pod: str = ""
    selector: str = ""
    container: str = ""

    def matches(self, pod: Obj, container: str = "") -> bool:
        return (
            self.namespace in ("", meta.namespace(pod))
            and self.pod in ("", meta.name(pod))
            and (not container or self.container in ("", container))
            and _selector(self.selector).matches(meta.labels(pod))
        )


class Command(_Match, tag="command", tag_field="kind", frozen=True, kw_only=True):
    """The output and exit code of commands whose line contains `pattern` (a regular expression)."""

    pattern: str
    stdout: str = ""
    stderr: str = ""
    code: int = 0
    delay: float = 0.0


class Log(_Match, tag="log", tag_field="kind", frozen=True, kw_only=True):
    """The whole log of a container, instead of generated lines."""

    text: str


class Http(_Match, tag="http", tag_field="kind", frozen=True, kw_only=True):
    """The response of a port to requests whose path contains `path` (a regular expression)."""

    port: int = 0
    """0: any"""
    path: str = ""
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""


class Forward(_Match, tag="forward", tag_field="kind", frozen=True, kw_only=True):
    """A port that is forwarded to a real address."""

    port: int = 0
    to: str
    """host:port"""

    def address(self) -> tuple[str, int]:
        host, _, port = self.to.rpartition(":")
        return host.strip("[]"), int(port)


Answer: TypeAlias = Command | Log | Http | Forward
A = TypeVar("A", Command, Log, Http, Forward)


@lru_cache(maxsize=1024)
def _selector(text: str) -> LabelSelector:
    return parse_labels(text)


class Answers:
    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}

    def set(self, name: str, answer: Answer) -> None:
        """Set or replace a response; ValueError when it is invalid."""
        parse_labels(answer.selector)
        try:
            re.compile(
                answer.pattern if isinstance(answer, Command) else answer.path if isinstance(answer, Http) else ""
            )
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        if isinstance(answer, Forward):
            answer.address()
        self._answers.pop(name, None)
        self._answers[name] = answer

    def remove(self, name: str) -> bool:
        """Return whether there was one of that name."""
        return self._answers.pop(name, None) is not None

    def all(self) -> dict[str, Answer]:
        return dict(self._answers)

    def _matching(self, kind: type[A], pod: Obj, container: str = "") -> list[A]:
        return [a for a in reversed(self._answers.values()) if isinstance(a, kind) and a.matches(pod, container)]

    def command(self, pod: Obj, container: str, line: str) -> Command | None:
        return next((a for a in self._matching(Command, pod, container) if re.search(a.pattern, line)), None)

    def log(self, pod: Obj, container: str) -> Log | None:
        return next(iter(self._matching(Log, pod, container)), None)

    def forward(self, pod: Obj, port: int) -> Forward | None:
        return next((a for a in self._matching(Forward, pod) if a.port in (0, port)), None)

    def http(self, pod: Obj, port: int, path: str) -> Http | None:
        return next((a for a in self._matching(Http, pod) if a.port in (0, port) and re.search(a.path, path)), None)
