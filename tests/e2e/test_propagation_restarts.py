"""The control plane is killed and restarted, and members fall silent, in the middle of propagating a thousand objects.

The history of a member is recorded by a watch on it that goes on all the while: every object must have come once, must
have been changed once for every change, and nothing else may have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.e2e.ledgers import Ledger
from tests.e2e.propagating import (
    BINDINGS,
    WORKS,
    Propagation,
    as_text,
    deployment,
    image,
    is_in,
    override,
    policy,
    propagation,
    rule,
)
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e

COUNT = 250
MANY = "many"
MEMBERS = ("member1", "member2")
WITHIN = 90.0
NAMES = {f"web-{number:03}" for number in range(COUNT)}
EVERY_DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
PLACEMENT = {
    "clusterAffinity": {"clusterNames": list(MEMBERS)},
    "clusterTolerations": [{"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
}
"""Also to a cluster that is not ready at the moment."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Propagation]:
    with propagation(tmp_path_factory.mktemp("restarts"), kubectl_path, MEMBERS) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def ledgers(fleet: Propagation) -> Iterator[list[Ledger]]:
    fleet.kubectl("create", "namespace", MANY)
    found = [Ledger(member, MANY) for member in fleet.members.values()]
    yield found
    for ledger in found:
        ledger.stop()


def whole(fleet: Propagation, names: set[str], written: str) -> bool:
    """Nothing is missing and nothing is left over; in the members with this image."""
    templates = {meta.name(obj): obj for obj in fleet.here.list(DEPLOYMENTS, MANY)}
    assert templates.keys() == names
    bindings = {meta.uid(obj): obj for obj in fleet.here.list(BINDINGS, MANY)}
    assert len(bindings) == len(names)
    assert all(is_in(binding, *MEMBERS) for binding in bindings.values())
    works = [work for work in fleet.here.list(WORKS) if "resourcebinding.karmada.io/name" in meta.annotations(work)]
    owned = Counter(meta.annotations(work)["resourcebinding.karmada.io/name"] for work in works)
    assert owned == dict.fromkeys((meta.name(binding) for binding in bindings.values()), len(MEMBERS))
    for member in fleet.members.values():
        found = {meta.name(obj): obj for obj in member.list(DEPLOYMENTS, MANY)}
        assert found.keys() == names
        for name, template in templates.items():
            assert image(found[name]) == written
            template["spec"]["template"]["spec"]["containers"][0]["image"] = written
            assert found[name]["spec"] == template["spec"]
    return True


def restart(fleet: Propagation, end: Callable[[], None]) -> None:
    end()
    fleet.plane.start()


def test_a_killed_control_plane_goes_on_where_it_was(fleet: Propagation, ledgers: list[Ledger]) -> None:
    templates = [deployment(name, 0) for name in sorted(NAMES)]
    fleet.kubectl("-n", MANY, "create", "-f", "-", stdin=as_text(*templates), timeout=120)
    fleet.apply(policy("all", [EVERY_DEPLOYMENT], placement=PLACEMENT), namespace=MANY)
    ledgers[0].until(COUNT // 10)
    restart(fleet, fleet.plane.kill)
    assert ledgers[0].count() < COUNT
    ledgers[1].until(COUNT // 2)
    restart(fleet, fleet.plane.stop)
    for ledger in ledgers:
        ledger.until(COUNT)
    eventually_blocking(lambda: whole(fleet, NAMES, "nginx:1.25"), WITHIN)
    for ledger in ledgers:
        assert ledger.came == dict.fromkeys(NAMES, 1)
        assert not ledger.went
        assert {meta.generation(obj) for obj in ledger.now.values()} == {1}


def test_a_silent_member_gets_every_change_when_it_is_back(fleet: Propagation, ledgers: list[Ledger]) -> None:
    """It answers nothing while everything changes and the control plane is killed; the other member does not notice."""
    assert ledgers[0].count() == COUNT
    fleet.sims.ctl("fail", "member2", "black-hole")
    tag = {"component": "Tag", "operator": "replace", "value": "1.26"}
    fleet.apply(override("newer", [EVERY_DEPLOYMENT], rule(imageOverrider=[tag])), namespace=MANY)

    def newer(obj: Obj) -> bool:
        return image(obj) == "nginx:1.26"

    ledgers[0].until(COUNT // 10, newer)
    restart(fleet, fleet.plane.kill)
    ledgers[0].until(COUNT, newer)
    fleet.until_condition("member2", "ClusterNotReachable")
    assert ledgers[1].count(newer) == 0
    fleet.sims.ctl("heal", "member2")
    ledgers[1].until(COUNT, newer)
    eventually_blocking(lambda: whole(fleet, NAMES, "nginx:1.26"), WITHIN)
    for ledger in ledgers:
        assert ledger.came == dict.fromkeys(NAMES, 1)
        assert not ledger.went
        assert {meta.generation(obj) for obj in ledger.now.values()} == {2}


def test_what_is_made_while_a_member_is_down_arrives_when_it_is_up(fleet: Propagation, ledgers: list[Ledger]) -> None:
    names = {f"late-{number:02}" for number in range(20)}
    fleet.sims.ctl("fail", "member2", "down")
    fleet.until_condition("member2", "ClusterNotReachable")
    templates = [deployment(name, 0) for name in sorted(names)]
    fleet.kubectl("-n", MANY, "create", "-f", "-", stdin=as_text(*templates))
    ledgers[0].until(COUNT + len(names))
    restart(fleet, fleet.plane.kill)
    fleet.sims.ctl("heal", "member2")
    ledgers[1].until(COUNT + len(names))
    eventually_blocking(lambda: whole(fleet, NAMES | names, "nginx:1.26"), WITHIN)
    for ledger in ledgers:
        assert ledger.came == dict.fromkeys(NAMES | names, 1)
        assert not ledger.went


def test_what_is_deleted_meanwhile_is_gone_everywhere_in_the_end(fleet: Propagation, ledgers: list[Ledger]) -> None:
    fleet.sims.ctl("fail", "member2", "down")
    there = len(ledgers[0].now)
    deleting = fleet.kubectl.start("-n", MANY, "delete", "deployments", "--all", "--wait=false")
    eventually_blocking(lambda: len(ledgers[0].now) < there - COUNT // 10, WITHIN)
    restart(fleet, fleet.plane.kill)
    deleting.communicate(timeout=60)
    assert ledgers[0].now
    fleet.kubectl("-n", MANY, "delete", "deployments", "--all", "--wait=false", timeout=120)
    ledgers[0].until_empty()
    assert len(ledgers[1].now) == there
    fleet.sims.ctl("heal", "member2")
    ledgers[1].until_empty()
    eventually_blocking(lambda: not fleet.here.list(BINDINGS, MANY), WITHIN)
    eventually_blocking(lambda: not [work for work in fleet.here.list(WORKS) if "web-" in meta.name(work)], WITHIN)
    for ledger in ledgers:
        assert ledger.went == ledger.came
