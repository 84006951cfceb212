"""`karmada --workers 2`: workers are killed, paused and added while objects are propagated and changed.

The history of the members is recorded (see test_propagation_restarts): every object must have come once and have been
changed once for every change, whichever worker had it at which moment.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import pytest

from karmada.components.election import CONTROLLERS, NAMESPACE
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.membership import GROUP
from tests.e2e.fleets import QUICK
from tests.e2e.ledgers import Ledger
from tests.e2e.propagating import (
    BINDINGS,
    Propagation,
    as_text,
    cluster_policy,
    deployment,
    image,
    is_in,
    propagation,
)
from tests.support import forking
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e

MEMBERS = ("member1", "member2")
SPACES = [f"team-{number}" for number in range(4)]
COUNT = 25
"""Deployments in each namespace."""
NAMES = {f"web-{number:02}" for number in range(COUNT)}
WITHIN = 240.0
FLAGS = (*QUICK, "--workers=2", "--worker-lease-duration=20s")
EVERY_DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Propagation]:
    with propagation(tmp_path_factory.mktemp("workers"), kubectl_path, MEMBERS, FLAGS) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def ledgers(fleet: Propagation) -> Iterator[list[Ledger]]:
    for space in SPACES:
        fleet.ours("create", "namespace", space)
    found = [Ledger(member, space) for member in fleet.members.values() for space in SPACES]
    yield found
    for ledger in found:
        ledger.stop()


def pid_of(fleet: Propagation, number: int) -> int:
    """Of the worker that was started last under this number."""
    return int(re.findall(rf'"Worker started" worker={number} pid=(\d+)', fleet.plane.log())[-1])


def members(fleet: Propagation) -> set[str]:
    return {meta.name(lease) for lease in fleet.here.list(LEASES, NAMESPACE, f"{GROUP}={CONTROLLERS}")}


def until_members(fleet: Propagation, count: int, check: Callable[[set[str]], bool] = bool) -> set[str]:
    eventually_blocking(lambda: len(members(fleet)) == count and check(members(fleet)), WITHIN)
    return members(fleet)


def whole(fleet: Propagation, ledgers: list[Ledger], written: str, generation: int) -> None:
    """Nothing is lost and nothing was applied twice."""
    for ledger in ledgers:
        ledger.until(COUNT, lambda obj: image(obj) == written)
    for ledger in ledgers:
        assert ledger.came == dict.fromkeys(NAMES, 1)
        assert not ledger.went
        assert {meta.generation(obj) for obj in ledger.now.values()} == {generation}
    eventually_blocking(lambda: reported(fleet), WITHIN)


def reported(fleet: Propagation) -> bool:
    """The way back is done, too: every binding has the status of both members."""
    found: list[Obj] = [binding for space in SPACES for binding in fleet.here.list(BINDINGS, space)]
    assert len(found) == COUNT * len(SPACES)
    return all(is_in(binding, *MEMBERS) for binding in found)


def test_nothing_is_lost_or_applied_twice_when_workers_are_killed(
    fleet: Propagation, ledgers: list[Ledger], tmp_path: Path
) -> None:
    before = until_members(fleet, 2)
    fleet.apply(cluster_policy("all", [EVERY_DEPLOYMENT], placement={"clusterAffinity": {"clusterNames": [*MEMBERS]}}))
    templates = [
        {**deployment(name, 0), "metadata": {"name": name, "namespace": space}} for space in SPACES for name in NAMES
    ]
    (tmp_path / "templates.json").write_text(as_text(*templates))
    creating = fleet.kubectl.start("create", "-f", str(tmp_path / "templates.json"))
    for number, share in ((1, 10), (2, 3)):
        eventually_blocking(lambda share=share: sum(len(ledger.now) for ledger in ledgers) > COUNT // share, WITHIN)
        os.kill(pid_of(fleet, number), signal.SIGKILL)
    creating.communicate(timeout=120)
    whole(fleet, ledgers, "nginx:1.25", 1)
    assert not before & until_members(fleet, 2), "both were started again, under other names"


def test_a_paused_worker_does_not_write_when_it_goes_on(fleet: Propagation, ledgers: list[Ledger]) -> None:
    """Its part is taken over while it is paused; what it had in mind is then refused, by itself or by the server."""
    [name] = [member for member in until_members(fleet, 2) if member.startswith("karmada-worker-2-")]
    paused = pid_of(fleet, 2)
    os.kill(paused, signal.SIGSTOP)
    for space in SPACES:
        fleet.kubectl("-n", space, "set", "image", "deployments", "--all", "web=nginx:1.26")
    until_members(fleet, 1, lambda found: name not in found)
    whole(fleet, ledgers, "nginx:1.26", 2)
    logged = len(fleet.plane.log())
    os.kill(paused, signal.SIGCONT)
    until_members(fleet, 2)
    assert pid_of(fleet, 2) != paused
    whole(fleet, ledgers, "nginx:1.26", 2)
    assert "leaderelection lost" in fleet.plane.log()[logged:], "by its own Lease or by that of the group"


def test_a_replica_of_another_machine_joins_and_takes_its_part(fleet: Propagation, ledgers: list[Ledger]) -> None:
    """It is a karmada-controller-manager that shares the work under the same lease."""
    command = [sys.executable, "-m", "karmada.components.controller_manager", "--share-work"]
    command += ["--kubeconfig", str(fleet.plane.kubeconfig), "--metrics-bind-address=0", *QUICK]
    command += ["--health-probe-bind-address=0"]
    until_members(fleet, 2)
    with forking.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as joined:
        until_members(fleet, 3)
        for space in SPACES:
            fleet.kubectl("-n", space, "set", "image", "deployments", "--all", "web=nginx:1.27")
        joined.terminate()
    until_members(fleet, 2)
    whole(fleet, ledgers, "nginx:1.27", 3)


def test_every_worker_has_pages_of_its_own(fleet: Propagation) -> None:
    """A worker may still be dividing the work anew after the test before, or be started again."""
    eventually_blocking(lambda: shares_by_pages(fleet) == {"1": 2, "2": 2}, WITHIN)


def shares_by_pages(fleet: Propagation) -> dict[str, int]:
    """By worker that is ready and owns shards: how many members it divides the work by, all as its own pages say."""
    addresses = dict(re.findall(r'\[worker (\d)\] .*"Metrics and health" address="(http://[^"]+)"', fleet.plane.log()))
    return {number: share for number, address in addresses.items() if (share := share_by_pages(address))}


def share_by_pages(address: str) -> int:
    """0 while it is not ready, or owns nothing."""
    try:
        urlopen(f"{address}/readyz")
        page = urlopen(f"{address}/metrics").read().decode()
    except (OSError, HTTPException):  # not ready, or ended
        return 0
    members = re.search(r"^work_sharing_members (\d+)", page, re.MULTILINE)
    owns = re.search(r"^work_sharing_owned_shards [1-9]", page, re.MULTILINE)
    return int(members[1]) if members and owns else 0
