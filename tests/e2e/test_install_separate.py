"""A control plane in separate components, installed into a simulated host cluster, whose pods are real processes.

One installation for all tests, which follow each other: what is installed is used, loses a server, and is removed.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import ssl
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from karmada.install.addons.catalog import ADDONS
from tests.e2e.installed_plane import NAMESPACE, Installed, policy
from tests.e2e.sim_fleet import SimFleet
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.programs import alive

pytestmark = pytest.mark.e2e
REPLICAS = 2
COMPONENTS = {
    "etcd": 1,
    "karmada-apiserver": REPLICAS,
    "karmada-aggregated-apiserver": 1,
    "kube-controller-manager": 1,
    "karmada-scheduler": 1,
    "karmada-controller-manager": 1,
    "karmada-webhook": 1,
}
SERVED = {
    "v1alpha1.cluster.karmada.io": "karmada-aggregated-apiserver",
    "v1alpha1.search.karmada.io": "karmada-search",
    "v1beta1.metrics.k8s.io": "karmada-metrics-adapter",
    "v1beta1.custom.metrics.k8s.io": "karmada-metrics-adapter",
    "v1beta2.custom.metrics.k8s.io": "karmada-metrics-adapter",
}
REGISTRY = """
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: deployments}
spec:
  targetCluster: {clusterNames: [member1]}
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
"""


def login_page(address: str) -> tuple[int, str]:
    """Of a dashboard whose certificate is its own."""
    with urlopen(f"https://{address}:5480/login", context=ssl._create_unverified_context(), timeout=LIMIT) as response:
        return response.status, response.read().decode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Installed]:
    root = tmp_path_factory.mktemp("install")
    with SimFleet(root, kubectl_path) as fleet:
        fleet.create("host", "--nodes", str(REPLICAS), "--run-processes")
        fleet.create("member1")
        fleet.create("edge", "--run-processes")
        found = Installed(fleet, root, kubectl_path)
        flags = ["--kube-image-mirror-country=cn", "--etcd-storage-mode", "PVC", "--storage-classes-name", "standard"]
        flags += ["--karmada-apiserver-replicas", str(REPLICAS)]
        flags += ["--karmada-kube-controller-manager-extra-args", "--namespace-deletion-delay=100ms"]
        done = found.at_host("init", *flags, "--karmada-data", str(found.data))
        assert "Karmada is installed successfully" in done.out
        yield found


def test_every_pod_is_a_process_and_ready(installed: Installed) -> None:
    pods = installed.pods()
    apps = [pod["metadata"]["labels"]["app"] for pod in pods]
    assert {app: apps.count(app) for app in apps} == COMPONENTS
    assert {pod["metadata"]["name"] for pod in pods} == installed.processes().keys()
    for pod in pods:
        assert pod["status"]["containerStatuses"][0]["ready"], pod["status"]
    servers = {pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["labels"]["app"] == "karmada-apiserver"}
    assert len(servers) == REPLICAS, "replicas are on different nodes"


def test_a_member_joins_and_a_deployment_propagates(installed: Installed) -> None:
    installed.join("member1")
    installed.karmada("create", "deployment", "web", "--image=nginx", "--replicas=2")
    refused = installed.karmada("apply", "-f", "-", stdin=policy(at_least=2), check=False)
    assert 'admission webhook "propagationpolicy.karmada.io" denied the request' in refused.err
    installed.karmada("apply", "-f", "-", stdin=policy())
    eventually_blocking(lambda: installed.replicas_in_member() == "2")
    status = ("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
    eventually_blocking(lambda: installed.karmada(*status).out == "2")


def test_namespaces_garbage_and_tokens_are_seen_to_by_the_kube_controller_manager(installed: Installed) -> None:
    karmada = installed.karmada
    karmada("create", "namespace", "team")
    karmada("create", "serviceaccount", "robot", "-n", "team")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "robot",
            "namespace": "team",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
    }
    karmada("create", "-f", "-", stdin=json.dumps(secret))
    shown = ("get", "secret", "robot", "-n", "team", "-o", "go-template={{.data.token | base64decode}}")
    token = eventually_blocking(lambda: karmada(*shown, check=False).out.removeprefix("<no value>"))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    who = karmada("create", "-f", "-", "-o", "jsonpath={.status.user.username}", stdin=json.dumps(review))
    assert who.out == "system:serviceaccount:team:robot"
    holder = ("get", "lease", "kube-controller-manager", "-n", NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}")
    assert karmada(*holder).out
    karmada("delete", "namespace", "team", "--timeout=100s")


def test_a_cluster_registers_with_a_token_and_a_certificate_that_the_kube_controller_manager_signs(
    installed: Installed,
) -> None:
    line = installed.ctl("token", "create", "--print-register-command", "--kubeconfig", str(installed.config)).out
    where = ["--kubeconfig", str(installed.fleet.kubeconfig), "--context", "edge", "--cluster-name", "edge"]
    installed.ctl(*shlex.split(line)[1:], *where)
    installed.until_ready("edge")


def test_addons_are_enabled_listed_and_used(installed: Installed) -> None:
    assert installed.states() == {**dict.fromkeys(ADDONS, "disabled"), "karmada-scheduler-estimator": "unknown"}
    member = ["--member-kubeconfig", str(installed.fleet.kubeconfig), "--member-context", "member1"]
    installed.addons("enable", "all", "-C", "member1", *member)
    assert installed.states("-C", "member1") == dict.fromkeys(ADDONS, "enabled")
    template = "{range .items[*]}{.metadata.name} {.spec.service.name} {.status.conditions[0].status}\n{end}"
    lines = [line.split(" ") for line in installed.karmada("get", "apiservices", "-o", f"jsonpath={template}").lines]
    assert {name: service for name, service, available in lines if service and available == "True"} == SERVED
    eventually_blocking(lambda: installed.karmada("top", "pods", check=False).out.count("web-") == 2)
    installed.karmada("apply", "-f", "-", stdin=REGISTRY)
    cached = ("get", "--raw", "/apis/search.karmada.io/v1alpha1/search/cache/apis/apps/v1/deployments")
    eventually_blocking(lambda: '"name":"web"' in installed.karmada(*cached, check=False).out)
    [dashboard] = [pod for pod in installed.pods() if pod["metadata"]["labels"]["app"] == "karmada-dashboard"]
    status, page = login_page(dashboard["status"]["podIP"])
    assert (status, "Log in" in page) == (200, True), "it is ready by its probe, and serves"


def test_kubectl_goes_on_when_an_api_server_is_killed(installed: Installed) -> None:
    processes = installed.processes()
    first = next(name for name in processes if name.startswith("karmada-apiserver-"))
    os.kill(processes[first], signal.SIGKILL)
    for replicas in range(3, 8):
        installed.karmada("scale", "deployment", "web", f"--replicas={replicas}")
    eventually_blocking(lambda: installed.replicas_in_member() == "7")
    eventually_blocking(lambda: installed.processes().get(first) not in (None, processes[first]))
    installed.host("wait", "--for=condition=Ready", f"pod/{first}", "--timeout=100s")


def test_an_addon_is_disabled_without_a_trace(installed: Installed) -> None:
    installed.addons("disable", "karmada-metrics-adapter", "--force")
    assert installed.states()["karmada-metrics-adapter"] == "disabled"
    left = installed.host("get", "deployments,services,serviceaccounts", "-o", "name").out
    assert "metrics-adapter" not in left
    assert "metrics" not in installed.karmada("get", "apiservices,services", "-A", "-o", "name").out


def test_deinit_leaves_nothing(installed: Installed) -> None:
    processes = installed.processes()
    assert len(processes) == sum(COMPONENTS.values()) + len(ADDONS) - 1
    done = installed.at_host("deinit", "--force", "--purge-namespace")
    assert "remove Karmada successfully" in done.out
    eventually_blocking(lambda: not any(map(alive, processes.values())))
    assert installed.host("get", "namespace", NAMESPACE, check=False).code
    assert not installed.processes()
    assert installed.host("get", "clusterroles,clusterrolebindings", "-o", "name").out.count("karmada") == 0
    assert "karmada" not in installed.host("get", "nodes", "-o", "jsonpath={.items[*].metadata.labels}").out
    assert installed.replicas_in_member() == "7", "what runs in members goes on"
