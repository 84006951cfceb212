"""karmada-scheduler-estimator as a process of its own, as a client of a member over HTTPS."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from karmada.components.flags import Endpoints
from karmada.components.scheduler_estimator import EstimatorProcess, main
from karmada.estimator.contract import MAX_AVAILABLE_REPLICAS, ReplicasQuery, replicas_request
from karmada.features import default_gates
from karmada.kube.objects.gvrs import ACCOUNTS, NODES, PODS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.estimator_client import estimator_client
from tests.support.eventually import eventually
from tests.support.member_objects import node, pod
from tests.support.member_server import MemberServer, member_server
from tests.support.running import run_component

NEEDS: Obj = {"resourceRequest": {"cpu": "500m"}, "nodeClaim": {"tolerations": [{"operator": "Exists"}]}}
"""A new node is tainted until a kubelet reports that it is ready."""
LOCAL = ("127.0.0.1", 0)


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[MemberServer]:
    async with member_server(tmp_path, controllers=False) as found:
        await found.client.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": "default"}})
        yield found


@asynccontextmanager
async def running(member: MemberServer) -> AsyncIterator[EstimatorProcess]:
    process = EstimatorProcess(
        member.config, "member1", default_gates(), host="127.0.0.1", port=0, endpoints=Endpoints(LOCAL, LOCAL)
    )
    async with run_component(process) as task:
        await eventually(lambda: process.server.port or task.done())
        yield process


async def test_it_estimates_from_what_the_member_has_and_is_observed(member: MemberServer) -> None:
    await member.client.create(NODES, node("n0", cpu="4", memory="8Gi", pods="110"))
    await member.client.create(PODS, pod("p0", "n0", cpu="1"))
    request = replicas_request(ReplicasQuery("member1", NEEDS))
    async with running(member) as process, estimator_client(process.server.port) as client:
        assert await client.call(MAX_AVAILABLE_REPLICAS, request) == 6
        await member.client.create(PODS, pod("p1", "n0", cpu="2"))
        await eventually(lambda: process.estimator.max_available_replicas(NEEDS) == 2)
        [endpoint] = process.endpoints
        async with aiohttp.ClientSession(f"http://127.0.0.1:{endpoint.port}") as session:
            async with session.get("/healthz") as response:
                assert (response.status, await response.text()) == (200, "ok")
            async with session.get("/metrics") as response:
                page = await response.text()
    assert "karmada_scheduler_estimator_estimating_request_total{" in page
    assert page.count("\nkarmada_build_info{") == 1
    assert 'kubernetes_feature_enabled{name="ResourceQuotaEstimate"' in page


@cases(
    ([], 'Options.ClusterName: Invalid value: "": clusterName cannot be empty'),
    (
        ["--cluster-name=m", "--server-port=65536"],
        "Options.ServerPort: Invalid value: 65536: must be a valid port between 0 and 65535 inclusive",
    ),
    (["--cluster-name=m", "--grpc-auth-cert-file=/dev/null"], "needs --grpc-auth-key-file"),
    (["--cluster-name=m", "--grpc-auth-key-file=/dev/null"], "needs --grpc-auth-cert-file"),
    (["--cluster-name=m", "--grpc-client-ca-file=/dev/null"], "clients are verified over TLS only"),
    (["--cluster-name=m", "--feature-gates=X=true"], "--feature-gates"),
    (["--cluster-name=m", "more"], "unexpected extra argument"),
    (["--cluster-name=m", "--kubeconfig=/nowhere"], "/nowhere"),
)
def test_flags_that_make_no_sense_are_refused(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert problem in result.output


def test_it_reports_which_libraries_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("karmada.estimator.server", "karmada.kube.client.grpc_library"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    result = CliRunner().invoke(main, ["--cluster-name=m", "--kubeconfig=/nowhere"])
    assert "needs the Python package of grpc: pip install 'pykarmada[grpc]'" in result.output
