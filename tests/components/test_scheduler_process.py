"""karmada-scheduler as a process of its own, over HTTPS."""

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

from karmada.components.flags import Endpoints
from karmada.components.process import Process
from karmada.components.scheduler import main, scheduler_process
from karmada.features import default_gates
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.manager import LeadershipLost
from karmada.scheduler.service.core import Options
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.running import run_component, unhurried
from tests.support.scheduling_cases import DUPLICATED, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling

SECONDS = 30.0
LOCAL = ("127.0.0.1", 0)


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(folder, clock=RealClock()) as found:
        await found.clusters("m1", "m2")
        yield found


@asynccontextmanager
async def running(plane: Scheduling, name: str = "other", **how: Any) -> AsyncIterator[Process]:
    config = load_config(plane.plane.server.kubeconfig)
    process = scheduler_process(config, Options(name=name), default_gates(), **how)
    async with run_component(process):
        yield process


async def until_scheduled(plane: Scheduling, name: str) -> dict[str, int]:
    found: dict[str, int] = await eventually(lambda: plane.targets(name))
    return found


async def test_schedulers_of_two_names_share_the_bindings(plane: Scheduling) -> None:
    async with running(plane, election=unhurried("other-scheduler")):
        await plane.bind("mine-deployment", deployment(1, placement(DUPLICATED)))
        await plane.bind("others-deployment", deployment(2, placement(DUPLICATED), schedulerName="other"))
        await plane.bind("nobodys-deployment", deployment(3, placement(DUPLICATED), schedulerName="nobody"))
        assert await until_scheduled(plane, "mine-deployment") == {"m1": 1, "m2": 1}
        assert await until_scheduled(plane, "others-deployment") == {"m1": 2, "m2": 2}
        assert await plane.targets("nobodys-deployment") == {}
        lease = await plane.client.get(LEASES, "other-scheduler", "karmada-system")
        assert lease["spec"]["holderIdentity"]
    managers = {
        name: (await plane.get(f"{name}-deployment"))["metadata"]["managedFields"] for name in ("mine", "others")
    }
    assert all("karmada-scheduler" in {entry["manager"] for entry in found} for found in managers.values())


async def test_one_of_two_with_the_same_lease_stands_by_and_takes_over(plane: Scheduling) -> None:
    lease = unhurried("other-scheduler")
    async with running(plane, election=lease) as first:
        await eventually(lambda: first.manager.controllers["other-resourcebindings"].queue.takes_keys)
        async with running(plane, election=lease) as second:
            await eventually(lambda: second.manager.informers.synced)
            await plane.bind("a-deployment", deployment(1, placement(DUPLICATED), schedulerName="other"))
            await until_scheduled(plane, "a-deployment")
            assert not second.manager.controllers["other-resourcebindings"].queue.takes_keys
            first.manager.finish()
            await eventually(lambda: second.manager.controllers["other-resourcebindings"].queue.takes_keys)
            await plane.bind("b-deployment", deployment(1, placement(DUPLICATED), schedulerName="other"))
            await until_scheduled(plane, "b-deployment")


async def test_who_loses_the_lease_is_done(plane: Scheduling) -> None:
    lease = unhurried("other-scheduler")
    process = scheduler_process(
        load_config(plane.plane.server.kubeconfig), Options(name="other"), default_gates(), election=lease
    )
    task = asyncio.create_task(process.run(asyncio.Event()))
    await eventually(lambda: process.manager.controllers["other-resourcebindings"].queue.takes_keys)
    stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}
    await plane.client.patch(LEASES, "other-scheduler", "karmada-system", stolen)
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(task, SECONDS)


async def get(address: tuple[str, int], path: str) -> tuple[int, str]:
    url = f"http://{address[0]}:{address[1]}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_health_and_metrics_are_served(plane: Scheduling) -> None:
    async with running(plane, endpoints=Endpoints(LOCAL, LOCAL)) as process:
        [endpoint] = process.endpoints
        await eventually(lambda: endpoint.port)
        assert await get((endpoint.host, endpoint.port), "/healthz") == (200, "ok")
        await plane.bind("web-deployment", deployment(1, placement(DUPLICATED), schedulerName="other"))
        await until_scheduled(plane, "web-deployment")
        counted = 'attempts_total{result="scheduled",schedule_type="ReconcileSchedule"} 1.0'

        async def scraped() -> str:
            page = (await get((endpoint.host, endpoint.port), "/metrics"))[1]
            return page if counted in page else ""

        page = await eventually(scraped)
        assert 'karmada_scheduler_queue_incoming_bindings_total{event="BindingAdd"} 1.0' in page
        assert 'workqueue_adds_total{name="scheduler-queue"} 1.0' in page
        assert 'scheduling_algorithm_duration_seconds_count{schedule_step="Filter"} 1.0' in page
        assert page.count("\nkarmada_build_info{") == 1


async def test_two_addresses_are_two_servers(plane: Scheduling) -> None:
    async with running(plane, endpoints=Endpoints(("localhost", 0), LOCAL)) as process:
        health, metrics = process.endpoints
        await eventually(lambda: health.port and metrics.port)
        assert (await get(("127.0.0.1", health.port), "/metrics"))[0] == 404
        assert (await get(("127.0.0.1", metrics.port), "/metrics"))[0] == 200


async def test_the_program_schedules_and_stops_on_a_signal(plane: Scheduling) -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "karmada.components.scheduler", "--scheduler-name=other"),
        *("--leader-elect-resource-name=other-scheduler", f"--kubeconfig={plane.plane.server.kubeconfig}"),
        *("--metrics-bind-address=0", "--health-probe-bind-address=0", "--plugins=*,-TaintToleration"),
        *("--plugins=-ClusterAffinity", "--enable-empty-workload-propagation"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stdout is not None
    assert await program.stdout.readline() == b"Scheduler other\n"
    where = placement(DUPLICATED, clusterAffinity={"clusterNames": ["nowhere"]})
    await plane.bind("web-deployment", deployment(2, where, schedulerName="other"))
    assert await until_scheduled(plane, "web-deployment") == {"m1": 2, "m2": 2}
    program.terminate()
    assert await asyncio.wait_for(program.wait(), SECONDS) == 0


@cases(
    (["--scheduler-name="], 'Options.SchedulerName: Invalid value: "": should not be empty'),
    (
        ["--scheduler-estimator-port=70000"],
        "Options.SchedulerEstimatorPort: Invalid value: 70000: must be a valid port between 0 and 65535 inclusive",
    ),
    (
        ["--scheduler-estimator-timeout=-1s"],
        'Options.SchedulerEstimatorTimeout: Invalid value: "-1s": must be greater than or equal to 0',
    ),
    (["--leader-elect-retry-period=soon"], "is not a duration"),
    (["--metrics-bind-address=here"], "is not an address"),
    (["extra"], "Got unexpected extra argument (extra)"),
    (["--kubeconfig=/nowhere/config"], "/nowhere/config"),
    (["--feature-gates=Nothing=true"], "unrecognized feature gate: Nothing"),
)
def test_flags_that_make_no_sense_are_refused(flags: list[str], emitted: str) -> None:
    result = CliRunner().invoke(main, flags)
    assert result.exit_code != 0
    assert emitted in result.output


def test_it_prints_its_version() -> None:
    assert CliRunner().invoke(main, ["version"]).output.startswith("karmada-scheduler version: ")
