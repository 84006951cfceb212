"""karmada-scheduler and the estimators of two members over their connections: HTTPS, and gRPC with mutual TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from karmada.components.process import Process
from karmada.components.scheduler import scheduler_process
from karmada.components.scheduler_estimator import EstimatorProcess
from karmada.estimator.client.options import ClientOptions, Tls
from karmada.estimator.server import ServingFiles
from karmada.features import default_gates
from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import NODES, SERVICES
from karmada.kube.objects.types import Obj
from karmada.scheduler.service.core import Options
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.member_objects import node
from tests.support.member_server import MemberServer, member_server
from tests.support.running import run_component
from tests.support.scheduling_cases import DYNAMIC, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling

NEEDS: Obj = {"nodeClaim": {"tolerations": [{"operator": "Exists"}]}}
"""A new node is tainted until a kubelet reports that it is ready."""
PODS = {"m1": 8, "m2": 4}
"""As many fit on the members' nodes; the members report more of themselves."""


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    authority = Authority()
    server, client = authority.issue("estimator", ["127.0.0.1"]), authority.issue("karmada-scheduler")
    contents = {
        "ca": authority.pem,
        "server.crt": server.certificate,
        "server.key": server.key,
        "client.crt": client.certificate,
        "client.key": client.key,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


@asynccontextmanager
async def estimating(member: RestConfig, name: str, tls: dict[str, Path]) -> AsyncIterator[int]:
    """Its port."""
    files = ServingFiles(tls["server.crt"], tls["server.key"], tls["ca"])
    process = EstimatorProcess(member, name, default_gates(), host="127.0.0.1", port=0, files=files)
    async with run_component(process) as task:
        await eventually(lambda: process.server.port or task.done())
        yield process.server.port


@asynccontextmanager
async def scheduler(plane: Scheduling, tls: dict[str, Path]) -> AsyncIterator[Process]:
    files = Tls(authority=tls["ca"], certificate=tls["client.crt"], key=tls["client.key"])
    config = load_config(plane.plane.server.kubeconfig)
    process = scheduler_process(config, Options(), default_gates(), client=ClientOptions(tls=files, timeout=20))
    async with run_component(process):
        yield process


async def serve(plane: Scheduling, name: str, port: int) -> None:
    """Where schedulers find the estimator of a cluster."""
    metadata = {"name": f"karmada-scheduler-estimator-{name}", "namespace": "karmada-system"}
    spec = {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": 10352, "targetPort": port}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    await plane.client.apply(SERVICES, service, field_manager="test", force=True)


async def placed(plane: Scheduling, name: str) -> dict[str, int]:
    """With requirements of its own, as equal ones share the answers of a moment ago."""
    needs = {**NEEDS, "priorityClassName": name}
    await plane.bind(f"{name}-deployment", deployment(12, placement(DYNAMIC), replicaRequirements=needs))
    found: dict[str, int] = await eventually(lambda: plane.targets(f"{name}-deployment"))
    return found


async def test_replicas_are_divided_by_what_the_estimators_of_all_clusters_return(
    tmp_path: Path, tls: dict[str, Path]
) -> None:
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(scheduling(tmp_path, clock=RealClock(), scheduler=False))
        members: dict[str, MemberServer] = {}
        for name, pods in PODS.items():
            members[name] = await stack.enter_async_context(member_server(tmp_path / name, controllers=False))
            await members[name].client.create(NODES, node("n0", cpu="4", memory="8Gi", pods=str(pods)))
            await plane.cluster(name, pods=100)
        first = await stack.enter_async_context(estimating(members["m1"].config, "m1", tls))
        await serve(plane, "m1", first)
        async with estimating(members["m2"].config, "m2", tls) as port:
            await serve(plane, "m2", port)
            process = await stack.enter_async_context(scheduler(plane, tls))
            connections = process.assembly.estimator_connections(ClientOptions())
            assert await placed(plane, "a") == {"m1": 8, "m2": 4}
        assert await placed(plane, "b") == {"m1": 6, "m2": 6}, "without one estimator, none counts"
        async with estimating(members["m2"].config, "m2", tls) as port:
            await serve(plane, "m2", port)
            await eventually(lambda: connections.get("m2"))
            assert await placed(plane, "c") == {"m1": 8, "m2": 4}
