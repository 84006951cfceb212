"""The commands of docs/propagation.md, overrides.md, quota.md, rebalance.md and others work as they are written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS
from tests.e2e.pasting import blocks
from tests.e2e.propagating import WORKS, Propagation
from tests.support import forking
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
DOCS = Path(__file__).parents[2] / "docs"


def paste(fleet: Propagation, page: str, sooner: tuple[str, str] | None = None) -> str:
    """What all the shell of a page says, run with the folders of the test in place of the usual ones.

    `sooner` replaces a duration that is too long for a test.
    """
    script = "\n".join(blocks(DOCS / page, "sh"))
    if sooner is not None:
        assert sooner[0] in script
        script = script.replace(*sooner)
    script = script.replace("~/.karmada/sim/members.config", str(fleet.sims.kubeconfig))
    tools = forking.shell_path()
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail"],
        input=script,
        capture_output=True,
        text=True,
        env={**fleet.kubectl.env, "PATH": tools, "KARMADA_SIM_DIR": str(fleet.sims.folder)},
        cwd=fleet.sims.home,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def test_the_page_on_propagation_can_be_pasted(three_members: Propagation) -> None:
    said = paste(three_members, "propagation.md")
    for expected in (
        "propagationpolicy.policy.karmada.io/web created",
        'deployment "web" successfully rolled out',
        "Successfully applied resource(default/web) to cluster member2",
        "resourcebinding.work.karmada.io/web-deployment condition met",
        "customresourcedefinition.apiextensions.k8s.io/books.example.com created",
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"
    for member in three_members.members.values():
        member.until_gone(DEPLOYMENTS, "web")
    marks = [work for work in three_members.here.list(WORKS) if "private" in work["metadata"]["name"]]
    assert marks == []


def test_the_page_on_overrides_can_be_pasted(three_members: Propagation) -> None:
    said = paste(three_members, "overrides.md")
    for expected in (
        "test-repo/myapp:1.0.0",
        "myapp:1.0.1",
        "deployment.apps/myapp condition met",
        '"policyName":"myapp"',
        "Apply override policy(default/myapp) for cluster(member1) succeed.",
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"
    for member in three_members.members.values():
        eventually_blocking(lambda member=member: member.get(DEPLOYMENTS, "myapp") is None)


def test_the_page_on_rebalancing_can_be_pasted(three_members: Propagation) -> None:
    said = paste(three_members, "rebalance.md")
    for expected in (
        "Now:        member1:3, member2:3",
        "Then:       member1:2, member2:2, member3:2",
        "Moves:      2",
        "workloadrebalancer.apps.karmada.io/web condition met",
        "resourcebinding.work.karmada.io/web-deployment condition met",
        '[{"name":"member1","replicas":2},{"name":"member2","replicas":2},{"name":"member3","replicas":2}]',
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"
    for member in three_members.members.values():
        member.until_gone(DEPLOYMENTS, "web")


def test_the_page_on_scaling_by_load_can_be_pasted(three_members: Propagation) -> None:
    window = ("stabilizationWindowSeconds: 10", "stabilizationWindowSeconds: 1")
    said = paste(three_members, "autoscaling.md", sooner=window)
    for expected in (
        "federatedhpa.autoscaling.karmada.io/web created",
        "cluster member2: deployment/web has total-cpu=150m",
        'deployment "web" successfully rolled out',
        "New size: 6; reason: cpu resource utilization (percentage of request) above target",
        "New size: 1; reason: All metrics below target",
        'deployment.apps "web" deleted',
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"
    assert said.count("deployment.apps/web condition met") == 2
    for member in three_members.members.values():
        member.until_gone(DEPLOYMENTS, "web")


def test_the_page_on_quotas_can_be_pasted(three_members: Propagation) -> None:
    said = paste(three_members, "quota.md")
    for expected in (
        "federatedresourcequota.policy.karmada.io/shares condition met",
        '{"clusterName":"member1","hard":{"pods":"10","requests.cpu":"6"},"used":{"pods":"0","requests.cpu":"0"}}',
        'QuotaExceeded: admission webhook "resourcebinding.karmada.io" denied the request: '
        "FederatedResourceQuota(team/sum) exceeded for resource cpu: requested sum 5, limit 4.",
        'deployment "web" successfully rolled out',
        '{"cpu":"6"}',
        '{"cpu":"5"}',
        'namespace "team" deleted',
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"
