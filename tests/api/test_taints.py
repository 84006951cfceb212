"""How long the taints of a cluster are tolerated."""

from __future__ import annotations

from typing import Any

from karmada.api.taints import FOREVER, is_tolerated, tolerated_until
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_700_000_000.0
EVICTED = -FOREVER


def taint(key: str, added: float | None = 0.0) -> Obj:
    found: Obj = {"key": key, "effect": "NoExecute"}
    return found if added is None else {**found, "timeAdded": rfc3339(NOW + added)}


def exists(key: str, seconds: int | None = None) -> Obj:
    return {"key": key, "operator": "Exists", **({} if seconds is None else {"tolerationSeconds": seconds})}


@cases(
    ([taint("a", -1)], [], EVICTED),
    ([taint("a", -1)], [exists("a", 0)], NOW - 1),
    ([taint("a", -1)], [exists("a", 60)], NOW + 59),
    ([taint("a")], [exists("a")], FOREVER),
    ([taint("a", 1), taint("b", -1)], [exists("a", 30)], EVICTED),
    ([taint("a"), taint("b")], [exists("a"), exists("", 10)], NOW + 10),
    ([taint("a", -4), taint("b")], [exists("a"), exists("", 10)], NOW + 6),
    ([taint("a", None)], [exists("a", 5)], FOREVER),
    ([taint("a")], [exists("a", 5), exists("a")], NOW + 5),
    ([], [], FOREVER),
)
def test_the_shortest_toleration_of_all_taints_counts(taints: list[Obj], tolerations: list[Obj], until: float) -> None:
    assert tolerated_until(taints, tolerations) == until


@cases(
    ({"key": "a", "value": "1"}, True),
    ({"key": "a", "operator": "Equal", "value": "1", "effect": "NoExecute"}, True),
    ({"key": "a", "operator": "Equal", "value": "2"}, False),
    ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, False),
    ({"operator": "Exists"}, True),
    ({"key": "b", "operator": "Exists"}, False),
    ({"key": "a", "operator": "Gt", "value": "0"}, False),
)
def test_a_toleration_matches_by_effect_key_and_value(toleration: dict[str, Any], tolerated: bool) -> None:
    assert is_tolerated({"key": "a", "value": "1", "effect": "NoExecute"}, [toleration]) is tolerated
