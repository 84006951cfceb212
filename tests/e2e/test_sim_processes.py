"""Pods of simulated clusters as processes, used as people use them: karmadactl and kubectl, a killed simulator."""

from __future__ import annotations

import json
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.sim_fleet import SimFleet
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.programs import alive

pytestmark = pytest.mark.e2e
SERVER = Path(__file__).parents[1] / "kube/sim/processes/known_server.py"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[SimFleet]:
    folder = tmp_path_factory.mktemp("processes")
    images = folder / "images.yaml"
    images.write_text(
        f"known/server: {{command: [{sys.executable}, {SERVER}], commands: {{python: [{sys.executable}]}}}}"
    )
    with SimFleet(folder, kubectl_path) as fleet:
        fleet.create("host", "--nodes", "1", "--run-processes", "--process-images", str(images))
        kubectl = fleet.kubectl("host")
        kubectl("create", "deployment", "web", "--image=known/server:1", "--replicas=2")
        kubectl("rollout", "status", "deployment/web", "--timeout=100s")
        kubectl("expose", "deployment", "web", "--port=8000", "--target-port=8080")
        eventually_blocking(lambda: kubectl("logs", "deployment/web").out)
        yield fleet


def pids(fleet: SimFleet) -> list[int]:
    return [int(process["pid"]) for process in fleet.clusters()["host"]["processes"] or ()]


def test_status_says_what_runs_as_a_process(fleet: SimFleet) -> None:
    shown = fleet.ctl("status").out
    assert "cluster host runs pods of known images as processes of this machine: 2" in shown
    assert all(f"pid {pid}, 127." in shown for pid in pids(fleet))


def test_kubectl_logs_follows_the_output(fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("host")
    [pod, _] = kubectl("get", "pods", "-l", "app=web", "-o", "name").lines
    address = kubectl("get", pod, "-o", "jsonpath={.status.podIP}").out
    following = kubectl.start("logs", "-f", pod)
    try:
        assert following.stdout is not None
        assert "listening" in following.stdout.readline()  # what was there is shown; from here on it follows
        with urllib.request.urlopen(f"http://{address}:8080/args", timeout=LIMIT):
            assert "/args" in following.stdout.readline()
    finally:
        following.kill()
        following.communicate()


def test_kubectl_exec_runs_known_commands_in_the_environment_of_the_container(fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("host")
    done = kubectl("exec", "deployment/web", "--", "python", "-c", "import os; print(os.environ['HOSTNAME'])")
    assert done.out.startswith("web-")
    failed = kubectl("exec", "deployment/web", "--", "python", "-c", "exit(4)", check=False)
    assert "exit code 4" in failed.err
    refused = kubectl("exec", "deployment/web", "--", "sh", check=False)
    assert 'exec: "sh": containers of known/server:1 run as processes, which can run only python, server' in refused.err


def test_kubectl_exec_passes_stdin_on(fleet: SimFleet) -> None:
    script = "import sys; print(sys.stdin.read().upper())"
    done = fleet.kubectl("host")("exec", "-i", "deployment/web", "--", "python", "-c", script, stdin="hello")
    assert done.out == "HELLO\n"


def test_kubectl_port_forward_reaches_the_process(fleet: SimFleet) -> None:
    forwarding = fleet.kubectl("host").start("port-forward", "deployment/web", ":8080")
    try:
        assert forwarding.stdout is not None
        port = int(forwarding.stdout.readline().split("127.0.0.1:")[1].split()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/env/HOSTNAME", timeout=LIMIT) as response:
            assert response.read().startswith(b"web-")
    finally:
        forwarding.kill()
        forwarding.communicate()


def test_a_new_node_serves_node_ports_too(fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("host")
    kubectl("expose", "deployment", "web", "--name=open", "--type=NodePort", "--port=80", "--target-port=8080")
    fleet.ctl("scale", "host", "--nodes", "2")
    port = kubectl("get", "service", "open", "-o", "jsonpath={.spec.ports[0].nodePort}").out
    where = "jsonpath={.status.addresses[0].address}"
    address = eventually_blocking(lambda: kubectl("get", "node", "host-node-2", "-o", where, check=False).out)

    def reached() -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}:{port}/env/HOSTNAME", timeout=LIMIT) as response:
                return bool(response.read().startswith(b"web-"))
        except OSError:
            return False

    eventually_blocking(reached)


def test_the_proxy_of_the_api_server_reaches_the_process(fleet: SimFleet) -> None:
    path = "/api/v1/namespaces/default/services/web:8000/proxy/env/HOSTNAME"
    assert fleet.kubectl("host")("get", "--raw", path).out.startswith("web-")


def test_no_process_outlives_a_killed_simulator_and_all_are_restarted(fleet: SimFleet) -> None:
    before = pids(fleet)
    assert len(before) == 2
    fleet.kill()
    eventually_blocking(lambda: not any(map(alive, before)))
    fleet.ctl("start")
    eventually_blocking(lambda: len(pids(fleet)) == 2)
    restarts = "jsonpath={.items[*].status.containerStatuses[0].restartCount}"
    eventually_blocking(lambda: fleet.kubectl("host")("get", "pods", "-o", restarts).out.split() == ["1", "1"])


STACK = """
apiVersion: v1
kind: Service
metadata: {name: etcd}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: etcd}, ports: [{name: server, port: 2380}]}
---
apiVersion: v1
kind: Service
metadata: {name: etcd-client}
spec: {selector: {app: etcd}, ports: [{name: client, port: 2379}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: etcd}
spec:
  serviceName: etcd
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: etcd}}
  template:
    metadata: {labels: {app: etcd}}
    spec:
      containers:
      - name: etcd
        image: registry.k8s.io/etcd:3.5.9-0
        command:
        - /usr/local/bin/etcd
        - --name=$(POD_NAME)
        - --listen-peer-urls=http://0.0.0.0:2380
        - --listen-client-urls=http://0.0.0.0:2379
        - --advertise-client-urls=http://etcd-client.default.svc.cluster.local:2379
        - --initial-cluster=MEMBERS
        - --initial-advertise-peer-urls=http://$(POD_NAME).etcd.default.svc.cluster.local:2380
        - --data-dir=/var/lib/etcd
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        readinessProbe: {httpGet: {path: /health, port: 2379}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /var/lib/etcd}]
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: karmada-apiserver}
spec: {selector: {app: karmada-apiserver}, ports: [{port: 5443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: karmada-apiserver}
spec:
  selector: {matchLabels: {app: karmada-apiserver}}
  template:
    metadata: {labels: {app: karmada-apiserver}}
    spec:
      containers:
      - name: karmada-apiserver
        image: registry.k8s.io/kube-apiserver:v1.31.3
        command:
        - kube-apiserver
        - --etcd-servers=http://etcd-client.default.svc.cluster.local:2379
        - --data-dir=/data
        - --bind-address=0.0.0.0
        - --secure-port=5443
        readinessProbe: {httpGet: {path: /readyz, port: 5443, scheme: HTTPS}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
"""
MEMBERS = ",".join(f"etcd-{number}=http://etcd-{number}.etcd.default.svc.cluster.local:2380" for number in range(3))


def test_a_control_plane_is_run_as_it_is_installed(fleet: SimFleet) -> None:
    """Three etcds that find each other, an API server that reaches them by a Service, and a Service before that."""
    kubectl = fleet.kubectl("host")
    kubectl("apply", "-f", "-", stdin=STACK.replace("MEMBERS", MEMBERS))
    kubectl("rollout", "status", "deployment/karmada-apiserver", "--timeout=120s", timeout=150)
    address = kubectl("get", "service", "karmada-apiserver", "-o", "jsonpath={.spec.clusterIP}").out
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"https://{address}:5443/version", context=unverified, timeout=LIMIT) as response:
        assert json.load(response)["major"] == "1"
    etcdctl = ("exec", "etcd-0", "--", "etcdctl", "--endpoints=http://etcd-client.default.svc:2379")
    assert kubectl(*etcdctl, "get", "/registry", "--prefix", "--keys-only", "--limit=1").out.startswith("/registry")
    assert kubectl(*etcdctl, "member", "list").out.count(", started, etcd-") == 3


def test_deleting_the_cluster_ends_its_processes(fleet: SimFleet) -> None:
    before = pids(fleet)
    assert before
    fleet.ctl("delete", "host")
    assert not any(map(alive, before))


def test_a_file_of_images_that_cannot_be_used_creates_nothing(fleet: SimFleet, tmp_path: Path) -> None:
    images = tmp_path / "images.yaml"
    images.write_text("redis: redis-server")
    done = fleet.ctl("create", "bad", "--run-processes", "--process-images", str(images), check=False)
    assert f'{images}: image "redis": Expected `array`' in done.err
    assert "bad" not in fleet.clusters()
    assert (
        "--process-images needs --run-processes"
        in fleet.ctl("create", "bad", "--process-images", str(images), check=False).err
    )


def test_a_process_is_not_run_unless_the_cluster_was_created_so(fleet: SimFleet) -> None:
    fleet.create("plain", "--nodes", "1")
    assert fleet.clusters()["plain"]["processes"] is None
    assert "as processes" not in fleet.ctl("status").out
    kubectl = fleet.kubectl("plain")
    kubectl("create", "deployment", "web", "--image=known/server:1")
    kubectl("rollout", "status", "deployment/web", "--timeout=100s")
    children = Path(f"/proc/{fleet.pid}/task/{fleet.pid}/children").read_text().split()
    assert not any("known_server" in Path(f"/proc/{child}/cmdline").read_text() for child in children)
