"""References: how they are noted, found again and shown."""

from __future__ import annotations

from karmada.controllers.dependencies.references import annotation_of, dependency_index, indexed_under, refers_to, shown
from karmada.controllers.templates import Ref
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "cm"}
SELECTOR = {
    "matchLabels": {"b": "2", "a": "1"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["x", "y"]}, {"key": "d", "operator": "Exists"}],
}
LABELLED = {"labelSelector": SELECTOR, "kind": "Secret", "apiVersion": "v1", "namespace": "default"}
CM = Ref(GVK("", "v1", "ConfigMap"), "default", "cm")


def test_the_note_has_its_keys_in_order() -> None:
    assert annotation_of([NAMED, LABELLED]) == (
        '[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"cm"},'
        '{"apiVersion":"v1","kind":"Secret","namespace":"default","labelSelector":{"matchLabels":{"a":"1","b":"2"},'
        '"matchExpressions":[{"key":"c","operator":"In","values":["x","y"]},{"key":"d","operator":"Exists"}]}}]'
    )
    assert annotation_of([]) == "[]"


def test_events_show_them_as_before() -> None:
    assert shown([NAMED, NAMED]) == (
        "[{APIVersion:v1 Kind:ConfigMap Namespace:default Name:cm LabelSelector:nil} "
        "{APIVersion:v1 Kind:ConfigMap Namespace:default Name:cm LabelSelector:nil}]"
    )
    assert shown([]) == "[]"
    assert shown([LABELLED]) == (
        "[{APIVersion:v1 Kind:Secret Namespace:default Name: LabelSelector:&LabelSelector{"
        "MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},"
        "LabelSelectorRequirement{Key:d,Operator:Exists,Values:[],},},}}]"
    )


@cases(
    (NAMED, {}, True),
    (NAMED, None, True),
    ({**NAMED, "name": "other"}, {}, False),
    ({**NAMED, "namespace": "other"}, {}, False),
    ({**NAMED, "kind": "Secret"}, {}, False),
    ({**NAMED, "apiVersion": "v2"}, {}, False),
    ({**NAMED, "name": "", "labelSelector": {"matchLabels": {"a": "1"}}}, {"a": "1"}, True),
    ({**NAMED, "name": "", "labelSelector": {"matchLabels": {"a": "1"}}}, {"a": "2"}, False),
    ({**NAMED, "name": "", "labelSelector": {"matchLabels": {"a": "1"}}}, None, False),
    ({**NAMED, "name": "", "labelSelector": {"matchExpressions": [{"key": "a"}]}}, {"a": "1"}, False),
    ({**NAMED, "name": "cm", "labelSelector": {"matchLabels": {"a": "1"}}}, {}, True),
)
def test_what_a_reference_means(dependency: Obj, labels: dict[str, str] | None, refers: bool) -> None:
    assert refers_to(dependency, CM, labels) is refers


def binding(note: str | None) -> Obj:
    annotations = {} if note is None else {"resourcebinding.karmada.io/dependencies": note}
    return {"metadata": {"name": "b", "namespace": "default", "annotations": annotations}}


def test_an_object_finds_the_notes_that_may_name_it() -> None:
    by_name, by_labels = indexed_under(CM)
    assert list(dependency_index(binding(annotation_of([NAMED])))) == [by_name]
    assert list(dependency_index(binding(annotation_of([{**NAMED, "name": "", "labelSelector": {}}])))) == [by_labels]


@cases(None, "", "null", "[]", "{", "7", '["x"]')
def test_a_note_that_says_nothing_is_found_nowhere(note: str | None) -> None:
    assert list(dependency_index(binding(note))) == []
