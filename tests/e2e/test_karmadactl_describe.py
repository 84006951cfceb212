"""karmadactl describe and top, as programs of their own, over a control plane with three members."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS
from tests.e2e.propagating import Propagation
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program

pytestmark = pytest.mark.e2e
NAME = "described"
_AGE = re.compile(r"\b(?:\d+[dhms])+\b")

MANIFESTS = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {NAME}, labels: {{app: {NAME}}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {NAME}}}}}
  template:
    metadata:
      labels: {{app: {NAME}}}
      annotations: {{sim.io/load: "cpu=200m,memory=64Mi,jitter=0"}}
    spec: {{containers: [{{name: main, image: "nginx:1.27"}}]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: {NAME}}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: {NAME}}}]
  placement: {{clusterAffinity: {{clusterNames: [member1, member2, member3]}}}}
"""


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    """A Deployment that runs in all three."""
    three_members.kubectl("apply", "-f", "-", stdin=MANIFESTS)
    for member in three_members.members.values():
        member.until(DEPLOYMENTS, NAME, lambda found: (found.get("status") or {}).get("readyReplicas") == 1)
    yield three_members
    three_members.kubectl("delete", "-f", "-", stdin=MANIFESTS)
    for member in three_members.members.values():
        member.until_gone(DEPLOYMENTS, NAME)


def still(text: str) -> str:
    """With the same age everywhere."""
    return _AGE.sub(lambda found: re.sub(r"\d", "0", found[0]), text)


def same(ours: Program, theirs: Program, words: list[str], *more: str, having: str = "") -> str:
    """What both say, once that is in it; the moment may change in between, so it is tried again."""

    def alike() -> str:
        output = ours("describe", *words, *more).out
        assert having in output
        assert still(output) == still(theirs("describe", *words).out)
        return output

    return str(eventually_blocking(alike))


def test_what_a_resource_went_through_is_seen_in_the_control_plane(fleet: Propagation) -> None:
    same(fleet.ctl, fleet.kubectl, ["deploy", NAME], having="ApplyPolicySucceed")
    binding = same(fleet.ctl, fleet.kubectl, ["rb", f"{NAME}-deployment"], having="ScheduleBindingSucceed")
    assert "  Resource:\n" in binding
    same(fleet.ctl, fleet.kubectl, ["pp", NAME, "--show-events=false"])
    assert "Complete API Enablements" not in same(fleet.ctl, fleet.kubectl, ["clusters", "--show-events=false"])


def test_a_members_resources_are_seen_through_the_control_plane(fleet: Propagation) -> None:
    for kind in ("deploy", "rs", "ns"):
        output = same(
            fleet.ctl, fleet.sims.kubectl("member1"), [kind, NAME if kind != "ns" else "default"], "-C=member1"
        )
        assert output.startswith("Name:")
    assert "karmada.io/managed=true" in fleet.ctl("describe", "deploy", NAME, "-s", "members", "--cluster=member2").out


def test_what_is_missing_is_said_in_kubectls_words(fleet: Propagation) -> None:
    gone = fleet.ctl("describe", "pods", "missing", "-C", "member1", check=False)
    assert (gone.code, gone.out, gone.err) == (1, "", 'Error from server (NotFound): pods "missing" not found\n')
    unknown = fleet.ctl("describe", "pods", "-C", "member9", check=False)
    assert unknown.err == 'Error from server (NotFound): clusters.cluster.karmada.io "member9" not found\n'


def test_pods_and_nodes_of_all_members_are_measured(fleet: Propagation) -> None:
    look = ("top", "pod", "-l", f"app={NAME}", "--no-headers")
    rows = eventually_blocking(lambda: _measured(fleet, look, 3))
    assert [row[1:] for row in rows] == [[name, "200m", "64Mi"] for name in ("member1", "member2", "member3")]
    nodes = fleet.ctl("top", "node", "--clusters", "member1,member3").lines
    assert nodes[0].split() == ["NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"]
    assert {line.split()[1] for line in nodes[1:]} == {"member1", "member3"}
    fleet.sims.ctl("fail", "member2", "down")
    try:
        left = fleet.ctl(*look, check=False)
        assert left.code == 1
        assert [line.split()[1] for line in left.lines] == ["member1", "member3"]
        assert left.err.startswith("error: cluster(member2): ")
        assert left.err.count("\n") == 1
    finally:
        fleet.sims.ctl("heal", "member2")
        fleet.until_ready("member1", "member2", "member3")


def _measured(fleet: Propagation, look: tuple[str, ...], count: int) -> list[list[str]] | None:
    rows = [line.split() for line in fleet.ctl(*look, check=False).lines]
    return rows if len(rows) == count else None
