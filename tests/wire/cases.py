"""The form of wire cases: sequences of requests, each with the answer that a kube-apiserver gives to it.

A file holds a list of cases, as JSON or YAML. README.md beside this file describes the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.kube.schema.yamlio import load_yaml

OWN_CASES = Path(__file__).parent / "own_cases"


@dataclass(frozen=True)
class WireRequest:
    """One request of a case; strings in it may hold `<id>` and `<N.path>` placeholders."""

    method: str
    path: str
    headers: dict[str, str | list[str] | None] = field(default_factory=dict)
    body: Any = None
    sleep: float = 0
    until: dict[str, Any] | None = None
    watch: bool = False
    pick: str = ""
    unordered: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    namespace: bool
    requests: list[WireRequest]
    answers: list[dict[str, Any]]


def load_cases(path: Path) -> list[Case]:
    """All cases of a file, or of the files in a directory; request n has answer n."""
    if path.is_dir():
        return [
            case for file in sorted(path.iterdir()) if file.suffix in {".json", ".yaml"} for case in load_cases(file)
        ]
    return [_case(entry) for entry in load_yaml(path.read_bytes())]


def _case(entry: dict[str, Any]) -> Case:
    requests, answers = list(_exchanges(entry))
    if len(requests) != len(answers):
        raise ValueError(f"case {entry['name']}: {len(requests)} requests, {len(answers)} answers")
    return Case(
        name=entry["name"],
        namespace=bool(entry.get("namespace")),
        requests=[WireRequest(**request) for request in requests],
        answers=answers,
    )


def _exchanges(entry: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The requests and the answers; a case may also hold `exchanges`, each a request with its `answer`."""
    exchanges = entry.get("exchanges")
    if exchanges is None:
        yield entry["requests"]
        yield entry["answers"]
        return
    yield [{key: value for key, value in exchange.items() if key != "answer"} for exchange in exchanges]
    yield [exchange["answer"] for exchange in exchanges]
