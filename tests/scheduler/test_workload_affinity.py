from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.scheduler.filters.workload_affinity import NotComparable, NotListed
from karmada.scheduler.plugins import builtin, profile_of
from tests.support.cases import cases
from tests.support.scheduling_cases import cluster, config_map, run, shown

PROFILE = profile_of(builtin(workload_affinity=True))
CLUSTERS = [cluster("a"), cluster("b"), cluster("c")]


def binding(
    name: str, *clusters: str, namespace: str = "default", group: str = "app=web", version: str = "1"
) -> dict[str, Any]:
    groups = {"affinityGroup": group, "antiAffinityGroup": group}
    spec = {"workloadAffinityGroups": groups, "clusters": [{"name": one} for one in clusters]}
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": version}, "spec": spec}


class Known:
    def __init__(self, *bindings: dict[str, Any], error: Exception | None = None) -> None:
        self.bindings, self.error = bindings, error

    def affinity(self, group: str) -> Iterable[dict[str, Any]]:  # noqa: ARG002
        if self.error is not None:
            raise self.error
        return self.bindings

    anti_affinity = affinity


def go(which: str, peers: Known | None, *here: str) -> Any:
    spec = config_map({}, workloadAffinityGroups={which: "app=web"}, clusters=[{"name": name} for name in here])
    return shown(run(spec, CLUSTERS, profile=PROFILE, peers=peers))


def test_the_first_of_a_group_may_go_anywhere() -> None:
    assert set(go("affinityGroup", Known(binding("other")))) == {"a", "b", "c"}


def test_together_means_where_all_others_are() -> None:
    assert go("affinityGroup", Known(binding("x", "a", "b"), binding("y", "b", "c"), binding("z"))) == {"b": 0}


def test_nowhere_to_be_together_is_no_fit() -> None:
    assert go("affinityGroup", Known(binding("x", "a"), binding("y", "b"))) == (
        "0/3 clusters are available: 3 ResourceBinding with the same affinity group does not target this cluster."
    )


def test_apart_means_where_no_other_is() -> None:
    assert go("antiAffinityGroup", Known(binding("x", "a"), binding("y", "b"))) == {"c": 0}
    assert go("antiAffinityGroup", Known(binding("x", "a", "b", "c"))) == (
        "0/3 clusters are available: 3 cluster already has workload with the same anti-affinity group."
    )


@cases(
    binding("x", "a", namespace="elsewhere"),
    binding("x", "a", group="app=db"),
    binding("settings-configmap", "a"),
    ids=["namespace", "group", "itself"],
)
def test_others_do_not_count(other: Any) -> None:
    assert set(go("antiAffinityGroup", Known(other))) == {"a", "b", "c"}
    assert set(go("affinityGroup", Known(other))) == {"a", "b", "c"}


def test_where_a_resource_is_it_may_stay() -> None:
    assert set(go("antiAffinityGroup", Known(binding("x", "a", "b")), "a")) == {"a", "c"}
    assert set(go("affinityGroup", Known(binding("x", "b")), "a")) == {"a", "b"}


@cases(
    (None, "ResourceBindingIndexer is nil"),
    (Known(error=NotListed("down")), "failed to list ResourceBindings"),
    (Known(error=NotComparable("x")), "failed to compare resource versions for ResourceBinding"),
)
def test_not_knowing_the_others_is_a_reason(peers: Any, reason: Any) -> None:
    assert go("affinityGroup", peers) == f"0/3 clusters are available: 3 {reason}."
    assert go("antiAffinityGroup", peers) == f"0/3 clusters are available: 3 {reason}."


def test_without_the_feature_groups_mean_nothing() -> None:
    spec = config_map({}, workloadAffinityGroups={"affinityGroup": "app=web"})
    assert set(shown(run(spec, CLUSTERS))) == {"a", "b", "c"}
