"""Simulated nodes in a cluster that is not simulated: an API server of its own that has nothing but storage."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karmada.kube.objects.times import parse_time
from tests.e2e.sim_fleet import SimFleet, names
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: sim.io/node, operator: Exists}]
      containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("target") / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[SimFleet]:
    with SimFleet(tmp_path_factory.mktemp("attach"), kubectl_path) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def kubectl(target: ServerProcess, fleet: SimFleet, kubectl_path: str) -> Program:
    return Program([kubectl_path], fleet.home, target.kubeconfig)


@pytest.fixture(scope="module")
def attached(fleet: SimFleet, target: ServerProcess, kubectl: Program) -> SimFleet:
    fleet.create("extra", "--nodes", "2", "--attach", str(target.kubeconfig))
    kubectl("wait", "--for=condition=ready", "node", "--all", "--timeout=100s")
    return fleet


def test_the_nodes_join_and_run_what_tolerates_them(attached: SimFleet, kubectl: Program) -> None:
    assert names(kubectl, "nodes") == ["node/extra-node-1", "node/extra-node-2"]
    assert names(kubectl, "nodes", "-l", "type=sim") == names(kubectl, "nodes")
    kubectl("apply", "-f", "-", stdin=WEB)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=100s").out
    eventually_blocking(
        lambda: len(kubectl("get", "ep", "web", "-o", "jsonpath={.subsets[*].addresses[*].ip}").out.split()) == 3
    )
    [shown] = attached.ctl("list", "-o", "json").json()
    assert (shown["name"], shown["nodes"], shown["pods"]) == ("extra", 2, 3)
    assert shown["server"].startswith("attached (")


def test_what_does_not_tolerate_them_stays_away(attached: SimFleet, kubectl: Program) -> None:
    kubectl("run", "shy", "--image=nginx")
    reason = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    eventually_blocking(lambda: "untolerated taint" in kubectl("get", "pod", "shy", "-o", reason).out)
    kubectl("delete", "pod", "shy", "--now")


def test_the_heartbeats_are_real(attached: SimFleet, kubectl: Program) -> None:
    leases = ("leases", "-n", "kube-node-lease", "-o", "jsonpath={.items[*].spec.renewTime}")
    beats = eventually_blocking(lambda: len(found := kubectl("get", *leases).out.split()) == 2 and found)
    assert all(time.time() - parse_time(beat) < 15 for beat in beats)


def test_their_kubelets_answer_whom_the_api_server_trusts(
    attached: SimFleet, target: ServerProcess, kubectl: Program, tmp_path: Path
) -> None:
    node = kubectl("get", "node", "extra-node-1", "-o", "json").json()["status"]
    address = next(a["address"] for a in node["addresses"] if a["type"] == "InternalIP")
    url = f"https://{address}:{node['daemonEndpoints']['kubeletEndpoint']['Port']}"
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{url}/pods", context=tls)
    user = yaml.safe_load(target.kubeconfig.read_text())["users"][0]["user"]
    for name in ("client-certificate", "client-key"):
        (tmp_path / name).write_bytes(base64.b64decode(user[f"{name}-data"]))
    tls.load_cert_chain(tmp_path / "client-certificate", tmp_path / "client-key")
    with urllib.request.urlopen(f"{url}/pods", context=tls) as answer:
        pods = json.load(answer)["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"extra-node-1"}
    name = pods[0]["metadata"]["name"]
    with urllib.request.urlopen(f"{url}/containerLogs/default/{name}/web", context=tls) as answer:
        assert name.encode() in answer.read()


def test_more_nodes_are_added_by_the_same_command(attached: SimFleet, kubectl: Program) -> None:
    attached.ctl("scale", "extra", "--nodes", "3")
    eventually_blocking(lambda: len(names(kubectl, "nodes")) == 3)
    attached.ctl("scale", "extra", "--nodes", "2")
    eventually_blocking(lambda: len(names(kubectl, "nodes")) == 2)


def test_what_an_attached_cluster_cannot_do_is_refused(
    attached: SimFleet, target: ServerProcess, tmp_path: Path
) -> None:
    def refused(*arguments: str) -> str:
        done = attached.ctl(*arguments, check=False)
        assert done.code != 0
        return done.err.strip()

    assert refused("fail", "extra", "down") == (
        "error: extra is a real cluster: only a simulated one can be made to fail"
    )
    again = refused("create", "twice", "--attach", str(target.kubeconfig))
    assert again == f'error: {target.url} has simulated nodes already, those of "extra"'
    config = yaml.safe_load(target.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "nowhere").write_text(yaml.safe_dump(config))
    nowhere = refused("create", "nowhere", "--attach", str(tmp_path / "nowhere"))
    assert nowhere.startswith("error: the cluster's API: https://127.0.0.1:1")
    (tmp_path / "nonsense").write_text("hello")
    assert "not a kubeconfig" in refused("create", "nowhere", "--attach", str(tmp_path / "nonsense"))
    assert attached.ctl("list", "-o", "name").lines == ["extra"]


def test_a_restart_takes_the_nodes_up_again(attached: SimFleet, kubectl: Program) -> None:
    before = sorted(kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out.split())
    attached.ctl("stop")
    assert len(names(kubectl, "nodes")) == 2
    attached.ctl("start")
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("rollout", "status", "deployment/web", "--timeout=100s")
    after = kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out.split()
    assert set(before) < set(after)


def test_leaving_takes_nodes_and_pods_away(attached: SimFleet, kubectl: Program) -> None:
    assert attached.ctl("delete", "extra").out == "cluster extra deleted\n"
    assert not names(kubectl, "nodes")
    running = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").out
    assert not running
    eventually_blocking(lambda: not names(kubectl, "leases", "-n", "kube-node-lease"))
