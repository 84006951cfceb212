"""A control plane is installed into a cluster as the documents show it, used, repaired and removed: in one Deployment.

The pods of the host cluster are processes, ready by their real probes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.registering import wait
from tests.e2e.sim_fleet import SimFleet
from tests.support import forking
from tests.support.programs import Program, Result

pytestmark = pytest.mark.e2e
KINDS = "deployments,statefulsets,replicasets,pods,services,secrets,configmaps,serviceaccounts,persistentvolumeclaims"
NGINX = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, labels: {app: nginx}}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: "nginx:1.7.9"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: example-policy}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""


class Installed:
    """`host` and `karmada` are kubectl for the cluster and for the control plane in it."""

    def __init__(self, sims: SimFleet, root: Path, kubectl: str) -> None:
        self.sims = sims
        self.data = root / "karmada"
        self.kubeconfig = self.data / "karmada-apiserver.config"
        self.host = sims.kubectl("host", "karmada-system")
        self.karmada = Program([kubectl], sims.home, self.kubeconfig)
        self.plugin = Program([kubectl, "karmada"], sims.home, sims.kubeconfig)
        self.plugin.env["PATH"] = forking.shell_path()

    def init(self, *flags: str, check: bool = True) -> Result:
        words = ("init", "--context=host", "--karmada-data", str(self.data), *flags)
        return self.plugin(*words, check=check, timeout=150)

    def names(self) -> set[str]:
        """What is in the namespace, but for what every namespace has."""
        words = ("get", KINDS, "-o", "name", "--ignore-not-found")
        return set(self.host(*words).lines) - {"serviceaccount/default", "configmap/kube-root-ca.crt"}

    def pods(self) -> set[str]:
        return set(self.host("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out.split())


@pytest.fixture(scope="module", name="installed")
def into_a_cluster(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Installed]:
    root = tmp_path_factory.mktemp("init")
    with SimFleet(root, kubectl_path) as sims:
        sims.create("host", "member2", "--run-processes")
        sims.create("member1")
        yield Installed(sims, root, kubectl_path)


def test_a_control_plane_is_installed_used_repaired_and_removed(installed: Installed) -> None:
    host, karmada, plugin, sims = installed.host, installed.karmada, installed.plugin, installed.sims

    manifests = installed.init("--dry-run").out
    checked = host("apply", "--dry-run=client", "--validate=strict", "-f", "-", stdin=manifests)
    assert "deployment.apps/karmada-apiserver created (dry run)" in checked.lines
    assert not installed.data.exists()

    done = installed.init()
    assert "everything in one Deployment, with SQLite on a volume" in done.err
    assert "Karmada is installed successfully" in done.out
    assert host("get", "pods", "--no-headers").out.split()[1:3] == ["1/1", "Running"]

    way = ("--kubeconfig", str(installed.kubeconfig))
    joined = plugin(*way, "join", "member1", f"--cluster-kubeconfig={sims.kubeconfig}")
    assert joined.out == "cluster(member1) is joined successfully\n"
    printed = plugin("token", "create", "--print-register-command", *way).out
    assert " ".join(shlex.split(printed)[2:4]) in done.out, "the address in the text is that of the token's command"
    plugin(*shlex.split(printed)[2:], "--context=member2", "--cluster-name=member2", timeout=120)
    for name in ("member1", "member2"):
        wait(karmada, f"cluster/{name}", "--for=create")
        wait(karmada, f"cluster/{name}", "--for=condition=Ready")

    karmada("apply", "-f", "-", stdin=NGINX)
    for name in ("member1", "member2"):
        wait(sims.kubectl(name), "deployment/nginx", "--for=create")
    wait(karmada, "deployment/nginx", "--for=jsonpath={.status.readyReplicas}=4")

    before = installed.pods()
    again = installed.init()
    assert "certificates: 0 issued" in again.err
    assert installed.pods() == before, "a run that changes nothing restarts nothing"

    host("delete", "pod", "-l", "app=karmada-apiserver", "--force", "--grace-period=0")
    host("delete", "secret", "karmada-scheduler-config")
    repaired = installed.init("--karmada-apiserver-extra-args=--v=3")
    assert "host objects: 12 objects, 1 created, 1 updated" in repaired.err
    assert karmada("get", "deployment", "nginx", "-o", "jsonpath={.spec.replicas}").out == "2"
    wait(karmada, "cluster/member2", "--for=condition=Ready")

    removed = plugin("deinit", "--context=host", "--force", "--purge-namespace", timeout=120)
    assert 'delete deployment "karmada-apiserver"' in removed.out
    assert 'namespaces "karmada-system" not found' in host("get", "namespace", "karmada-system", check=False).err
    assert installed.names() == set()
    assert host("get", "persistentvolumes", "-o", "name").out == ""
