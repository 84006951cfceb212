"""`service-name-resolution-detector-example` as a process: the condition of its node, and as leader of its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.components.service_name_resolution_detector import LEASE, DetectorProcess, main
from karmada.kube.objects.gvrs import LEASES, NODES
from karmada.kube.objects.types import Obj
from karmada.problemdetector.rules import CONDITION, Thresholds
from tests.support.agents import PullFleet, agent_config, member_config, pull_fleet
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fleet import condition
from tests.support.running import run_component, unhurried


async def test_the_leader_reports_what_its_nodes_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tmp_path / "names.json"
    names.write_text("{}")
    monkeypatch.setenv("SIM_CLUSTER_NAMES", str(names))
    async with pull_fleet(tmp_path, "m1") as found:
        member = found.members["m1"]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        made = await member.client.create(NODES, node)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await member.client.update_status(NODES, {**made, "status": ready})
        process = DetectorProcess(
            member_config(member.server),
            agent_config(found.fleet.plane.server, "m1"),
            "m1",
            "n1",
            period=0.05,
            thresholds=Thresholds(0.1, 0.1, 60),
            election=unhurried(LEASE, "kube-system"),
        )
        async with run_component(process):
            await eventually(lambda: _is(found, "False"))
            names.write_text('{"kubernetes.default": {"addresses": ["127.0.0.1"]}}')
            await eventually(lambda: _is(found, "True"))
            assert await member.client.get(LEASES, LEASE, "kube-system")
            reported = await member.client.get(NODES, "n1")
            assert {c["type"] for c in reported["status"]["conditions"]} == {"Ready", CONDITION}


async def _is(found: PullFleet, status: str) -> bool:
    cluster: Obj | None = await found.cluster("m1")
    return cluster is not None and condition(cluster, CONDITION) == status


@cases(
    (["--karmada-kubeconfig=x"], "Options.ClusterName"),
    (["--cluster-name=m1"], "Options.KarmadaKubeconfig"),
    (["--cluster-name=m1", "--karmada-kubeconfig=x", "--detectors=dns"], "the only detector is coredns-detector"),
    (["--cluster-name=m1", "--karmada-kubeconfig=x", "--coredns-detect-period=0s"], "Options.CorednsDetectPeriod"),
)
def test_flags_that_cannot_be_are_refused(arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code != 0
    assert problem in done.output
