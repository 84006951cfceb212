"""The differences from a kube-apiserver that docs/kubernetes-api.md lists with their reasons.

Each row of its table under "Responses that differ" names the requests (`METHOD path`) and the places in the response as
patterns of `*`, in backquotes, and why the answer differs there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.wire.comparing import Difference

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes-api.md"
HEADING = "## Responses that differ"
_ROW = re.compile(r"^\| `(?P<request>[^`]+)` \| `(?P<where>[^`]+)` \| (?P<reason>.+) \|$")


@dataclass(frozen=True)
class Documented:
    request: re.Pattern[str]
    where: re.Pattern[str]
    reason: str

    def covers(self, request: str, difference: Difference) -> bool:
        return bool(self.request.fullmatch(request) and self.where.fullmatch(difference.where))


def documented_differences(page: Path = PAGE) -> list[Documented]:
    _, _, section = page.read_text().partition(HEADING)
    rows = (_ROW.match(line) for line in section.partition("\n## ")[0].splitlines())
    return [Documented(_pattern(row["request"]), _pattern(row["where"]), row["reason"]) for row in rows if row]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)
