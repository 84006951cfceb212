"""Events, quota, scaling and search: what is shown of objects, and the pages over a control plane in memory."""

from __future__ import annotations

import re
import time
from typing import Any

from karmada.api.autoscaling import FederatedHPA
from karmada.api.policy import FederatedResourceQuota
from karmada.dashboard.object_events import time_of
from karmada.dashboard.pages.events import histogram, listed, newest, slim
from karmada.dashboard.pages.quota import limits_of, quota_of
from karmada.dashboard.pages.scaling import autoscaler_of, cron_of, number_of, replicas_of
from karmada.dashboard.pages.search import link_of, query_of
from karmada.kube.objects.times import rfc3339
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane
from tests.support.objects import kube_object

CPU = {"type": "Utilization", "averageUtilization": 60}
RPS = {"type": "AverageValue", "averageValue": "1k"}
NOW = 1_700_000_000.0
HPA: Any = kube_object(FederatedHPA.gvk.api_version, "FederatedHPA", "web", "default") | {
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": CPU}},
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": RPS}},
        ],
    },
}
STATUS: Any = {
    "currentReplicas": 4,
    "desiredReplicas": 6,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 80, "averageValue": "80m"}}}
    ],
}


def event(seconds_ago: float, reason: str = "Seen", kind: str = "Normal", **more: Any) -> Any:
    about = {"kind": "Deployment", "namespace": "prod", "name": "web"}
    times = {"lastTimestamp": rfc3339(NOW - seconds_ago)}
    return {"metadata": {}, "type": kind, "reason": reason, "involvedObject": about, **times, **more}


class Events:
    """As a client that lists so many of them, page by page."""

    def __init__(self, count: int) -> None:
        self.events = [event(one, str(one), eventTime=None) for one in range(count)]

    async def list(self, _gvr: Any, _namespace: str, *, limit: int, continue_: str, **_: Any) -> Any:
        begin = int(continue_ or 0)
        more = {"continue": str(begin + limit)} if begin + limit < len(self.events) else {}
        return {"metadata": {"resourceVersion": "7", **more}, "items": self.events[begin : begin + limit]}


@cases((0, 0, False), (1500, 1500, False), (2000, 2000, False), (3001, 3000, True))
async def test_all_events_are_read_up_to_a_limit_and_without_what_is_not_shown(
    count: int, read: int, cut: bool
) -> None:
    client: Any = Events(count)
    found = await listed(client, ("", "prod"), most=3000)
    assert (len(found.events), found.cut, found.version) == (read, cut, "7")
    assert all(one.keys() == {"at", "type", "reason", "involvedObject"} for one in found.events)


def test_the_newest_events_come_first_and_words_and_type_select_them() -> None:
    events = [
        slim(one) for one in (event(60, "Old"), event(1, "New", message="to member1"), event(30, "Bad", "Warning"))
    ]
    assert [one["reason"] for one in newest(events)] == ["New", "Bad", "Old"]
    assert [one["reason"] for one in newest(events, warnings=True)] == ["Bad"]
    assert [one["reason"] for one in newest(events, words=["prod", "member"])] == ["New"]
    assert newest(events, words=["moon"]) == []


@cases(
    ({"lastTimestamp": "b"}, "b"),
    ({"lastTimestamp": None, "eventTime": "c"}, "c"),
    ({"series": {"lastObservedTime": "d"}, "lastTimestamp": "b"}, "d"),
    ({"lastTimestamp": None, "metadata": {"creationTimestamp": "a"}}, "a"),
)
def test_an_event_has_the_time_it_was_seen_last(more: Any, stamp: str) -> None:
    assert time_of(event(0) | more) == stamp


def test_events_are_counted_by_minute_and_type() -> None:
    bars = histogram([slim(one) for one in (event(10), event(61), event(70, kind="Warning"), event(7200))], NOW)
    assert [(bar.ago, bar.normal, bar.warnings) for bar in bars[-2:]] == [(1, 1, 1), (0, 1, 0)]
    assert sum(bar.normal + bar.warnings for bar in bars) == 3


def test_limits_show_what_is_used_of_them() -> None:
    cpu, memory, pods = limits_of({"cpu": "4", "memory": "1Gi", "pods": "0"}, {"cpu": "1500m", "memory": "2Gi"})
    assert (cpu.share, cpu.over, cpu.used) == (38, False, "1500m")
    assert (memory.share, memory.over) == (100, True)
    assert (pods.share, pods.over) == (0, False)


def test_a_quota_without_a_status_shows_its_limits() -> None:
    found = quota_of({"metadata": {"name": "q", "namespace": "prod"}, "spec": {"overall": {"cpu": "4"}}})
    assert [(one.resource, one.used) for one in found.overall] == [("cpu", "0")]


def test_metrics_stand_beside_their_targets() -> None:
    found = autoscaler_of({**HPA, "status": STATUS})
    assert [(one.name, one.current, one.target) for one in found.metrics] == [
        ("cpu", "80 %", "60 %"),
        ("rps", "–", "1k"),
    ]
    assert found.state == ("warn", "Not evaluated yet")


@cases(
    ([{"type": "AbleToScale", "status": "True"}], ("good", "Scaling")),
    ([{"type": "ScalingActive", "status": "False", "reason": "FailedGetMetrics"}], ("bad", "FailedGetMetrics")),
    ([{"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}], ("warn", "TooManyReplicas")),
)
def test_an_autoscaler_has_the_state_of_its_conditions(conditions: Any, state: tuple[str, str]) -> None:
    assert autoscaler_of({**HPA, "status": {**STATUS, "conditions": conditions}}).state == state


@cases(("80 %", 80.0), ("1500m", 1.5), ("2k", 2000.0), ("–", None))
def test_values_become_numbers_of_a_curve(text: str, number: float | None) -> None:
    assert number_of(text) == number


def test_replicas_of_the_last_hour_are_the_rescalings_up_to_now() -> None:
    events = [
        event(10, "SuccessfulRescale", message="New size: 6; reason: cpu"),
        event(600, "SuccessfulRescale", message="New size: 4; reason: cpu"),
        event(5, "FailedRescale", message="New size: 9; reason: cpu"),
    ]
    assert replicas_of(events, 6, NOW) == [[NOW - 600, NOW - 10, NOW], [4.0, 6.0, 6.0]]


def test_rules_of_a_cron_say_what_they_set_and_what_became_of_them() -> None:
    rules = [
        {"name": "up", "schedule": "0 8 * * *", "targetReplicas": 9, "timeZone": "Europe/Vienna"},
        {"name": "off", "schedule": "0 20 * * *", "targetMinReplicas": 1, "targetMaxReplicas": 3, "suspend": True},
    ]
    history = {"ruleName": "up", "nextExecutionTime": "soon", "successfulExecutions": [{"executionTime": "2026"}]}
    found = cron_of({
        "metadata": {"name": "c", "namespace": "prod"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "rules": rules},
        "status": {"executionHistories": [history]},
    })  # fmt: skip
    assert found.rules == [
        ("up", "0 8 * * * (Europe/Vienna)", "replicas 9", "soon", "2026 done"),
        ("off", "0 20 * * *", "at least 1, at most 3", "suspended", "–"),
    ]


def test_only_what_was_filled_in_is_searched_for() -> None:
    assert query_of({"q": " web ", "labels": "a=b", "kind": ""}) == {"q": "web", "labelSelector": "a=b"}
    assert link_of({"kind": "Pod", "cluster": "m1", "namespace": "n", "name": "p"}) == "/pods/m1/n/p"
    assert link_of({"kind": "Node", "cluster": "m1", "namespace": "", "name": "p"}) == ""


async def test_every_page_shows_what_there_is_and_what_to_do_where_there_is_nothing(plane: DashboardPlane) -> None:
    browser, client = plane.browser, plane.client
    await browser.log_in()
    for path, empty in (
        ("/events?namespace=nowhere", "No events"),
        ("/quota", "No federated quota"),
        ("/scaling", "No FederatedHPA"),
        ("/search", "What are you looking for?"),
        ("/search?q=web", "serves no search"),
    ):
        page = await browser.get(path)
        assert (page.status, empty in page.text) == (200, True), path
    made = await client.create(FederatedHPA.gvr, HPA)
    await client.update_status(FederatedHPA.gvr, {**made, "status": STATUS})
    await client.create(
        FederatedResourceQuota.gvr,
        {"metadata": {"name": "q", "namespace": "default"}, "spec": {"overall": {"cpu": "4"}}},
    )
    assert "cpu 80 % / 60 %" in (await browser.get("/scaling")).text
    listed_at = time.time()
    one = (await browser.get("/scaling/default/web")).text
    assert "between 2 and 9 replicas" in one
    curve = re.search(r"&#34;cpu&#34;: \[\[([\d.]+)", one)
    assert curve
    assert float(curve[1]) < listed_at, "the first sample of its curve is that of the list"
    assert "0 of 4" in (await browser.get("/quota")).text
    assert (await browser.get("/scaling/default/moon")).status == 404
