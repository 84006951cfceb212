from __future__ import annotations

from karmada.controllers.cluster_status.thresholds import Memory, Thresholds
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_000_000.0
MINUTES = 600.0


def condition(status: str, origin: str) -> Obj:
    return {"type": "Ready", "status": status, "origin": origin}


@cases(
    (None, None, "False", "observed"),
    ("True", None, "False", "observed"),
    (None, ("True", 5), "False", "observed"),
    ("True", ("False", 15), "False", "stored"),
    ("True", ("False", 29.999), "False", "stored"),
    ("True", ("False", 30), "False", "observed"),
    ("False", ("True", 15), "True", "stored"),
    ("False", ("True", 30), "True", "observed"),
    ("True", ("True", MINUTES), "False", "stored"),
    ("True", ("True", MINUTES), "True", "observed"),
    ("Unknown", ("True", 5), "False", "observed"),
    ("Unknown", ("False", 5), "False", "observed"),
    ("Unknown", ("True", MINUTES), "True", "observed"),
    ("Unknown", ("False", MINUTES), "True", "stored"),
)
def test_which_condition_counts(
    stored: str | None, remembered: tuple[str, float] | None, observed: str, counts: str
) -> None:
    memory = Memory(remembered[0], NOW - remembered[1]) if remembered else None
    there = condition(stored, "stored") if stored else None
    _, found = Thresholds(30, 30).settle(memory, there, condition(observed, "observed"), NOW)
    assert found["origin"] == counts


def test_a_new_observation_starts_its_time_and_a_repeated_one_keeps_it() -> None:
    rules, stored = Thresholds(30, 30), condition("True", "stored")
    first, _ = rules.settle(Memory("True", 0), stored, condition("False", "observed"), NOW)
    assert first == Memory("False", NOW)
    again, _ = rules.settle(first, stored, condition("False", "observed"), NOW + 10)
    assert again == first


def test_success_and_failure_have_thresholds_of_their_own() -> None:
    rules = Thresholds(success=10, failure=60)
    seen = Memory("True", NOW - 10)
    assert (
        rules.settle(seen, condition("False", "stored"), condition("True", "observed"), NOW)[1]["origin"] == "observed"
    )
    seen = Memory("False", NOW - 59)
    assert rules.settle(seen, condition("True", "stored"), condition("False", "observed"), NOW)[1]["origin"] == "stored"


def test_without_a_stored_condition_nothing_is_learned() -> None:
    memory = Memory("True", 5)
    assert Thresholds(30, 30).settle(memory, None, condition("False", "observed"), NOW)[0] is memory
