"""Replicas that find no node, with every part a process: estimators, descheduler, control plane, members, kubectl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from karmada.components.election import DESCHEDULER, NAMESPACE
from karmada.kube.objects.gvrs import DEPLOYMENTS, LEASES
from karmada.kube.objects.types import Obj
from tests.e2e.fleets import QUICK
from tests.e2e.propagating import BINDINGS, Propagation, deployment, policy, selector
from tests.support.eventually import eventually_blocking
from tests.support.ports import free_port
from tests.support.programs import ComponentProcess
from tests.support.scheduling_plane import targets

pytestmark = pytest.mark.e2e

MEMBERS = ("member1", "member2")
UNOBSERVED = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
BY_PROCESSES = ("--enable-scheduler-estimator", "--in-process-estimator=false")
BY_ROOM = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}


class Estimated(Propagation):
    """Two members of one node each, with a process that estimates for each of them."""

    def estimator(self, member: str, port: int) -> ComponentProcess:
        config = self.sims.home / f"{member}.config"
        config.write_text(self.sims.kubectl(member)("config", "view", "--minify", "--flatten", "--raw").out)
        flags = ["--cluster-name", member, "--kubeconfig", str(config), f"--server-port={port}", *UNOBSERVED]
        log = self.sims.home / f"estimator-{member}.log"
        return ComponentProcess("scheduler_estimator", flags, log, f"Estimator of cluster {member}")

    def descheduler(self) -> ComponentProcess:
        often = ("--descheduling-interval=1s", "--unschedulable-threshold=1s")
        flags = ["--kubeconfig", str(self.plane.kubeconfig), *often, *UNOBSERVED]
        return ComponentProcess("descheduler", flags, self.sims.home / "descheduler.log", "Descheduler")

    def serve(self, member: str, port: int) -> None:
        """Where schedulers find the estimator of a member."""
        name = f"karmada-scheduler-estimator-{member}"
        ports = [{"port": 10352, "targetPort": port}]
        spec = {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports}
        metadata = {"name": name, "namespace": NAMESPACE}
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}, namespace=NAMESPACE)


@pytest.fixture
def fleet(tmp_path: Path, kubectl_path: str) -> Iterator[Estimated]:
    with ExitStack() as stack:
        found = stack.enter_context(Estimated(tmp_path, kubectl_path, (*QUICK, *BY_PROCESSES)))
        found.create(*MEMBERS, "--nodes=1", "--cpu=4")
        for name in MEMBERS:
            port = free_port()
            stack.enter_context(found.estimator(name, port))
            found.serve(name, port)
        found.join_all(*MEMBERS)
        found.open(list(MEMBERS))
        stack.enter_context(found.descheduler())
        yield found


def is_ready(found: Obj) -> bool:
    return (found.get("status") or {}).get("readyReplicas") == 4


def descheduled(fleet: Propagation, name: str) -> bool:
    """Whether an object has the event; pods that become unschedulable in two seconds may leave in two rounds."""
    text = r"Binding has been descheduled, (\d) replica\(s\) in cluster\(member1\), \1 total descheduled replica\(s\)"
    return any(
        (reason, component) == ("DescheduleBindingSucceed", "karmada-descheduler") and re.fullmatch(text, message)
        for _, reason, component, message in fleet.events(name)
    )


def test_pods_of_a_member_whose_nodes_are_closed_run_in_another_one(fleet: Estimated) -> None:
    web = deployment("web", replicas=4)
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    fleet.apply(web, policy("web", [selector(web)], placement={"replicaScheduling": BY_ROOM}))
    fleet.here.until(DEPLOYMENTS, "web", is_ready)
    binding = fleet.here.get(BINDINGS, "web-deployment")
    assert binding is not None
    assert targets(binding) == {"member1": 2, "member2": 2}
    in_member1 = fleet.sims.kubectl("member1")
    in_member1("cordon", "-l", "kubernetes.io/os=linux")
    in_member1("delete", "pods", "-l", "app=web", "--wait=false")
    fleet.here.until(BINDINGS, "web-deployment", lambda found: targets(found) == {"member2": 4})
    fleet.here.until(DEPLOYMENTS, "web", is_ready)
    for name in ("web", "web-deployment"):
        eventually_blocking(lambda name=name: descheduled(fleet, name))
    lease = fleet.here.get(LEASES, DESCHEDULER, NAMESPACE)
    assert lease is not None
    assert lease["spec"]["holderIdentity"]
    explained = fleet.ctl("why", "deployment/web").out
    assert re.search(r"room for 0 more replica\(s\) by estimator \([1-9]\d* by summary\)", explained), explained
