"""A Work's status in the making."""

from __future__ import annotations

from karmada.controllers.execution.status import Draft
from karmada.kube.objects.types import Obj

NOW = 1_700_000_000.0


def entry(ordinal: int, health: str = "Healthy") -> Obj:
    return {"identifier": {"ordinal": ordinal, "name": f"x{ordinal}"}, "health": health}


def test_what_is_the_same_is_not_written() -> None:
    first = Draft({}, NOW)
    assert first.dispatching(False) == "Work is being dispatched to member clusters."
    first.set("Applied", "True", "AppliedSuccessful", "m")
    assert first.report(entry(0))
    status = first.patch()
    assert status.keys() == {"conditions", "manifestStatuses"}
    again = Draft({"status": status}, NOW + 60)
    assert again.dispatching(False) == ""
    again.set("Applied", "True", "AppliedSuccessful", "m")
    assert not again.report(entry(0))
    again.keep([entry(0)["identifier"]])
    assert again.patch() == {}


def test_only_a_change_of_the_status_moves_the_time() -> None:
    first = Draft({}, NOW)
    first.set("Applied", "False", "AppliedFailed", "a")
    second = Draft({"status": first.patch()}, NOW + 60)
    second.set("Applied", "False", "AppliedFailed", "b")
    [changed] = second.patch()["conditions"]
    assert (changed["message"], changed["lastTransitionTime"]) == ("b", "2023-11-14T22:13:20Z")
    third = Draft({"status": second.patch()}, NOW + 60)
    third.set("Applied", "True", "AppliedSuccessful", "c")
    assert third.patch()["conditions"][0]["lastTransitionTime"] == "2023-11-14T22:14:20Z"


def test_reports_are_kept_in_order_and_only_for_manifests_there_are() -> None:
    draft = Draft({}, NOW)
    for ordinal in (2, 0, 1):
        draft.report(entry(ordinal))
    assert [kept["identifier"]["ordinal"] for kept in draft.manifests] == [0, 1, 2]
    assert draft.report(entry(1, "Unhealthy"))
    draft.keep([entry(0)["identifier"], entry(1)["identifier"]])
    assert draft.patch()["manifestStatuses"] == [entry(0), entry(1, "Unhealthy")]


def test_suspension_comes_and_goes() -> None:
    draft = Draft({}, NOW)
    assert draft.dispatching(True) == "Work dispatching is in a suspended state."
    assert draft.dispatching(True) == ""
    assert draft.dispatching(False) == "Work is being dispatched to member clusters."
    assert draft.status_of("Dispatching") == "True"
