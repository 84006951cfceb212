"""karmada-descheduler as a process of its own: over HTTPS to the control plane, over gRPC to estimators."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from karmada.components.controlplane import ControlPlane
from karmada.components.descheduler import descheduler_process, main
from karmada.components.flags import Endpoints
from karmada.components.process import Process
from karmada.descheduler.controller import Options
from karmada.estimator.client.options import ClientOptions
from karmada.estimator.server import EstimatorServer
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import LEASES, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.running import run_component, unhurried
from tests.support.scheduling_cases import DYNAMIC, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling

LOCAL = ("127.0.0.1", 0)
OFTEN = Options(interval=1, threshold=60)
SECONDS = 30.0


class Member:
    """An estimator that knows how many replicas are unschedulable."""

    def __init__(self, cluster: str, unschedulable: int) -> None:
        self.cluster = cluster
        self.unschedulable = unschedulable
        self.requests: list[tuple[Obj | None, float]] = []

    def max_available_replicas(self, *_: object) -> int:
        return 0

    def max_available_component_sets(self, *_: object) -> int:
        return 0

    def unschedulable_replicas(self, resource: Obj | None, threshold_seconds: float) -> int:
        self.requests.append((resource, threshold_seconds))
        return self.unschedulable


@asynccontextmanager
async def estimator(plane: Scheduling, member: Member) -> AsyncIterator[None]:
    """Served, and found by its Service."""
    server = EstimatorServer(member, host="127.0.0.1")
    await server.start()
    service = kube_object("v1", "Service", f"karmada-scheduler-estimator-{member.cluster}", "karmada-system") | {
        "spec": {
            "type": "ExternalName",
            "externalName": "127.0.0.1",
            "ports": [{"port": 10352, "targetPort": server.port}],
        },
    }
    await plane.client.create(SERVICES, service)
    try:
        yield
    finally:
        await server.stop()


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    """With a workload of which m1 has one replica ready of three, and no room for more."""
    async with scheduling(folder, clock=RealClock()) as found:
        await found.clusters("m1", "m2", pods=9)
        await found.bind("web-deployment", deployment(6, placement(DYNAMIC)))
        reports = [{"clusterName": name, "status": {"readyReplicas": ready}} for name, ready in (("m1", 1), ("m2", 3))]
        await found.set_status("web-deployment", {"aggregatedStatus": reports})
        await found.report("m1", 0)
        yield found


@asynccontextmanager
async def running(plane: Scheduling, **how: Any) -> AsyncIterator[Process]:
    process = descheduler_process(load_config(plane.plane.server.kubeconfig), OFTEN, ClientOptions(), **how)
    async with run_component(process):
        yield process


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_it_calls_estimators_deschedules_and_serves_health_and_metrics(plane: Scheduling) -> None:
    member = Member("m1", 2)
    async with (
        estimator(plane, member),
        running(plane, election=unhurried("karmada-descheduler"), endpoints=Endpoints(LOCAL, LOCAL)) as process,
    ):
        await eventually(lambda: _moved(plane))
        resource, threshold = member.requests[0]
        assert resource == {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
        assert threshold == 60.0
        lease = await plane.client.get(LEASES, "karmada-descheduler", "karmada-system")
        assert lease["spec"]["holderIdentity"]
        [endpoint] = process.endpoints
        assert await get(endpoint.port, "/healthz") == (200, "ok")
        page = (await get(endpoint.port, "/metrics"))[1]
        assert 'workqueue_adds_total{name="descheduler"}' in page
        assert page.count("\nkarmada_build_info{") == 1


async def _moved(plane: Scheduling) -> bool:
    return await plane.targets("web-deployment") == {"m1": 1, "m2": 5}


async def test_the_program_deschedules_and_stops_on_a_signal(plane: Scheduling) -> None:
    async with estimator(plane, Member("m1", 2)):
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "karmada.components.descheduler", "--descheduling-interval=1s"),
            *(f"--kubeconfig={plane.plane.server.kubeconfig}", "--unschedulable-threshold=0s"),
            *("--metrics-bind-address=0", "--health-probe-bind-address=0"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert program.stdout is not None
        assert await program.stdout.readline() == b"Descheduler\n"
        await eventually(lambda: _moved(plane))
        program.terminate()
        assert await asyncio.wait_for(program.wait(), SECONDS) == 0


@cases(True, False)
async def test_the_all_in_one_has_it_under_its_own_lease_if_it_is_enabled(enabled: bool, folder: Path) -> None:
    config = ServerConfig(data_dir=folder, storage="memory://", port=0)
    plane = ControlPlane(config, descheduling=OFTEN if enabled else None)
    await plane.start()
    try:
        assert ("descheduler" in plane.manager.controllers) is enabled
        client = plane.server.client(user_agent="test")
        leases = {lease["metadata"]["name"] for lease in (await client.list_all(LEASES, "karmada-system")).items}
        assert ("karmada-descheduler" in leases) is enabled
    finally:
        await plane.stop()


@cases(
    (
        ["--descheduling-interval=-1s"],
        'Options.DeschedulingInterval: Invalid value: "-1s": must be greater than or equal to 0',
    ),
    (["--unschedulable-threshold=-2m"], "Options.UnschedulableThreshold: Invalid value"),
    (
        ["--scheduler-estimator-port=70000"],
        "Options.SchedulerEstimatorPort: Invalid value: 70000: must be a valid port between 0 and 65535 inclusive",
    ),
    (["--scheduler-estimator-timeout=-1s"], "must be greater than or equal to 0"),
    (["--leader-elect-resource-name=other"], "No such option"),
    (["--feature-gates=Failover=true"], "No such option"),
    (["--plugins=*"], "No such option"),
    (["extra"], "Got unexpected extra argument (extra)"),
    (["--kubeconfig=/nowhere/config"], "/nowhere/config"),
)
def test_flags_that_make_no_sense_are_refused(flags: list[str], emitted: str) -> None:
    result = CliRunner().invoke(main, flags)
    assert result.exit_code != 0
    assert emitted in result.output
