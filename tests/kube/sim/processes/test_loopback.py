"""Blocks of loopback addresses: each is one cluster's, on the whole machine."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.fleet import Fleet, FleetError, ProcessDefaults, Stored
from karmada.kube.sim.processes.images import ImageRule
from karmada.kube.sim.processes.loopback import NoAddresses, block_of, claim, claim_any, in_block
from karmada.kube.sim.profile import INSTANT, NodePool, Profile

RANGES = ("pod_cidr", "service_cidr", "node_cidr", "load_balancer_cidr")
EMPTY = Profile("processes-alike", latencies=INSTANT, pools=(NodePool(count=0),), system_pods=False)


def test_the_ranges_of_a_block_do_not_overlap_and_leave_its_end_to_the_simulator() -> None:
    profile = in_block(EMPTY, 43)
    networks = [ipaddress.IPv4Network(getattr(profile, name)) for name in RANGES]
    assert all(network.subnet_of(ipaddress.IPv4Network("127.43.0.0/16")) for network in networks)
    assert not any(one.overlaps(other) for one in networks for other in networks if one is not other)
    assert not any(ipaddress.ip_address("127.43.255.1") in network for network in networks)


def test_the_block_of_a_profile_is_found_again() -> None:
    assert block_of(in_block(EMPTY, 43)) == 43
    assert block_of(EMPTY) is None


def test_a_block_is_claimed_once_until_it_is_released() -> None:
    block = claim_any("somebody")
    with pytest.raises(NoAddresses, match=f"127.{block.number}.0.0/16 cannot be used"):
        claim(block.number)
    other = claim_any("somebody")
    assert other.number != block.number
    block.release()
    claim(block.number).release()
    other.release()


async def test_clusters_of_one_name_in_two_simulators_have_different_addresses(tmp_path: Path) -> None:
    one, other = Fleet(tmp_path / "one", in_memory=True), Fleet(tmp_path / "other", in_memory=True)
    try:
        for fleet in (one, other):
            await fleet.create(Stored(profile=EMPTY, run_processes=True))
        blocks = {block_of(fleet.stored(EMPTY.name).profile) for fleet in (one, other)}
        assert len(blocks) == 2
        await one.delete(EMPTY.name)
        for number in blocks - {block_of(other.stored(EMPTY.name).profile)}:
            assert number is not None
            claim(number).release()
    finally:
        await one.stop()
        await other.stop()


async def test_a_cluster_whose_addresses_are_taken_does_not_start_and_says_why(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.create(Stored(profile=EMPTY, run_processes=True))
    number = block_of(fleet.stored(EMPTY.name).profile)
    assert number is not None
    await fleet.stop()
    taken = claim(number)
    again = Fleet(tmp_path)
    try:
        await again.start()
        assert "cannot be used" in again.failed[EMPTY.name]
    finally:
        taken.release()
        await again.stop()


@pytest.mark.parametrize("run", [False, True])
async def test_new_clusters_run_processes_by_default_only_if_the_simulator_was_started_so(
    tmp_path: Path, run: bool
) -> None:
    fleet = Fleet(tmp_path, in_memory=True, processes=ProcessDefaults(run=run))
    cluster = await fleet.create(Stored(profile=EMPTY))
    try:
        assert isinstance(cluster, SimCluster)
        assert (cluster.processes is not None) is run
        assert fleet.stored(EMPTY.name).run_processes is run
        assert (block_of(cluster.profile) is not None) is run
    finally:
        await fleet.stop()


async def test_nodes_in_a_real_cluster_cannot_run_processes(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    with pytest.raises(FleetError, match="run_processes: nodes in a real cluster cannot run processes"):
        await fleet.create(Stored(profile=EMPTY, attach="/kubeconfig", run_processes=True))


def test_a_rule_without_a_program_is_rejected() -> None:
    with pytest.raises(ValueError, match='image "x": command needs at least the name of a program'):
        ImageRule(image="x", command=())
