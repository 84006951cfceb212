"""Our own chart, installed by helm into a simulated cluster whose pods are processes: it works, and goes."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.manifests import propagated_web
from tests.e2e.sim_fleet import SimFleet
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program

pytestmark = pytest.mark.e2e
SOURCE = str(Path(__file__).parents[2] / "charts" / "karmada")
NAMESPACE = "karmada-system"
PORT = 32443
KINDS = (
    "deployments,statefulsets,daemonsets,jobs,pods,services,secrets,configmaps,serviceaccounts,roles,rolebindings,"
    "persistentvolumeclaims,poddisruptionbudgets"
)
WHOLE = (
    "clusterroles,clusterrolebindings,persistentvolumes,mutatingwebhookconfigurations,validatingwebhookconfigurations"
)
OF_EVERY_NAMESPACE = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
WEB = propagated_web("member1", "member2")


def pem_values(config: dict[str, Any]) -> dict[str, str]:
    """A kubeconfig, as values of the chart."""
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def decoded(text: str) -> str:
        return base64.b64decode(text).decode()

    return {
        "caCrt": decoded(server["certificate-authority-data"]),
        "crt": decoded(user["client-certificate-data"]),
        "key": decoded(user["client-key-data"]),
        "server": server["server"],
    }


class Installation:
    """The commands of a published guide, with the address of a node in place of its own."""

    def __init__(self, fleet: SimFleet, folder: Path, kubectl: str) -> None:
        self.fleet, self.folder = fleet, folder
        self.helm, self.host = fleet.helm("host", NAMESPACE), fleet.kubectl("host", NAMESPACE)
        self.config = folder / "karmada-config"
        self.ctl = Karmadactl(fleet.home, self.config)
        self.kubectl = Program([kubectl], fleet.home, self.config)
        self.chart = self.helm("package", SOURCE, "-d", str(folder)).out.rpartition(" ")[2].strip()
        where = "jsonpath={.items[0].status.addresses[0].address}"
        self.address = self.host("get", "nodes", "-o", where).out

    def install(self, values: dict[str, Any], *flags: str) -> None:
        file = self.folder / "karmada.yaml"
        file.write_text(yaml.safe_dump(values))
        words = (
            "install",
            "karmada",
            "--create-namespace",
            self.chart,
            "-f",
            str(file),
            *flags,
            "--wait",
            "--timeout",
            "150s",
        )
        done = self.helm(*words, check=False, timeout=170)
        assert done.code == 0, f"{done.err}\n{self.state()}"

    def state(self) -> str:
        """Pods, and the last lines of those that are not ready."""
        shown = [self.host("get", "pods,jobs").out]
        for pod in self.host("get", "pods", "-o", "json").json()["items"]:
            status = pod["status"].get("containerStatuses") or [{}]
            if not status[0].get("ready"):
                name = pod["metadata"]["name"]
                shown.append(f"{name}: {status}\n{self.host('logs', name, '--tail=15', check=False).out}")
        return "\n".join(shown)

    def fetch_config(self) -> dict[str, Any]:
        """`server` is a name inside of the host cluster: the guide changes it."""
        where = "jsonpath={.data.kubeconfig}"
        shown = self.host("get", "secret", "karmada-kubeconfig", "-o", where).out
        config: dict[str, Any] = yaml.safe_load(base64.b64decode(shown))
        config["clusters"][0]["cluster"]["server"] = f"https://{self.address}:{PORT}"
        self.config.write_text(yaml.safe_dump(config))
        return config

    def agent_values(self, cluster: str) -> dict[str, Any]:
        kubeconfig = pem_values(yaml.safe_load(self.config.read_text()))
        image = {"repository": "karmada/karmada-agent"}
        return {"installMode": "agent", "agent": {"image": image, "clusterName": cluster, "kubeconfig": kubeconfig}}

    def install_addons(self, cluster: str) -> None:
        """Beside the control plane, as a release of their own."""
        config = self.fleet.kubectl(cluster)("config", "view", "--minify", "--raw", "-o", "json").json()
        values = {
            "installMode": "component",
            "components": ["descheduler", "schedulerEstimator"],
            "descheduler": {"replicaCount": 1},
            "schedulerEstimator": {"memberClusters": [{"clusterName": cluster, "kubeconfig": pem_values(config)}]},
        }
        file = self.folder / "addons.yaml"
        file.write_text(yaml.safe_dump(values))
        done = self.helm("install", "addons", self.chart, "-f", str(file), "--wait", check=False, timeout=170)
        assert done.code == 0, f"{done.err}\n{self.state()}"

    def api_servers(self) -> list[int]:
        """The ids of their processes."""
        processes = self.fleet.clusters()["host"]["processes"]
        return [int(process["pid"]) for process in processes if "karmada-apiserver-" in process["pod"]]

    def left(self) -> set[str]:
        """What of a release is in the host cluster, with what every namespace has."""
        looking = self.fleet.ours("host", NAMESPACE)
        found = looking("get", KINDS, "-o", "json").json()["items"]
        found += looking("get", WHOLE, "-l", "app.kubernetes.io/instance", "-o", "json").json()["items"]
        return {f"{obj['kind']}/{obj['metadata']['name']}" for obj in found}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Installation]:
    """A host cluster, and two clusters that become members."""
    folder = tmp_path_factory.mktemp("chart")
    with SimFleet(folder, kubectl_path) as fleet:
        for name in ("host", "member2"):
            fleet.create(name, "--nodes", "1", "--run-processes")
        fleet.create("member1", "--nodes", "1")
        yield Installation(fleet, folder, kubectl_path)


def ready(there: Installation, cluster: str) -> None:
    there.kubectl("wait", "--for=create", f"cluster/{cluster}", "--timeout=100s")
    there.kubectl("wait", "--for=condition=Ready", f"cluster/{cluster}", "--timeout=100s")


def test_one_deployment_with_sqlite_from_install_to_uninstall(there: Installation) -> None:
    values = {
        "allInOne": {"enabled": True},
        "apiServer": {"serviceType": "NodePort", "nodePort": PORT},
        "controllerManager": {"extraCommandArgs": {"cluster-success-threshold": "1s"}},
        "certs": {"auto": {"hosts": ["*.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}", there.address]}},
    }
    there.host("create", "namespace", NAMESPACE)
    there.host("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    there.install(values)
    there.fetch_config()
    assert there.host("get", "deployments", "-o", "name").lines == ["deployment.apps/karmada-apiserver"]

    there.ctl("join", "member1", "--cluster-kubeconfig", str(there.fleet.kubeconfig), "--cluster-context", "member1")
    agent = there.folder / "agent.yaml"
    agent.write_text(yaml.safe_dump(there.agent_values("member2")))
    member = there.fleet.helm("member2", NAMESPACE)
    member("install", "karmada-agent", "--create-namespace", there.chart, "-f", str(agent), "--wait", timeout=100)
    for cluster in ("member1", "member2"):
        ready(there, cluster)
    assert [row.split()[:4:2] for row in there.kubectl("get", "clusters").lines[1:]] == [
        ["member1", "Push"],
        ["member2", "Pull"],
    ]
    there.kubectl("apply", "-f", "-", stdin=WEB)
    for cluster in ("member1", "member2"):
        pods = there.fleet.kubectl(cluster)
        eventually_blocking(lambda pods=pods: "2/2" in pods("get", "deployment", "web", check=False).out)
    there.kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=100s")

    before = there.host("get", "secret", "karmada-cert", "-o", "jsonpath={.metadata.resourceVersion}").out
    change = ("--reuse-values", "--set", "apiServer.podLabels.changed=yes", "--wait")
    there.helm("upgrade", "karmada", there.chart, *change, timeout=170)
    assert len(there.host("get", "pods", "-l", "changed=yes", "-o", "name").lines) == 1
    after = there.host("get", "secret", "karmada-cert", "-o", "jsonpath={.metadata.resourceVersion}").out
    assert before == after
    assert there.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}").out == "4"
    there.kubectl("scale", "deployment/web", "--replicas=3")
    eventually_blocking(lambda: "3/3" in there.fleet.kubectl("member2")("get", "deployment", "web").out)

    elsewhere = ("--reuse-values", "--set", "allInOne.enabled=false")
    refused = there.helm("upgrade", "karmada", there.chart, *elsewhere, check=False)
    assert "state of this release is in: one Deployment with SQLite, pvc; these values would have it in" in refused.err

    there.install_addons("member1")
    addons = there.host("get", "deployments", "-l", "app.kubernetes.io/instance=addons", "-o", "name").lines
    assert addons == ["deployment.apps/addons-descheduler", "deployment.apps/karmada-scheduler-estimator-member1"]
    there.helm("uninstall", "addons", "--wait")

    member("uninstall", "karmada-agent", "--wait", timeout=100)
    there.helm("uninstall", "karmada", "--wait", timeout=100)
    nothing_is_left(there)
    there.host("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-")


def nothing_is_left(there: Installation) -> None:
    def gone() -> bool:
        left = there.left() - OF_EVERY_NAMESPACE
        assert not left, left
        return True

    eventually_blocking(gone)


def test_a_published_guide_for_separate_components_works_as_it_shows(there: Installation) -> None:
    """With images of any registry, and its values file."""
    names = {
        "kubeControllerManager": "kube-controller-manager",
        "apiServer": "kube-apiserver",
        "search": "karmada-search",
        "descheduler": "karmada-descheduler",
        "schedulerEstimator": "karmada-scheduler-estimator",
        "agent": "karmada-agent",
        "aggregatedApiServer": "karmada-aggregated-apiserver",
        "controllerManager": "karmada-controller-manager",
        "webhook": "karmada-webhook",
        "scheduler": "karmada-scheduler",
    }
    values: dict[str, Any] = {section: {"image": {"repository": f"karmada/{name}"}} for section, name in names.items()}
    values["etcd"] = {"internal": {"image": {"repository": "karmada/etcd"}}}
    values["certs"] = {
        "auto": {
            "hosts": [
                "kubernetes.default.svc",
                "*.etcd.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}",
                "*.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}",
                "*.{{ .Release.Namespace }}.svc",
                "localhost",
                "127.0.0.1",
                there.address,
            ]
        }
    }
    there.install(
        values,
        *("--set", f"apiServer.serviceType=NodePort,apiServer.nodePort={PORT}"),
        *("--set", "controllerManager.extraCommandArgs.cluster-success-threshold=1s", "--wait-for-jobs"),
    )
    there.fetch_config()
    assert sorted(line.partition("/")[2] for line in there.host("get", "deploy,sts", "-o", "name").lines) == [
        "etcd",
        "karmada-aggregated-apiserver",
        "karmada-apiserver",
        "karmada-controller-manager",
        "karmada-kube-controller-manager",
        "karmada-scheduler",
        "karmada-webhook",
    ]
    there.ctl("join", "member1", "--cluster-kubeconfig", str(there.fleet.kubeconfig), "--cluster-context", "member1")
    ready(there, "member1")
    there.kubectl("apply", "-f", "-", stdin=WEB)
    there.kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=100s")
    add = (
        "--reuse-values",
        "--set",
        "components={search},search.replicaCount=1,apiServer.replicaCount=2",
        "--wait",
        "--wait-for-jobs",
    )
    there.helm("upgrade", "karmada", there.chart, *add, timeout=170)
    there.kubectl("get", "resourceregistries")
    os.kill(there.api_servers()[0], signal.SIGKILL)
    for replicas in range(3, 6):
        there.kubectl("scale", "deployment/web", f"--replicas={replicas}")
    there.kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=5", "--timeout=100s")
    there.helm("uninstall", "karmada", "--wait", timeout=100)
    nothing_is_left(there)
