"""KEY=VALUE and KEY-, for labels and annotations."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.cli.changing.metadata import Changes, changed, parse_changes
from karmada.cli.commands.annotate import ANNOTATIONS
from karmada.cli.commands.label import LABELS, outcome
from karmada.cli.targeting.connect import Failure
from tests.support.cases import cases


def obj(**labels: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a"}
    return {"metadata": {**metadata, "labels": labels} if labels else metadata}


def test_words_before_the_first_change_are_resources() -> None:
    assert parse_changes(LABELS, ["pods", "a", "x=1", "y-"]) == Changes(("pods", "a"), {"x": "1"}, ("y",))
    assert parse_changes(ANNOTATIONS, ["pods", "a", "x=a=b c"]) == Changes(("pods", "a"), {"x": "a=b c"}, ())


@cases(
    (["pods", "x=1", "a"], "all resources must be specified before label changes: a"),
    (["pods", "a", "x=1", "x-"], "can not both modify and remove a label in the same command"),
    (["pods", "a", "=1"], "unknown label spec: =1"),
    (["pods", "a", "x=a=b"], 'invalid label value: "x=a=b": a valid label must be'),
)
def test_words_that_make_no_sense(words: list[str], refused: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_changes(LABELS, words)
    assert failed.value.message.startswith(f"error: {refused}")


def test_changes_leave_the_object_alone_and_everything_else_in_it() -> None:
    before = obj(a="1", b="2")
    after = changed(LABELS, before, Changes((), {"c": "3"}, ("a",)), overwrite=False, resource_version="7")
    assert after == {"metadata": {"name": "a", "labels": {"b": "2", "c": "3"}, "resourceVersion": "7"}}
    assert before == obj(a="1", b="2")


def test_values_are_only_overwritten_when_requested() -> None:
    changes = Changes((), {"a": "2", "b": "2"}, ())
    with pytest.raises(Failure, match=r"'a' already has a value \(1\), and --overwrite is false"):
        changed(LABELS, obj(a="1"), changes, overwrite=False)
    assert changed(LABELS, obj(a="1"), changes, overwrite=True) == obj(a="2", b="2")
    assert changed(LABELS, obj(a="2"), changes, overwrite=False) == obj(a="2", b="2")


def test_removing_what_is_not_there_adds_nothing() -> None:
    assert changed(ANNOTATIONS, obj(), Changes((), {}, ("a",)), overwrite=False) == obj()


@cases(
    (obj(a="1"), obj(a="1"), False, "not labeled"),
    (obj(a="1"), obj(), False, "unlabeled"),
    (obj(a="1"), obj(), True, "labeled"),
    (obj(), obj(a="1"), False, "labeled"),
    (obj(a="1"), obj(b="22"), False, "labeled"),
)
def test_what_was_done_to_labels(before: Any, after: Any, overwrite: bool, done: str) -> None:
    assert outcome(before, after, overwrite) == done
