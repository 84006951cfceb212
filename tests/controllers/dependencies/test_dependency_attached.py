"""Attached bindings: what those who need an object make of it together."""

from __future__ import annotations

from karmada.controllers.dependencies.attached import strategy, with_snapshot, without_snapshot
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases


def needing(conflict: str | None = None, preserve: bool | None = None) -> Obj:
    spec: Obj = {}
    if conflict is not None:
        spec["conflictResolution"] = conflict
    if preserve is not None:
        spec["preserveResourcesOnDeletion"] = preserve
    return {"metadata": {"name": "x"}, "spec": spec}


BY_CONFLICT = "ConflictResolution conflicted (Overwrite vs Abort)"
BY_PRESERVATION = "PreserveResourcesOnDeletion conflicted (true vs false)"


@cases(
    ([needing()], "Abort", False, ()),
    ([needing("Overwrite", True)], "Overwrite", True, ()),
    ([needing("Abort"), needing(None, False)], "Abort", False, ()),
    ([needing("Overwrite"), needing("Abort")], "Overwrite", False, (BY_CONFLICT,)),
    ([needing("Abort", True), needing("Abort")], "Abort", True, (BY_PRESERVATION,)),
    ([needing("Overwrite"), needing("", True)], "Overwrite", True, (BY_CONFLICT, BY_PRESERVATION)),
)
def test_the_bolder_answer_wins(
    dependents: list[Obj], conflict: str, preserve: bool, disagreements: tuple[str, ...]
) -> None:
    for order in (dependents, dependents[::-1]):
        found = strategy(order)
        assert (found.conflict_resolution, found.preserve, found.disagreements) == (conflict, preserve, disagreements)


def test_disagreements_are_reported_in_one_sentence() -> None:
    found = strategy([needing("Overwrite"), needing("Abort", True)])
    assert found.warning == f"Dependency policy conflict detected: {BY_CONFLICT}; {BY_PRESERVATION}."


def test_a_snapshot_takes_its_former_place() -> None:
    first, second = {"namespace": "d", "name": "a"}, {"namespace": "d", "name": "b"}
    new = {**first, "clusters": [{"name": "m1"}]}
    assert with_snapshot([first, second], new) == [new, second]
    assert with_snapshot([second], new) == [second, new]
    assert with_snapshot([], new) == [new]
    assert without_snapshot([first, second], Key("d", "a")) == [second]
