"""karmada-scheduler-estimator as a program, beside a simulated member whose pods do not all fit."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.estimator.contract import (
    GET_UNSCHEDULABLE_REPLICAS,
    MAX_AVAILABLE_COMPONENT_SETS,
    MAX_AVAILABLE_REPLICAS,
    Method,
    ReplicasQuery,
    SetsQuery,
    UnschedulableQuery,
    replicas_request,
    sets_request,
    unschedulable_request,
)
from karmada.kube.client.grpc_library import grpc
from karmada.kube.objects.types import Obj
from tests.e2e.sim_fleet import SimFleet
from tests.support.certificates import Authority
from tests.support.estimator_client import estimator_client
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.objects import kube_object
from tests.support.ports import free_port
from tests.support.programs import ComponentProcess

pytestmark = pytest.mark.e2e
AUTHORITY = Authority()
CLIENT = AUTHORITY.issue("system:scheduler")
DEPLOYMENT: Obj = kube_object("apps/v1", "Deployment", "web") | {
    "spec": {
        "replicas": 5,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1500m"}}}],
            },
        },
    },
}
REFERENCE: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}


class Running:
    """The program with its member: two nodes with 4 cpus each."""

    def __init__(self, fleet: SimFleet, port: int, health_port: int, log: Path) -> None:
        self.kubectl = fleet.kubectl("member1")
        self.port = port
        self.log = log
        self._health_port = health_port

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._health_port}{path}", timeout=LIMIT) as answer:
            return str(answer.read().decode())

    def call(self, method: Method, request: Any) -> int:
        async def once() -> int:
            async with estimator_client(self.port, AUTHORITY, CLIENT) as client:
                return await client.call(method, request)

        return asyncio.run(once())

    def replicas(self, **request: str) -> int:
        query = ReplicasQuery("member1", {"resourceRequest": request})
        return self.call(MAX_AVAILABLE_REPLICAS, replicas_request(query))

    def sets(self, *components: tuple[int, str]) -> int:
        found = [
            {"name": f"c{number}", "replicas": replicas, "replicaRequirements": {"resourceRequest": {"cpu": cpu}}}
            for number, (replicas, cpu) in enumerate(components)
        ]
        return self.call(MAX_AVAILABLE_COMPONENT_SETS, sets_request(SetsQuery("member1", found)))

    def unschedulable(self, threshold: float) -> int | None:
        """None while the estimator does not know the Deployment."""
        query = UnschedulableQuery("member1", REFERENCE, threshold)
        try:
            return self.call(GET_UNSCHEDULABLE_REPLICAS, unschedulable_request(query))
        except grpc.RpcError as error:
            if "not found" not in str(error.details()):
                raise
            return None


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("estimator")
    pair = AUTHORITY.issue("estimator", ["127.0.0.1"])
    for name, content in {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": AUTHORITY.pem}.items():
        (root / name).write_bytes(content)
    with SimFleet(root, kubectl_path) as fleet:
        fleet.create("member1", "--nodes", "2", "--cpu", "4", "--memory", "16Gi")
        port, health_port = free_port(), free_port()
        files = {"auth-cert": "tls.crt", "auth-key": "tls.key", "client-ca": "ca.crt"}
        arguments = [
            "--v=4", "--cluster-name=member1", f"--kubeconfig={fleet.folder / 'clusters/member1/admin.kubeconfig'}",
            f"--server-port={port}", f"--metrics-bind-address=127.0.0.1:{health_port}",
            f"--health-probe-bind-address=127.0.0.1:{health_port}",
            *(f"--grpc-{flag}-file={root / name}" for flag, name in files.items()),
        ]  # fmt: skip
        with ComponentProcess("scheduler_estimator", arguments, root / "estimator.log", "Estimator of cluster member1"):
            eventually_blocking(lambda: _listens(port))
            yield Running(fleet, port, health_port, root / "estimator.log")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_pods_that_do_not_fit_show_in_every_estimate(running: Running, tmp_path: Path) -> None:
    before = running.replicas(cpu="1")
    assert before in (6, 7, 8)  # pods of the system take a part
    manifest = tmp_path / "web.json"
    manifest.write_text(json.dumps(DEPLOYMENT))
    running.kubectl("apply", "-f", str(manifest))
    eventually_blocking(lambda: running.unschedulable(0) == 1)
    assert running.unschedulable(300) == 0
    assert running.replicas(cpu="1500m") == 0
    assert running.replicas(cpu="500m") >= 1
    assert running.sets((1, "500m"), (1, "1500m")) == 0
    running.kubectl("scale", "deployment", "web", "--replicas=1")
    eventually_blocking(lambda: running.unschedulable(0) == 0)
    eventually_blocking(lambda: running.replicas(cpu="1500m") == 3)
    assert running.sets((1, "500m"), (1, "1500m")) == 3
    assert 'method="MaxAvailableComponentSets" object="" result=3' in running.log.read_text()
    assert running.page("/healthz") == "ok"
    page = running.page("/metrics")
    assert 'estimating_request_total{result="success",type="GetUnschedulableReplicas"}' in page


@pytest.mark.parametrize(("version", "admitted"), [("TLSv1_2", False), ("TLSv1_3", True)])
def test_only_tls_1_3_is_spoken(running: Running, tmp_path: Path, version: str, admitted: bool) -> None:
    for name, content in {"own.crt": CLIENT.certificate, "own.key": CLIENT.key}.items():
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on by default since Python 3.13
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(tmp_path / "own.crt", tmp_path / "own.key")
    with socket.create_connection(("127.0.0.1", running.port)) as raw:
        if not admitted:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(raw, server_hostname="127.0.0.1")
            return
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            assert secured.version() == "TLSv1.3"
