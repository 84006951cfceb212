from __future__ import annotations

from typing import Any

from karmada.dashboard import differences
from karmada.dashboard.differences import Line, comparable, difference


def deployment(replicas: int, image: str = "nginx", **metadata: Any) -> Any:
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **metadata}, "spec": spec}


def test_what_is_the_same_differs_in_nothing() -> None:
    mine = deployment(2, uid="1", resourceVersion="5", managedFields=[])
    theirs = deployment(2, uid="2", resourceVersion="9", generation=3) | {"status": {"replicas": 2}}
    assert difference(mine, theirs) == []


def test_changed_lines_are_shown_with_some_around_them() -> None:
    found = difference(deployment(5), deployment(2, "registry/nginx"))
    assert [line for line in found if line.sort in ("added", "removed")] == [
        Line("removed", "  replicas: 5"),
        Line("added", "  replicas: 2"),
        Line("removed", "      - image: nginx"),
        Line("added", "      - image: registry/nginx"),
    ]
    assert Line("same", "  name: web") in found


def test_marks_of_the_control_plane_are_not_differences() -> None:
    marked = deployment(
        1,
        labels={"app": "web", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "x"},
        annotations={"work.karmada.io/name": "w"},
    )
    assert comparable(marked)["metadata"] == {"name": "web", "labels": {"app": "web"}}


def test_far_apart_changes_have_a_gap_between_them(monkeypatch: Any) -> None:
    def data(first: str, last: str) -> Any:
        values = {f"k{nth:02}": "same" for nth in range(20)} | {"a": first, "z": last}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": values}

    assert Line("gap", "⋯") in difference(data("1", "1"), data("2", "2"))
    monkeypatch.setattr(differences, "MOST_LINES", 8)
    found = difference(data("1", "1"), data("2", "2"))
    assert found[-1].text == "only the first 8 of 27 lines were compared"
