"""A control plane that karmadactl installs into a simulated host cluster, whose pods are real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karmada.install.addons.catalog import ADDONS
from tests.e2e.sim_fleet import SimFleet
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, Result

NAMESPACE = "karmada-system"
_POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [member1]}
    spreadConstraints: [{spreadByField: cluster, minGroups: LEAST, maxGroups: 1}]
"""


def policy(*, at_least: int = 1) -> str:
    """For the Deployment web; with more than one cluster it makes no sense."""
    return _POLICY.replace("LEAST", str(at_least))


class Installed:
    """`host` and `member` are kubectl at the clusters, `karmada` at the control plane."""

    def __init__(self, fleet: SimFleet, root: Path, kubectl: str) -> None:
        self.fleet = fleet
        self.data = root / "karmada"
        self.config = self.data / "karmada-apiserver.config"
        self.ctl = Karmadactl(fleet.home, fleet.kubeconfig)
        self.host, self.member = fleet.kubectl("host", NAMESPACE), fleet.kubectl("member1")
        self.karmada = Program([kubectl], fleet.home, self.config)
        self._looking = Karmadactl(fleet.home, self.config)

    def at_host(self, *words: str) -> Result:
        """karmadactl with the kubeconfig of the host cluster."""
        return self.ctl(*words, "--kubeconfig", str(self.fleet.kubeconfig), "--context", "host", timeout=180)

    def addons(self, *words: str) -> Result:
        return self.at_host("addons", *words, "--karmada-kubeconfig", str(self.config))

    def states(self, *words: str) -> dict[str, str]:
        """As `addons list` shows them."""
        rows = [line.strip("|").split("|") for line in self.addons("list", *words).lines]
        return {name.strip(): state.strip() for name, state in rows if name.strip() in ADDONS}

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.fleet.ours("host", NAMESPACE)("get", "pods", "-o", "json").json()["items"]
        return found

    def processes(self) -> dict[str, int]:
        """Process ids by pod."""
        found = self.fleet.clusters()["host"]["processes"] or ()
        return {process["pod"].rpartition("/")[2]: int(process["pid"]) for process in found}

    def replicas_in_member(self) -> str:
        words = ("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
        return self.fleet.ours("member1")(*words, check=False).out

    def join(self, member: str) -> None:
        """Until it is ready."""
        access = ["--cluster-kubeconfig", str(self.fleet.kubeconfig), "--cluster-context", member]
        self.ctl("join", member, "--kubeconfig", str(self.config), *access)
        self.until_ready(member)

    def until_ready(self, cluster: str) -> None:
        """Also if it is not there yet: an agent makes it when it has started."""
        state = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        eventually_blocking(lambda: self._looking("get", "cluster", cluster, "-o", state, check=False).out == "True")
