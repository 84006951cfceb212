"""Failover as people see it: kubectl, injected faults and karmadactl, against a control plane started for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_environment import PORT, LocalEnvironment
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
FLAGS = (
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--cluster-status-update-frequency=1s",
    "--cluster-failure-threshold=2s",
    "--cluster-success-threshold=2s",
)
TAINT_POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: dead-clusters}
spec:
  addOnConditions:
  - {conditionType: Ready, operator: In, statusValues: ["False", "Unknown"]}
  removeOnConditions:
  - {conditionType: Ready, operator: In, statusValues: ["True"]}
  taints:
  - {key: cluster.karmada.io/not-ready, effect: NoExecute}
"""
POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %(name)s}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: %(name)s}
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - targetCluster: {clusterNames: [member1]}
          weight: 10
        - targetCluster: {clusterNames: [member2]}
          weight: 0
  failover:
    applicationMigrationPolicy:
      decisionConditions: {tolerationSeconds: %(seconds)d}
      purgePolicy: Gracefully
"""
"""A main cluster and a standby, in the form of older documents."""


class Walk(LocalEnvironment):
    def place(self, name: str, *, toleration: int = 300) -> None:
        self.kubectl("apply", "-f", "-", stdin=POLICY % {"name": name, "seconds": toleration})
        self.kubectl("create", "deployment", name, "--image=nginx", "--replicas=2")

    def is_in(self, name: str, member: str) -> None:
        """Wait until the workload is bound to the member."""
        self.kubectl(
            "wait", f"resourcebinding/{name}-deployment", f"--for=jsonpath={{.spec.clusters[*].name}}={member}", WITHIN
        )

    def serves(self, name: str, member: str) -> None:
        self.member(member)("wait", f"deployment/{name}", "--for=jsonpath={.status.readyReplicas}=2", WITHIN)

    def is_gone(self, name: str, member: str) -> None:
        self.member(member)("wait", f"deployment/{name}", "--for=delete", WITHIN)

    def reasons(self, name: str) -> set[str]:
        """Of the events on a Deployment."""
        selector = f"--field-selector=involvedObject.kind=Deployment,involvedObject.name={name}"
        return set(self.kubectl("get", "events", selector, "-o", "jsonpath={.items[*].reason}").out.split())


WITHIN = "--timeout=100s"


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Walk]:
    with Walk(Path(tmp_path_factory.mktemp("failover")), kubectl_path) as local:
        local.up(*PORT, "--members", "2", "--", *FLAGS)
        local.kubectl("apply", "-f", "-", stdin=TAINT_POLICY)
        yield local


def test_a_workload_leaves_a_dead_cluster_as_the_drill_said_and_then_a_tainted_one(walk: Walk) -> None:
    walk.place("web")
    walk.serves("web", "member1")
    foretold = walk.ctl("drill", "--fail", "member1", "--max-downtime", "60s", "-o", "json").json()

    walk.ctl("sim", "fail", "member1", "down")
    walk.is_in("web", "member2")
    walk.serves("web", "member2")
    (course,) = foretold["resources"]
    assert (course["before"], course["after"]) == ({"member1": 2}, {"member2": 2})
    walk.kubectl("wait", "cluster/member1", "--for=condition=Ready=false", WITHIN)
    walk.ctl("sim", "heal", "member1")
    walk.kubectl("wait", "cluster/member1", "--for=condition=Ready", WITHIN)
    walk.is_gone("web", "member1")
    eventually_blocking(lambda: "EvictWorkloadFromClusterSucceed" in walk.reasons("web"))
    walk.is_in("web", "member2")

    walk.ctl("taint", "clusters", "member2", "maintenance=true:NoExecute")
    walk.is_in("web", "member1")
    walk.serves("web", "member1")
    walk.is_gone("web", "member2")
    walk.ctl("taint", "clusters", "member2", "maintenance=true:NoExecute-")


def test_an_application_that_crashes_in_one_cluster_moves_to_the_other(walk: Walk) -> None:
    walk.ctl("sim", "fail", "member1", "pods", "crash-loop", "-l", "app=shaky")
    walk.place("shaky", toleration=2)
    walk.is_in("shaky", "member2")
    walk.serves("shaky", "member2")
    walk.is_gone("shaky", "member1")
    eventually_blocking(lambda: "EvictWorkloadFromClusterSucceed" in walk.reasons("shaky"))


FAULTS = {
    "hang": ("black-hole",),
    "errors": ("errors", "--code=503"),
    "flap": ("flap", "--up=1s", "--down=6s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_workload_leaves_a_cluster_whatever_ails_it(walk: Walk, fault: str) -> None:
    walk.place(fault)
    walk.serves(fault, "member1")
    walk.ctl("sim", "fail", "member1", *FAULTS[fault])
    walk.is_in(fault, "member2")
    walk.serves(fault, "member2")
    walk.ctl("sim", "heal", "member1")
    walk.kubectl("wait", "cluster/member1", "--for=condition=Ready", WITHIN)
    walk.is_gone(fault, "member1")


def test_an_application_leaves_a_cluster_that_lost_its_nodes(walk: Walk) -> None:
    """The cluster's own clock runs fast, so that it gives its nodes up in seconds."""
    walk.place("nodeless", toleration=2)
    walk.serves("nodeless", "member1")
    walk.ctl("sim", "fail", "member1", "clock", "--rate=20")
    walk.ctl("sim", "fail", "member1", "node", "--pool=node")
    walk.is_in("nodeless", "member2")
    walk.serves("nodeless", "member2")
    walk.ctl("sim", "heal", "member1")
    walk.is_gone("nodeless", "member1")
