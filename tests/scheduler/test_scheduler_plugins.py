from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from karmada.scheduler import plugins
from karmada.scheduler.assignment import Divided, Job
from karmada.scheduler.decision import Failure, error
from karmada.scheduler.estimators.protocol import EstimateRequest, divided
from karmada.scheduler.filters.protocol import Refusal
from karmada.scheduler.fleet import Facet, Fleet
from karmada.scheduler.plugins import PluginError, builtin, discover, estimators_of, profile_of, switched
from karmada.scheduler.ranking import ScoreError
from karmada.scheduler.request import Request
from tests.support.cases import cases
from tests.support.scheduling_cases import DYNAMIC, Fixed, cluster, config_map, deployment, placement, run, shown

NAMES = ["a", "b", "c"]
BUILTIN = [
    "APIEnablement",
    "TaintToleration",
    "ClusterAffinity",
    "SpreadConstraint",
    "ClusterEviction",
    "ClusterLocality",
]


@cases(
    (["*"], "abc"),
    ([], ""),
    (["a", "c"], "ac"),
    (["*", "-b"], "ac"),
    (["-b", "*"], "ac"),
    (["-b"], ""),
    (["a", "-a"], ""),
    (["-a", "a"], "a"),
    (["*", "--b"], "ac"),
    (["*", "-b", "b"], "abc"),
    (["unknown"], ""),
)
def test_plugins_are_switched_by_name(flag: list[str], on: str) -> None:
    assert switched(flag, NAMES) == list(on)


def test_the_names_are_those_that_others_know() -> None:
    assert builtin().names == BUILTIN
    assert set(builtin(workload_affinity=True).names) - set(BUILTIN) == {"WorkloadAffinity", "WorkloadAntiAffinity"}


def test_what_is_switched_off_takes_no_part() -> None:
    tainted = [cluster("m1", taints=["x:NoSchedule"])]
    assert shown(run(config_map({}), tainted, profile=profile_of(builtin(), ["*", "-TaintToleration"]))) == {"m1": 0}
    off = profile_of(builtin(), ["-x"])
    assert shown(run(config_map({"clusterAffinity": {"exclude": ["m1"]}}), tainted, profile=off)) == {"m1": 0}


class GoldOnly:
    name = "GoldOnly"
    spares_targets = False
    facet = Facet.FACTS

    def key(self, request: Request) -> str:
        return request.resource["kind"]

    def check(self, request: Request, cluster: dict[str, Any]) -> str:
        if request.resource["kind"] != "Deployment" or "gold" in cluster["metadata"]["labels"]:
            return ""
        return "cluster(s) are not gold"


class NotTheFirst:
    name = "NotTheFirst"
    spares_targets = True

    def refusal(self, request: Request) -> Refusal | None:  # noqa: ARG002
        return Refusal("cluster(s) are first", ["m1"])


class Backwards:
    name = "Backwards"

    def points(self, request: Request, fleet: Fleet, slots: np.ndarray) -> np.ndarray | None:
        if request.replicas == 13:
            raise ScoreError("unlucky")
        return fleet.rank[slots]


class AllToOne:
    name = "AllToOne"

    def handles(self, request: Request) -> bool:
        return request.replicas == 7

    def divide(self, job: Job) -> Divided | Failure:
        first = next(iter(job.room))
        return error("nobody") if first == "m0" else Divided({first: job.replicas}, "all to one")


class Three(Fixed):
    name = "Three"

    def __init__(self) -> None:
        super().__init__({"m1": 3, "m2": 3, "m3": 3})


BROUGHT: dict[str, list[type[Any]]] = {
    plugins.FILTERS: [GoldOnly, NotTheFirst],
    plugins.SCORES: [Backwards],
    plugins.DIVISIONS: [AllToOne],
    plugins.ESTIMATORS: [Three],
}


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Any:
    def entry_points(group: str) -> list[EntryPoint]:
        return [EntryPoint(one.__name__, f"{__name__}:{one.__name__}", group) for one in BROUGHT[group]]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.attr])
    return discover(builtin())


CLUSTERS = [cluster("m1"), cluster("m2", labels={"gold": "1"}), cluster("m3", labels={"gold": "1"})]


def test_other_packages_bring_filters(brought: Any) -> None:
    profile = profile_of(brought)
    assert set(shown(run(config_map({}), CLUSTERS, profile=profile))) == {"m2", "m3"}
    assert set(shown(run(config_map({}, clusters=[{"name": "m1"}]), CLUSTERS, profile=profile))) == {"m1", "m2", "m3"}
    assert shown(run(deployment(1, {}), CLUSTERS[:1], profile=profile)) == (
        "0/1 clusters are available: 1 cluster(s) are not gold."
    )
    assert "m1" in shown(
        run(deployment(1, {}), CLUSTERS, profile=profile_of(brought, ["*", "-GoldOnly", "-NotTheFirst"]))
    )


def test_other_packages_bring_scores(brought: Any) -> None:
    assert list(shown(run(config_map({}), CLUSTERS, profile=profile_of(brought)))) == ["m3", "m2"]
    assert shown(run(deployment(13, {}), CLUSTERS, profile=profile_of(brought))) == (
        'failed to prioritize clusters: plugin "Backwards" failed with: unlucky'
    )


def test_other_packages_bring_divisions(brought: Any) -> None:
    spec = deployment(7, placement(DYNAMIC))
    assert shown(run(spec, CLUSTERS, profile=profile_of(brought))) == {"m3": 7}
    assert shown(run(spec, CLUSTERS, profile=profile_of(brought, ["*", "-AllToOne", "-Backwards"]))) == {
        "m2": 4,
        "m3": 3,
    }


def test_other_packages_bring_estimators(brought: Any) -> None:
    assert [one.name for one in estimators_of(brought)] == ["Three"]
    assert estimators_of(brought, ["*", "-Three"]) == []


def test_a_name_that_is_taken_is_an_error(brought: Any) -> None:
    with pytest.raises(PluginError, match="a plugin named GoldOnly already exists"):
        discover(brought)


def test_what_is_no_plugin_is_an_error() -> None:
    registry = builtin()
    with pytest.raises(PluginError, match="has no name"):
        registry.add(plugins.SCORES, object())
    with pytest.raises(PluginError, match="does not have what a plugin of the group"):
        registry.add(plugins.SCORES, GoldOnly())


def test_an_estimator_that_is_awaited_is_not_one_that_computes() -> None:
    class Awaited:
        name = "awaited"

        async def estimate(self, _request: EstimateRequest) -> dict[str, int]:
            return {}

    computing, awaited = Fixed({}), Awaited()
    assert divided([awaited, computing]) == ([computing], [awaited])
