from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from karmada.kube.objects.times import rfc3339
from tests.support.cases import cases
from tests.wire.comparing import Bindings, Difference, compare
from tests.wire.documented import documented_differences

UID, OTHER = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"


def differing(expected: Any, got: Any, path: str = "/api") -> list[str]:
    wanted = {"status": 200, "headers": {}, "body": expected}
    return [found.where for found in compare(wanted, {**wanted, "body": got}, Bindings(), path)]


@cases(
    ({"a": None}, {}, ["body.a"]),
    ({}, {"a": None}, ["body.a"]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    ([1, 2], [1], ["body[1]"]),
    (1, True, ["body"]),
    (["<uid1>", "<uid1>"], [UID, UID], []),
    (["<uid1>", "<uid1>"], [UID, OTHER], ["body[1]"]),
    (["<uid1>", "<uid2>"], [UID, UID], ["body[1]"]),
    ({'k:{"uid":"<uid1>"}': {}}, {f'k:{{"uid":"{UID}"}}': {}}, []),
    ("web-<suffix>", "web-x7k2p", []),
    ("web-<suffix>", "web-", ["body"]),
    ("<none>", "<none>", []),
    ("<time>", "2001-01-01T00:00:00Z", ["body"]),
    ({"kind": "Pod"}, {"kind": "Status", "code": 404}, ["body"]),
)
def test_placeholders_match_what_differs_from_run_to_run_and_nothing_else(
    expected: Any, got: Any, where: list[str]
) -> None:
    assert differing(expected, got) == where


def test_a_time_near_now_matches() -> None:
    assert differing("<time>", rfc3339(time.time())) == []


def test_only_documented_places_of_documented_requests_are_excused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "## Responses that differ\n\n| Request | Where | Why |\n|---|---|---|\n"
        "| `GET /version*` | `body.git*` | ours |\n"
    )
    (row,) = documented_differences(page)
    assert row.reason == "ours"
    assert row.covers("GET /version?x=1", Difference("body.gitVersion", "1", "2"))
    assert not row.covers("GET /version", Difference("status", "1", "2"))
    assert not row.covers("GET /healthz", Difference("body.gitVersion", "1", "2"))
