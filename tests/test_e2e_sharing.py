"""Which end-to-end tests share a control plane, and so a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.sharing import Shared, shared_by, sharing_files


def test_the_files_that_share_a_control_plane_are_two_groups_and_those_of_the_dashboard_one() -> None:
    groups = sharing_files()
    assert len(set(groups.values())) == 3
    assert groups["test_fleet_page.py"] == "dashboard"
    assert {"test_karmadactl_get.py", "test_overrides.py"} <= groups.keys()
    assert "test_clusters.py" not in groups


def test_both_groups_of_a_control_plane_share_the_same_thing() -> None:
    both = {shared_by(Path(name)) for name, group in sharing_files().items() if group.startswith("three_members")}
    assert both == {"three_members"}
    assert shared_by(Path("dashboard/test_fleet_page.py")) == "dashboard"
    assert shared_by(Path("test_clusters.py")) is None


def test_what_is_shared_is_made_once_and_made_anew_after_its_end() -> None:
    history = []

    @contextmanager
    def plane() -> Iterator[int]:
        history.append("started")
        yield len(history)
        history.append("stopped")

    shared = Shared()
    assert shared.get("plane", plane) == shared.get("plane", plane) == 1
    shared.end()
    shared.end()
    assert history == ["started", "stopped"]
    assert shared.get("plane", plane) == 3
    shared.end()
