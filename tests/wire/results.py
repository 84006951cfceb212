"""What a run of wire cases found: for each request identical, documented or differing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.wire.cases import Case
from tests.wire.comparing import Bindings, Difference, compare
from tests.wire.documented import Documented
from tests.wire.sending import answers_of, sorted_causes

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class RequestResult:
    index: int
    request: str
    differences: list[Difference]
    documented: list[Difference]

    @property
    def identical(self) -> bool:
        return not self.differences and not self.documented


@dataclass(frozen=True)
class CaseResult:
    name: str
    requests: list[RequestResult]

    @property
    def differing(self) -> list[RequestResult]:
        return [request for request in self.requests if request.differences]

    def report(self) -> str:
        """One line, and below it every undocumented difference."""
        documented = sum(not request.identical and not request.differences for request in self.requests)
        head = f"{self.name}: {sum(request.identical for request in self.requests)}/{len(self.requests)} identical"
        lines = [head + (f", {documented} documented" if documented else "")]
        for request in self.differing:
            lines.append(f"  #{request.index} {request.request}")
            lines += [f"    {difference}" for difference in request.differences]
        return "\n".join(lines)


async def run_case(case: Case, certificates: Path, known: list[Documented]) -> CaseResult:
    identifier, answers = await answers_of(case, certificates)
    bindings = Bindings()
    results = []
    for index, (request, expected, got) in enumerate(zip(case.requests, case.answers, answers, strict=True)):
        wanted = _with_id({"headers": _JSON, "body": None, **expected}, identifier)
        if request.unordered:
            wanted["body"] = sorted_causes(wanted["body"])
        line = f"{request.method} {request.path}"
        differences = compare(wanted, got, bindings, request.path)
        covered = [found for found in differences if any(row.covers(line, found) for row in known)]
        results.append(RequestResult(index, line, [found for found in differences if found not in covered], covered))
    return CaseResult(case.name, results)


def _with_id(value: Any, identifier: str) -> Any:
    if isinstance(value, dict):
        return {_with_id(key, identifier): _with_id(entry, identifier) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_id(entry, identifier) for entry in value]
    return value.replace("<id>", identifier) if isinstance(value, str) else value
