"""Address ranges of simulated clusters."""

from __future__ import annotations

import ipaddress
import itertools
from pathlib import Path

import msgspec

from karmada.api.cluster import default_resource_models
from karmada.controllers.cluster_status.modeling import Grades
from karmada.estimator.requests import node_amounts
from karmada.kube.objects.quantity import Quantity
from karmada.kube.sim.addressing import RANGES, with_own_ranges
from karmada.kube.sim.fleet import Fleet, Stored
from karmada.kube.sim.kubelet.nodeobject import allocatable_of, capacity_of
from karmada.kube.sim.profile import INSTANT, NodePool, Profile


def networks(profile: Profile) -> list[ipaddress.IPv4Network]:
    return [ipaddress.IPv4Network(getattr(profile, name)) for name in sorted(RANGES)]


def test_clusters_get_ranges_that_overlap_with_no_others() -> None:
    profiles: list[Profile] = []
    for number in range(100):
        profiles.append(with_own_ranges(Profile(f"m{number}"), RANGES, profiles))
    taken = [network for profile in profiles for network in networks(profile)]
    taken.sort(key=lambda network: (network.version, network.network_address))
    assert not any(one.overlaps(following) for one, following in itertools.pairwise(taken))


def test_the_first_cluster_has_the_usual_ranges() -> None:
    first = with_own_ranges(Profile("m"), RANGES, [])
    assert (first.pod_cidr, first.service_cidr) == ("10.244.0.0/16", "10.96.0.0/16")


def test_ranges_that_a_profile_sets_stay() -> None:
    other = Profile("other", pod_cidr="10.0.0.0/8")
    mine = with_own_ranges(Profile("m", pod_cidr="10.1.0.0/16"), RANGES - {"pod_cidr"}, [other])
    assert mine.pod_cidr == "10.1.0.0/16"


def test_clusters_stored_with_the_former_ranges_are_not_overlapped() -> None:
    stored = Profile("old", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12", load_balancer_cidr="172.18.255.0/24")
    new = with_own_ranges(Profile("new"), RANGES, [stored])
    assert not any(mine.overlaps(theirs) for mine in networks(new) for theirs in networks(stored))


async def test_a_fleet_chooses_ranges_and_keeps_them(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    wanted = [Profile(name, latencies=INSTANT, pools=(), system_pods=False) for name in ("one", "two")]
    for profile in wanted:
        await fleet.create(Stored(profile=profile), choose=RANGES)
    chosen = {name: cluster.profile for name, cluster in fleet.clusters.items()}
    await fleet.stop()
    again = Fleet(tmp_path)
    await again.start()
    try:
        assert {name: cluster.profile for name, cluster in again.clusters.items()} == chosen
        assert len({profile.service_cidr for profile in chosen.values()}) == 2
    finally:
        await again.stop()


async def test_a_cluster_of_an_earlier_version_opens_with_the_ranges_it_was_stored_with(tmp_path: Path) -> None:
    ranges = {"pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12", "load_balancer_cidr": "172.18.255.0/24"}
    pools = [{"name": "node", "count": 1, "cpu": "4", "memory": "16Gi"}]
    folder = tmp_path / "clusters/old"
    folder.mkdir(parents=True)
    described = {"profile": {"name": "old", "pools": pools, "system_pods": False, **ranges}}
    (folder / "cluster.json").write_bytes(msgspec.json.encode(described))
    fleet = Fleet(tmp_path)
    await fleet.start()
    try:
        assert fleet.failed == {}
        profile = fleet.get("old").profile
        assert {name: getattr(profile, name) for name in ranges} == ranges
    finally:
        await fleet.stop()


def test_the_default_resource_models_count_a_node_of_the_default_size_fully() -> None:
    models = default_resource_models()
    grades = Grades.of(models)
    assert grades is not None
    allocatable = allocatable_of(capacity_of(NodePool()))
    grade = grades.place(node_amounts(allocatable), {}, 1)
    counted = {entry["name"]: entry["min"] for entry in models[grade]["ranges"]}
    for name in ("cpu", "memory"):
        assert Quantity.parse(counted[name]) == Quantity.parse(allocatable[name])
