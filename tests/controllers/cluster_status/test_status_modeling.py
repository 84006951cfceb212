from __future__ import annotations

from karmada.api.cluster import default_resource_models
from karmada.controllers.cluster_status.modeling import NO_GRADE, Grades
from karmada.estimator.requests import node_amounts
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

PLENTY = {"pods": "110"}


def model(grade: int, **begins: str) -> Obj:
    return {"grade": grade, "ranges": [{"name": name, "min": low, "max": "9"} for name, low in begins.items()]}


@cases(
    ("3", "20Gi", 2),
    ("8", "8Gi", 1),
    ("500m", "100Gi", 0),
    ("2", "16Gi", 2),
    ("1999m", "16Gi", 1),
    ("200", "2Ti", 8),
    ("-100m", "8Gi", NO_GRADE),
    ("0", "0", 0),
)
def test_a_node_is_of_the_highest_grade_it_has_enough_for(cpu: str, memory: str, grade: int) -> None:
    grades = Grades.of(default_resource_models())
    assert grades is not None
    assert grades.place(node_amounts({"cpu": cpu, "memory": memory, **PLENTY}), {}, 0) == grade


def test_what_pods_use_is_taken_off() -> None:
    grades = Grades.of(default_resource_models())
    assert grades is not None
    node = node_amounts({"cpu": "4", "memory": "64Gi", **PLENTY})
    assert grades.place(node, {"cpu": 1}, 1) == 2
    assert grades.place(node, {"cpu": 4001}, 1) == NO_GRADE


def test_a_resource_the_node_does_not_have_counts_as_none_of_it() -> None:
    grades = Grades.of([model(0, cpu="0", memory="0"), model(1, cpu="1", memory="1024")])
    assert grades is not None
    assert grades.place({}, {}, 0) == 0
    assert grades.place(node_amounts(PLENTY), {"cpu": 500}, 1) == 0


@cases((0, 1), (1, 1), (2, NO_GRADE), (3, NO_GRADE))
def test_a_node_without_places_for_pods_is_of_no_grade(pods: int, grade: int) -> None:
    grades = Grades.of([model(0, cpu="0"), model(1, cpu="1")])
    assert grades is not None
    assert grades.place(node_amounts({"cpu": "1", "pods": "2"}), {}, pods) == grade


@cases(
    [],
    [model(0, cpu="0"), model(1, cpu="1", memory="1")],
    [model(0, cpu="0"), model(1, memory="1")],
)
def test_models_that_do_not_line_up_are_no_models(models: list[Obj]) -> None:
    assert Grades.of(models) is None
