from __future__ import annotations

from typing import Any

import msgspec
import pytest

from karmada.kube.sim.behaviours import ANNOTATION, OK, Behaviours, Outcome, Rule, parse_outcome
from karmada.kube.sim.profile import Delay
from tests.support.cases import cases

POD: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "initContainers": [{"name": "init", "image": "busybox"}],
        "containers": [{"name": "a", "image": "nginx:1.27"}, {"name": "b", "image": "redis"}],
    },
}
BAD = Outcome("never-ready")


def annotated(text: str) -> dict[str, Any]:
    return {**POD, "metadata": {**POD["metadata"], "annotations": {ANNOTATION: text}}}


@cases(
    ("crash-loop", Outcome("crash-loop")),
    ("run-for 5s exit 1", Outcome("run-for", 5.0, 1)),
    ("run-for 1m30s", Outcome("run-for", 90.0)),
    ("ready-after 10s", Outcome("ready-after", 10.0)),
    ("flap 500ms", Outcome("flap", 0.5)),
    ("slow-start 4s", Outcome("slow-start", delay=Delay(4.0))),
    ("slow-start 2s-8s", Outcome("slow-start", delay=Delay(2.0, 8.0, "uniform"))),
)
def test_an_outcome_can_be_said_in_words(text: str, wanted: Outcome) -> None:
    assert parse_outcome(text) == wanted


@cases(("run-for", 1.0), ("crash-loop", 1.0), ("ready-after", 10.0))
def test_durations_have_defaults(kind: str, seconds: float) -> None:
    assert parse_outcome(kind).after == seconds


@cases("", "explode", "run-for soon", "run-for -1s", "flap 0s", "run-for 1s exit x")
def test_words_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_outcome(text)


@cases(
    (Rule(BAD), True),
    (Rule(BAD, namespace="shop"), True),
    (Rule(BAD, namespace="other"), False),
    (Rule(BAD, labels={"app": "web"}), True),
    (Rule(BAD, labels={"app": "web", "tier": "front"}), False),
    (Rule(BAD, image="^redis"), True),
    (Rule(BAD, image="^postgres"), False),
    (Rule(BAD, owner="ReplicaSet"), True),
    (Rule(BAD, owner="web"), True),
    (Rule(BAD, owner="ReplicaSet/web"), True),
    (Rule(BAD, owner="Job/web"), False),
    (Rule(BAD, node="n1"), True),
    (Rule(BAD, node="n2"), False),
    (Rule(BAD, namespace="shop", node="n2"), False),
)
def test_a_rule_is_about_pods_that_match_all_it_names(rule: Rule, matches: bool) -> None:
    assert (rule.of(POD) is not None) == matches


def test_a_rule_by_image_means_the_containers_with_that_image() -> None:
    outcome = Rule(Outcome("image-pull-error"), image="redis|busybox").of(POD)
    assert outcome is not None
    assert outcome.containers == ("init", "b")
    assert outcome.concerns("init", init=True)
    assert not outcome.concerns("a", init=False)


def test_other_rules_mean_all_containers_but_init_containers() -> None:
    assert BAD.concerns("a", init=False)
    assert not BAD.concerns("init", init=True)


def test_the_first_rule_that_matches_decides() -> None:
    behaviours = Behaviours()
    behaviours.add("one", Rule(Outcome("oom"), namespace="other"))
    behaviours.add("two", Rule(Outcome("crash-loop"), namespace="shop"))
    behaviours.add("three", Rule(Outcome("never-ready")))
    assert behaviours.of(POD).kind == "crash-loop"
    assert list(behaviours.list()) == ["one", "two", "three"]


def test_the_pods_own_annotation_comes_before_all_rules() -> None:
    behaviours = Behaviours()
    behaviours.add("all", Rule(Outcome("oom")))
    assert behaviours.of(annotated("ready-after 3s")) == Outcome("ready-after", 3.0)
    assert behaviours.of(annotated("nonsense")).kind == "oom"


def test_without_a_rule_a_pod_is_well() -> None:
    assert Behaviours().of(POD) is OK


def test_listeners_are_notified_of_changes_only() -> None:
    behaviours = Behaviours()
    received = []
    behaviours.subscribe(lambda: received.append(behaviours.list()))
    behaviours.add("a", Rule(BAD))
    behaviours.add("a", Rule(BAD))
    assert behaviours.remove("a")
    assert not behaviours.remove("a")
    assert received == [{"a": Rule(BAD)}, {}]


def test_a_rule_survives_being_stored() -> None:
    rule = Rule(Outcome("slow-start", delay=Delay(1.0, 2.0, "uniform")), labels={"a": "b"}, image="x.*")
    assert msgspec.convert(msgspec.to_builtins(rule), Rule) == rule


def test_a_rule_with_a_broken_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="regular expression"):
        Rule(BAD, image="(")
