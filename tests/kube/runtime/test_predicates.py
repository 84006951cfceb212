from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.kube.runtime import predicates as p


def obj(spec: Any = None, **metadata: Any) -> Obj:
    return {"metadata": {"name": "a", **metadata}, "spec": spec}


ONE = obj(1, generation=1, labels={"a": "b"})


@pytest.mark.parametrize(
    ("predicate", "old", "new", "expected"),
    [
        (p.always, ONE, ONE, True),
        (p.never, None, ONE, False),
        (p.generation_changed, None, ONE, True),
        (p.generation_changed, ONE, None, True),
        (p.generation_changed, ONE, obj(2, generation=1), False),
        (p.generation_changed, ONE, obj(2, generation=2), True),
        (p.labels_changed, obj(), obj(labels={}), False),
        (p.labels_changed, ONE, obj(labels={}), True),
        (p.deletion_changed, ONE, obj(deletionTimestamp="t"), True),
        (p.generation_or_deletion_changed, ONE, obj(generation=1, deletionTimestamp="t"), True),
        (p.generation_or_deletion_changed, ONE, obj(1, generation=1), False),
        (p.generation_or_deletion_changed, ONE, obj(2, generation=1), True),
        (p.spec_changed, ONE, obj(1), False),
        (p.spec_changed, ONE, obj(2), True),
        (p.field_changed("spec", "a"), obj({"a": 1}), obj({"a": 1, "b": 2}), False),
        (p.field_changed("spec", "a"), obj({"a": 1}), obj(None), True),
        (p.added, None, ONE, True),
        (p.added, ONE, ONE, False),
        (p.updated, ONE, ONE, True),
        (p.updated, ONE, None, False),
        (p.deleted, ONE, None, True),
        (p.deleted, None, ONE, False),
        (p.any_of(p.added, p.deleted), ONE, None, True),
        (p.all_of(p.updated, p.spec_changed), ONE, obj(1), False),
        (p.not_(p.added), None, ONE, False),
        (p.matching(lambda o: o["spec"] == 1), ONE, obj(2), True),
        (p.matching(lambda o: o["spec"] == 3), ONE, None, False),
    ],
)
def test_a_predicate_reports_whether_a_change_matters(predicate: Any, old: Any, new: Any, expected: bool) -> None:
    assert predicate(old, new) is expected
