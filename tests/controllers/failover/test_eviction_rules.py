"""What eviction does to a binding's spec, what becomes of a task, and at which pace."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.controllers.failover.fate import Fate, Rules, Source, fate_of
from karmada.controllers.failover.pace import Pace
from karmada.controllers.failover.state import preserved_state
from karmada.controllers.failover.tasks import evict, restore
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = 1_700_000_000.0
MINUTE = 60.0
THREE_MINUTES = Rules(timeout=3 * MINUTE)
KARMADA = Rules(timeout=3 * MINUTE, evict_last_copy=True)
SERVES = Source(joined=True, ready=True, eligible=False)
CUT_OFF = Source(joined=True, ready=False, eligible=False)
BACK = Source(joined=True, ready=True, eligible=True)
GONE = Source(joined=False, ready=False, eligible=False)
TASK = {"reason": "TaintUntolerated", "producer": "TaintManager", "purgeMode": "Gracefully"}


def task(age: float | None = MINUTE, **fields: Any) -> Obj:
    stamp = {} if age is None else {"creationTimestamp": rfc3339(NOW - age)}
    return {"fromCluster": "m1", **TASK, **stamp, **fields}


def binding(*clusters: str, observed: bool = True, **health: str) -> Obj:
    """`health` by cluster, of those that report one; m1 is the cluster that is left."""
    reported = {"m1": "Healthy", **health}
    items = [{"clusterName": name, "health": found} for name, found in reported.items() if found]
    return {
        "metadata": {"generation": 4},
        "spec": {"clusters": [{"name": name} for name in clusters]},
        "status": {"schedulerObservedGeneration": 4 if observed else 3, "aggregatedStatus": items},
    }


def test_an_evicted_cluster_becomes_a_task_with_its_replicas() -> None:
    spec = {"clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}]}
    assert evict(spec, "m1", TASK) == {
        "clusters": [{"name": "m2", "replicas": 1}],
        "gracefulEvictionTasks": [{"fromCluster": "m1", "replicas": 2, **TASK}],
    }
    assert evict(spec, "m3", TASK) is spec


def test_a_cluster_has_one_task_at_most() -> None:
    spec = {"clusters": [{"name": "m1"}], "gracefulEvictionTasks": [task()]}
    assert evict(spec, "m1", TASK) == {"clusters": [], "gracefulEvictionTasks": [task()]}


def test_a_cluster_without_replicas_leaves_none_in_its_task() -> None:
    assert "replicas" not in evict({"clusters": [{"name": "m1"}]}, "m1", TASK)["gracefulEvictionTasks"][0]


@given(st.integers(min_value=0, max_value=100), st.lists(st.sampled_from(["m2", "m3", "m4"]), unique=True))
def test_a_restored_cluster_has_what_it_had(replicas: int, others: list[str]) -> None:
    share = {"replicas": replicas} if replicas else {}
    spec = {"clusters": [*({"name": name} for name in others), {"name": "m1", **share}]}
    evicted = evict(spec, "m1", TASK)
    assert restore(evicted, evicted["gracefulEvictionTasks"][0])["clusters"] == spec["clusters"]


@pytest.mark.parametrize(
    ("found", "of", "source", "fate"),
    [
        pytest.param(task(None), binding("m2"), SERVES, Fate.STAMP, id="a new task"),
        pytest.param(task(), binding("m2", m2="Healthy"), SERVES, Fate.END, id="healthy elsewhere"),
        pytest.param(task(), binding("m2", observed=False, m2="Healthy"), SERVES, Fate.WAIT, id="not scheduled yet"),
        pytest.param(task(), binding("m2", m2="Unhealthy"), SERVES, Fate.WAIT, id="unhealthy elsewhere"),
        pytest.param(task(), binding("m2", m2="Unknown"), SERVES, Fate.WAIT, id="not known elsewhere"),
        pytest.param(task(), binding("m2", "m3", m2="Healthy"), SERVES, Fate.WAIT, id="one of two is healthy"),
        pytest.param(task(suppressDeletion=True), binding("m2", m2="Healthy"), GONE, Fate.WAIT, id="suppressed"),
        pytest.param(task(1, suppressDeletion=False), binding("m2"), SERVES, Fate.END, id="confirmed"),
        # past the grace period
        pytest.param(task(4 * MINUTE), binding("m2"), CUT_OFF, Fate.END, id="cut off, with a replacement to come"),
        pytest.param(task(gracePeriodSeconds=30), binding("m2"), CUT_OFF, Fate.END, id="its own, shorter grace"),
        pytest.param(task(4 * MINUTE), binding("m2"), SERVES, Fate.HOLD, id="the replacement is not healthy"),
        pytest.param(task(4 * MINUTE), binding("m2", m1="Unknown"), SERVES, Fate.HOLD, id="it may serve"),
        pytest.param(task(4 * MINUTE), binding("m2", m1="Unhealthy"), SERVES, Fate.END, id="it does not serve"),
        pytest.param(task(4 * MINUTE), binding(), SERVES, Fate.HOLD, id="nothing fits"),
        pytest.param(task(4 * MINUTE), binding(), CUT_OFF, Fate.HOLD, id="nothing fits, and it may come back"),
        pytest.param(task(4 * MINUTE), binding(), GONE, Fate.END, id="the cluster is gone"),
        pytest.param(task(4 * MINUTE), binding(m1=""), SERVES, Fate.END, id="there is no copy"),
        pytest.param(
            task(4 * MINUTE, purgeMode="Directly"), binding("m2"), SERVES, Fate.END, id="the policy deletes at once"
        ),
        # recovery
        pytest.param(task(), binding(), BACK, Fate.RETURN, id="back, and nothing took over"),
        pytest.param(task(), binding("m2", observed=False), BACK, Fate.RETURN, id="back, and the rest did not fit"),
        pytest.param(task(), binding("m2"), BACK, Fate.WAIT, id="back, but another took over"),
        pytest.param(task(producer="someone"), binding(), BACK, Fate.WAIT, id="evicted for another reason"),
        pytest.param(task(), binding(), SERVES, Fate.WAIT, id="ready, but still tainted"),
    ],
)
def test_the_fate_of_a_task(found: Obj, of: Obj, source: Source, fate: Fate) -> None:
    assert fate_of(found, of, source, THREE_MINUTES, NOW) is fate


@pytest.mark.parametrize(
    ("found", "of", "fate"),
    [
        pytest.param(task(4 * MINUTE), binding("m2"), Fate.END, id="time decides"),
        pytest.param(task(), binding(), Fate.END, id="nowhere is healthy everywhere"),
        pytest.param(task(), binding(observed=False), Fate.WAIT, id="not scheduled yet"),
        pytest.param(task(4 * MINUTE), binding(observed=False), Fate.END, id="time decides for what fits nowhere"),
    ],
)
@pytest.mark.parametrize("source", [SERVES, CUT_OFF, BACK])
def test_a_flag_gives_karmadas_rule(found: Obj, of: Obj, source: Source, fate: Fate) -> None:
    assert fate_of(found, of, source, KARMADA, NOW) is fate


def test_the_pace_lets_three_go_at_once_and_then_one_after_the_other() -> None:
    pace: Pace[int] = Pace(0.5, 3)
    assert [pace.wait(key, 100.0) for key in range(8)] == [0, 0, 0, 2, 2, 2, 4, 4]
    assert len(pace) == 5
    assert pace.wait(3, 101.0) == 1.0, "a reservation stays"
    assert pace.wait(3, 102.0) == 0.0
    pace.forget(4)
    assert len(pace) == 3
    assert 4 not in pace


def test_a_rate_of_zero_is_one_in_half_an_hour() -> None:
    pace: Pace[int] = Pace(0, 1)
    assert [pace.wait(key, 0.0) for key in range(2)] == [0, 1800]


@given(
    st.floats(min_value=0.1, max_value=50),
    st.lists(st.floats(min_value=0, max_value=5, allow_nan=False), min_size=1, max_size=60),
)
def test_no_line_ever_exceeds_its_rate(rate: float, gaps: list[float]) -> None:
    pace: Pace[int] = Pace(rate, 3)
    now, times = 0.0, []
    for key, gap in enumerate(gaps):
        now += gap
        times.append(now + pace.wait(key, now))
    times.sort()
    for first, fourth in zip(times, times[3:], strict=False):
        assert fourth - first >= 1 / rate or math.isclose(fourth - first, 1 / rate, rel_tol=1e-6, abs_tol=1e-6)


STATUS = {
    "replicas": 2,
    "health": True,
    "half": 0.5,
    "many": 1000000,
    "none": None,
    "list": [1, {"b": "x"}],
    "id": "j1",
}


@cases(
    ("{ .replicas }", "2"),
    ("{ .health }", "true"),
    ("{.half}", "0.5"),
    ("{.many}", "1e+06"),
    ("{.none}", "null"),
    ("{.list}", '[1,{"b":"x"}]'),
    ("{.id}", "j1"),
    ("{.replicas}-{.id}", "2-j1"),
    ("{.list[*]}", '1 {"b":"x"}'),
)
def test_state_is_read_from_the_status_of_the_cluster(path: str, text: str) -> None:
    of = {"status": {"aggregatedStatus": [{"clusterName": "m1", "status": STATUS}]}}
    assert preserved_state(of, "m1", [{"aliasLabelName": "key", "jsonPath": path}]) == {"key": text}


@cases(
    ([], "{.a}", r"the application status has not yet been collected from Cluster\(m1\)"),
    ([{"clusterName": "m1"}], "{.a}", "has not yet been collected"),
    ([{"clusterName": "m1", "status": {}}], "{.a}", "{.a}"),
    ([{"clusterName": "m1", "status": {}}], "{.a", "{.a"),
)
def test_state_that_cannot_be_read_is_an_error(items: list[Obj], path: str, problem: str) -> None:
    with pytest.raises(ApiError, match=problem):
        preserved_state({"status": {"aggregatedStatus": items}}, "m1", [{"aliasLabelName": "key", "jsonPath": path}])
