"""Which policy and rule made which change."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.overrides.engine import Overrides
from karmada.overrides.errors import OverrideError
from karmada.overrides.explain import Explained, explain
from tests.support.overriding import cluster, config_map, container, cop, deployment, op, rule

CONTAINERS = ("spec", "template", "spec", "containers")


def explained(obj: Obj, *policies: Obj) -> Explained:
    return explain(Overrides.of_objects([*policies, cluster()]), obj, "m1")


def reported(obj: Obj, *policies: Obj) -> list[tuple[Any, ...]]:
    """(place, operation, before, after, who)."""
    return [(*change[:4], str(change)) for change in explained(obj, *policies).changes]


def plain(operator: str, path: str, value: Any = None) -> Obj:
    return rule(plaintext=[{"operator": operator, "path": path, "value": value}])


def test_every_change_has_its_policy_rule_and_overrider() -> None:
    labels = rule(labelsOverrider=[{"operator": "add", "value": {"a": "1"}}, {"operator": "add", "value": {"a": "2"}}])
    tag = rule(imageOverrider=[{"component": "Tag", "operator": "replace", "value": "2"}])
    assert reported(deployment(), cop("c", tag), op("p", rule({"clusterNames": ["m2"]}), labels)) == [
        (
            (*CONTAINERS, 0, "image"),
            "replace",
            "nginx:1.19",
            "nginx:2",
            "ClusterOverridePolicy c, spec.overrideRules[0].overriders.imageOverrider[0]",
        ),
        (
            ("metadata", "labels"),
            "add",
            None,
            {"a": "1"},
            "OverridePolicy default/p, spec.overrideRules[1].overriders.labelsOverrider[0]",
        ),
        (
            ("metadata", "labels", "a"),
            "replace",
            "1",
            "2",
            "OverridePolicy default/p, spec.overrideRules[1].overriders.labelsOverrider[1]",
        ),
    ]


def test_what_comes_out_is_what_is_applied() -> None:
    overrides = Overrides.of_objects([op("p", plain("add", "/spec/paused", True)), cluster()])
    obj = deployment()
    made = explain(overrides, obj, "m1")
    assert made.applied == overrides.apply(obj, "m1")
    assert made.applied.manifest["spec"]["paused"] is True


def test_an_overrider_that_changes_nothing_is_not_reported() -> None:
    assert (
        reported(deployment(), op("p", rule(), rule(labelsOverrider=[{"operator": "remove", "value": {"x": ""}}])))
        == []
    )


def test_a_removal_reports_what_was_there() -> None:
    (change,) = explained(config_map(a="1", b="2"), op("p", plain("remove", "/data/a"))).changes
    assert change[:4] == (("data", "a"), "remove", "1", None)


def test_places_move_with_the_elements_of_a_list() -> None:
    tag = rule(imageOverrider=[{"component": "Tag", "operator": "replace", "value": "2"}])
    first = "/spec/template/spec/containers/0"
    changes = explained(deployment(), op("a", tag), op("b", plain("add", first, container("proxy")))).changes
    assert [change.place for change in changes] == [(*CONTAINERS, 1, "image"), (*CONTAINERS, 0)]
    two = deployment(container("x"), container("y"))
    changes = explained(two, op("a", tag), op("b", plain("remove", first))).changes
    assert [(change.place, change.lost) for change in changes] == [
        (CONTAINERS, True),
        ((*CONTAINERS, 0, "image"), False),
        ((*CONTAINERS, 0), False),
    ]


def test_two_removals_from_the_same_position_are_both_reported() -> None:
    obj = {**config_map(), "list": ["a", "b", "c"]}
    changes = explained(obj, op("p", plain("remove", "/list/0"), plain("remove", "/list/0"))).changes
    assert [(change.before, change.lost) for change in changes] == [("a", False), ("b", False)]


def test_an_error_is_an_error_here_too() -> None:
    with pytest.raises(OverrideError):
        explained(deployment(), op("p", plain("remove", "/spec/none")))
