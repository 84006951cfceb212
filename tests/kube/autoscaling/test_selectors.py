"""Autoscalers that select the same pods are found without comparing each with each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.autoscaling.selectors import PodSelectors
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases


def pod(**labels: str) -> Obj:
    return {"metadata": {"name": "p", "labels": labels}}


A, B = Key("ns", "a"), Key("ns", "b")


@cases(
    ("app=web", [pod(app="web")], [B]),
    ("app=db", [pod(app="web")], []),
    ("tier=front", [pod(app="web"), pod(app="web", tier="front")], [B]),
    ("app in (web,db)", [pod(app="web")], [B]),
    ("app notin (db)", [pod(app="web")], [B]),
    ("app=web,tier=back", [pod(app="web", tier="front")], []),
    ("app=web", [], []),
)
def test_others_that_select_some_of_the_pods(other: str, pods: list[Obj], found: list[Key]) -> None:
    selectors = PodSelectors()
    selectors.register(A, parse_labels("app=web"))
    selectors.register(B, parse_labels(other))
    assert selectors.others(A, pods) == found
    problem = "pods by selector app=web are controlled by multiple HPAs: [ns/a ns/b]" if found else ""
    assert selectors.ambiguity(A, "app=web", pods) == problem


def test_other_namespaces_do_not_matter_and_the_latest_selector_counts() -> None:
    selectors = PodSelectors()
    selectors.register(Key("other", "b"), parse_labels("app=web"))
    selectors.register(B, parse_labels("app=web"))
    selectors.register(B, parse_labels("app=db"))
    assert selectors.others(A, [pod(app="web")]) == []
    selectors.forget(B)
    assert selectors.others(A, [pod(app="db")]) == []
    assert len(selectors) == 1


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS = st.sampled_from(["a=x", "b=y", "a=x,b=y", "a in (x,y)", "a!=x", "!b", "b"])


@given(st.lists(SELECTORS, min_size=1, max_size=5), st.lists(LABELS, max_size=4))
def test_the_index_finds_what_comparing_all_would(selectors: list[str], pods: list[dict[str, str]]) -> None:
    registered, keys = PodSelectors(), [Key("ns", f"h{number}") for number in range(len(selectors))]
    for key, selector in zip(keys, selectors, strict=True):
        registered.register(key, parse_labels(selector))
    expected = [
        key
        for key, selector in zip(keys[1:], selectors[1:], strict=True)
        if any(parse_labels(selector).matches(labels) for labels in pods)
    ]
    assert registered.others(keys[0], [pod(**labels) for labels in pods]) == expected
