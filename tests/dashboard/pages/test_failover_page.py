from __future__ import annotations

from karmada.dashboard.pages.failover import segments_of
from tests.dashboard.pages.test_policy_pages import clusters
from tests.support.dashboard_client import DashboardPlane


def test_a_timeline_is_cut_where_what_serves_changes() -> None:
    timeline = [{"seconds": 0.0, "serving": 4}, {"seconds": 10.0, "serving": 0}, {"seconds": 60.0, "serving": 2},
                {"seconds": 70.0, "serving": 4}]  # fmt: skip
    assert [(one.start, one.length, one.kind) for one in segments_of(timeline, 100.0)] == [
        (0.0, 10.0, "good"),
        (10.0, 50.0, "bad"),
        (60.0, 10.0, "warn"),
        (70.0, 30.0, "good"),
    ]
    assert segments_of([{"seconds": 0.0, "serving": 0}], 5.0)[0].kind == "good", "nothing served before either"


async def test_troubled_clusters_are_shown_and_drills_are_checked_before_they_run(plane: DashboardPlane) -> None:
    browser = plane.browser
    await browser.log_in()
    assert "No cluster has joined yet" in (await browser.get("/failover")).text
    await clusters(plane.client, "m1", "m2")
    page = (await browser.get("/failover")).text
    assert 'name="fail" value="m2"' in page
    assert "nothing is leaving a cluster." in (await browser.get("/failover/evictions")).text
    for form in ({}, {"fail": "moon"}, {"fail": "m1", "minutes": "x"}, {"fail": "m1", "minutes": "7"}):
        refused = await browser.post("/failover/drill", {"csrf": browser.csrf, **form})
        assert "choose" in refused.text


async def test_without_rights_there_is_nothing_to_see(plane: DashboardPlane) -> None:
    await plane.browser.log_in("nobody-token")
    assert (await plane.browser.get("/failover")).status == 403
