"""Words on the command line, and what they make of a cluster's taints."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.cli.commands.cordon import cordoned, uncordoned
from karmada.cli.commands.taint import BadTaint, Order, changed_taints, parse_order
from tests.support.cases import cases

Taint = dict[str, Any]


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


@cases(
    ("cluster m1 a=b:NoExecute", Order(["m1"], [taint("a", "NoExecute", "b")])),
    ("clusters m1 m2 a:NoSchedule", Order(["m1", "m2"], [taint("a")])),
    ("CLUSTER m1 a=:NoSchedule", Order(["m1"], [taint("a")])),
    ("cluster m1 a-", Order(["m1"], [], [{"key": "a"}])),
    ("cluster m1 a:NoExecute-", Order(["m1"], [], [taint("a", "NoExecute")])),
    ("cluster m1 a=b:PreferNoSchedule", Order(["m1"], [taint("a", "PreferNoSchedule", "b")])),
    ("cluster m1 x.io/a:NoSchedule b-", Order(["m1"], [taint("x.io/a")], [{"key": "b"}])),
)
def test_words_become_an_order(words: str, order: Order) -> None:
    assert parse_order(words.split()) == order


@cases(
    ("", "at least one resource name must be specified"),
    ("cluster a:NoSchedule", "at least one resource name must be specified"),
    ("cluster m1", "at least one taint update is required"),
    ("node m1 a:NoSchedule", 'invalid resource type node, only ["cluster" "clusters"] are supported'),
    ("cluster m1 a:NoSchedule m2", "all resources must be specified before taint changes: m2"),
    ("cluster m1 a=b", "invalid taint spec: a=b"),
    ("cluster m1 a:Whatever", "invalid taint effect: Whatever, unsupported taint effect"),
    ("cluster m1 a:", "invalid taint effect: , unsupported taint effect"),
    ("cluster m1 a:NoSchedule:NoExecute", "invalid taint spec: a:NoSchedule:NoExecute"),
    ("cluster m1 a=b=c:NoSchedule", "invalid taint spec: a=b=c:NoSchedule"),
    (
        "cluster m1 a=1:NoSchedule a=2:NoSchedule",
        "duplicated taints with the same key and effect: a=2:NoSchedule",
    ),
    (
        "cluster m1 a:NoSchedule a:NoSchedule-",
        'can not both modify and remove the following taint(s) in the same command: {"a":"NoSchedule"}',
    ),
    (
        "cluster m1 a:NoSchedule a-",
        'can not both modify and remove the following taint(s) in the same command: {"a":""}',
    ),
)
def test_words_that_make_no_sense_are_refused(words: str, message: str) -> None:
    with pytest.raises(BadTaint) as caught:
        parse_order(words.split())
    assert str(caught.value) == message


@cases("-a:NoSchedule", "a/b/c:NoSchedule", "a=b c:NoSchedule", "=x:NoSchedule")
def test_keys_and_values_are_those_of_labels(word: str) -> None:
    with pytest.raises(BadTaint, match="invalid taint spec"):
        parse_order(["cluster", "m1", word])


A, B, AX = taint("a", value="old"), taint("b"), taint("a", "NoExecute")


@cases(
    ("c:NoSchedule", [A, B], False, [taint("c"), A, B], "tainted"),
    ("a=new:NoSchedule", [B, A], True, [taint("a", value="new"), B], "modified"),
    ("a:NoExecute", [A], False, [AX, A], "tainted"),
    ("a-", [A, B, AX], False, [B], "untainted"),
    ("a:NoExecute-", [A, B, AX], False, [A, B], "untainted"),
    ("c:NoSchedule b-", [A, B], False, [taint("c"), A], "modified"),
)
def test_new_taints_come_first_and_the_rest_keeps_its_order(
    words: str, before: list[Taint], overwrite: bool, after: list[Taint], word: str
) -> None:
    order = parse_order(["cluster", "m1", *words.split()])
    assert changed_taints("m1", before, order, overwrite=overwrite) == after
    assert order.done(overwrite) == word


@cases(
    ("a:NoSchedule", "cluster m1 already has a taint(s) with same effect(s) and --overwrite is false"),
    (
        "a:NoSchedule b:NoSchedule",
        "cluster m1 already has a,b taint(s) with same effect(s) and --overwrite is false",
    ),
    ("c:NoExecute-", 'taint "c:NoExecute" not found'),
    ("c-", 'taint "c" not found'),
)
def test_what_does_not_fit_the_taints_there_are_is_refused(words: str, message: str) -> None:
    order = parse_order(["cluster", "m1", *words.split()])
    with pytest.raises(BadTaint) as caught:
        changed_taints("m1", [A, B], order, overwrite=False)
    assert str(caught.value) == message


CORDON = taint("cluster.karmada.io/unschedulable")


@cases(([], [CORDON]), ([A], [A, CORDON]), ([CORDON], None), ([taint(CORDON["key"], "NoExecute")], ...))
def test_cordon_appends_its_taint(before: list[Taint], after: Any) -> None:
    assert cordoned(before) == ([*before, CORDON] if after is ... else after)


@cases(([], None), ([CORDON], []), ([A, CORDON], [A]), ([CORDON, A, B], [B, A]), ([A, CORDON, B], [A, B]))
def test_uncordon_puts_the_last_taint_into_the_gap(before: list[Taint], after: list[Taint] | None) -> None:
    assert uncordoned(before) == after
