from __future__ import annotations

import pytest

from karmada.kube.runtime.features import Feature, FeatureGates, Stage
from tests.support.cases import cases


@pytest.fixture
def gates() -> FeatureGates:
    return FeatureGates(
        {
            "New": Feature(False, Stage.ALPHA),
            "Ripe": Feature(True, Stage.BETA),
            "Old": Feature(True, Stage.GA, locked=True),
        }
    )


def test_gates_start_at_their_defaults(gates: FeatureGates) -> None:
    assert [gates.enabled(name) for name in ("New", "Ripe", "Old")] == [False, True, True]


def test_a_flag_switches_gates(gates: FeatureGates) -> None:
    gates.set("New=true, Ripe=F,Old=true")
    assert [gates.enabled(name) for name in ("New", "Ripe", "Old")] == [True, False, True]


def test_a_named_gate_wins_over_its_stage(gates: FeatureGates) -> None:
    gates.set("AllAlpha=true,AllBeta=false,Ripe=true")
    assert gates.enabled("New")
    assert gates.enabled("Ripe")
    gates.set("New=false")
    assert not gates.enabled("New")


@cases(
    ("Nope=true", "unrecognized feature gate: Nope"),
    ("New", "missing bool value for New"),
    ("New=maybe", 'invalid value of New=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
    ("Old=false", "cannot set feature gate Old to false, feature is locked to true"),
)
def test_a_wrong_flag_is_refused_and_changes_nothing(text: str, message: str, gates: FeatureGates) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(") + "$"):
        gates.set(f"Ripe=false,{text}")
    assert gates.enabled("Ripe")


def test_help_lists_what_can_be_switched(gates: FeatureGates) -> None:
    assert gates.describe() == [
        "AllAlpha=true|false (ALPHA - default=false)",
        "AllBeta=true|false (BETA - default=false)",
        "New=true|false (ALPHA - default=false)",
        "Ripe=true|false (BETA - default=true)",
    ]


def test_a_gate_cannot_mean_two_things(gates: FeatureGates) -> None:
    gates.add("New", Feature(False, Stage.ALPHA))
    with pytest.raises(ValueError, match="already exists"):
        gates.add("New", Feature(True, Stage.BETA))
