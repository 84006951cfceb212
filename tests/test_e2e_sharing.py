"""Which end-to-end tests share a control plane, and so a worker."""

from __future__ import annotations

from tests.e2e.sharing import sharing_files


def test_the_files_that_share_a_control_plane_are_two_groups_and_those_of_the_dashboard_one() -> None:
    groups = sharing_files()
    assert len(set(groups.values())) == 3
    assert groups["test_fleet_page.py"] == "dashboard"
    assert {"test_karmadactl_get.py", "test_overrides.py"} <= groups.keys()
    assert "test_clusters.py" not in groups
