"""Which taints follow from the condition Ready."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.controllers.cluster.taints import describe, taints_for
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOT_READY, UNREACHABLE = "cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable"
NOW = 1_700_000_000.0
ADDED = "2023-11-14T22:13:20Z"


def taint(key: str, effect: str = "NoSchedule", **more: str) -> Obj:
    return {"key": key, "effect": effect, **more}


def ready(status: str) -> Obj | None:
    return {"type": "Ready", "status": status} if status else None


@cases(
    ([], "", [taint(NOT_READY, timeAdded=ADDED)]),
    ([taint(UNREACHABLE)], "", [taint(UNREACHABLE), taint(NOT_READY, timeAdded=ADDED)]),
    ([], "False", [taint(NOT_READY, timeAdded=ADDED)]),
    ([taint(UNREACHABLE)], "False", [taint(NOT_READY, timeAdded=ADDED)]),
    ([taint(NOT_READY)], "False", [taint(NOT_READY)]),
    ([taint(NOT_READY)], "Unknown", [taint(UNREACHABLE, timeAdded=ADDED)]),
    ([taint(UNREACHABLE), taint("mine")], "Unknown", [taint(UNREACHABLE), taint("mine")]),
    ([taint(NOT_READY), taint("mine"), taint(UNREACHABLE)], "True", [taint("mine")]),
    ([taint(NOT_READY, "NoExecute")], "True", [taint(NOT_READY, "NoExecute")]),
    (
        [taint(NOT_READY, "NoExecute")],
        "False",
        [taint(NOT_READY, "NoExecute"), taint(NOT_READY, timeAdded=ADDED)],
    ),
    ([taint("mine")], "Whatever", [taint("mine")]),
)
def test_taints_follow_the_condition_ready(before: list[Obj], status: str, after: list[Obj]) -> None:
    assert taints_for(before, ready(status), NOW) == after


TAINTS = st.lists(
    st.builds(taint, st.sampled_from([NOT_READY, UNREACHABLE, "a", "b"]), st.sampled_from(["NoSchedule", "NoExecute"])),
    unique_by=lambda t: (t["key"], t["effect"]),
)
STATUS = st.sampled_from(["", "True", "False", "Unknown"])


@given(TAINTS, STATUS)
def test_doing_it_again_changes_nothing(before: list[Obj], status: str) -> None:
    once = taints_for(before, ready(status), NOW)
    assert taints_for(once, ready(status), NOW + 60) == once


@given(TAINTS, STATUS)
def test_taints_of_others_stay_in_their_order(before: list[Obj], status: str) -> None:
    def others(taints: list[Obj]) -> list[Obj]:
        return [t for t in taints if t["effect"] != "NoSchedule" or t["key"] not in (NOT_READY, UNREACHABLE)]

    assert others(taints_for(before, ready(status), NOW)) == others(before)


@cases(
    ([], "cluster now does not have taints"),
    (
        [taint("k", "NoExecute"), taint("k2", "NoSchedule", value="v2")],
        "cluster now has taints([{Key:k,Effect:NoExecute},{Key:k2,Value:v2,Effect:NoSchedule}])",
    ),
)
def test_taints_are_reported(taints: list[Obj], text: str) -> None:
    assert describe(taints) == text
