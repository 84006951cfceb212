"""A cluster that registers: kubectl where the control plane is, kubectl where the cluster is, and a real agent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.fleets import Fleet
from tests.support import forking
from tests.support.programs import Program, Result

NAME = "m1"
KINDS = "namespaces,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases"


def wait(side: Program, name: str, until: str, *, namespace: str = "default") -> None:
    side("wait", "-n", namespace, name, until, "--timeout=100s")


@contextmanager
def registering(folder: Path, kubectl: str) -> Iterator[Registering]:
    """A control plane and a cluster that has not registered yet; its pods run as processes."""
    with Fleet(folder, kubectl) as fleet:
        fleet.create(NAME, "--run-processes")
        yield Registering(fleet, folder, kubectl)


class Registering:
    """`karmada` is kubectl where the control plane is, `member` where the cluster is, with a home of its own."""

    def __init__(self, fleet: Fleet, folder: Path, kubectl: str) -> None:
        self.fleet = fleet
        self.karmada = fleet.kubectl
        path = forking.shell_path()
        self.karmada.env["PATH"] = path
        home = folder / "member-home"
        config = home / ".kube" / "config"
        config.parent.mkdir(parents=True)
        shown = fleet.sims.kubectl(NAME)("config", "view", "--minify", "--flatten")
        config.write_text(shown.out)
        self.member = Program([kubectl], home, config)
        self.member.env["PATH"] = path
        self.config = config

    def printed(self) -> list[str]:
        """The command that the control plane prints, as words for kubectl."""
        file = str(self.fleet.plane.kubeconfig)
        line = self.karmada("karmada", "token", "create", "--print-register-command", "--kubeconfig", file).out
        kubectl, *words = shlex.split(line)
        assert kubectl == "kubectl"
        return words

    def register(self, *flags: str) -> Result:
        return self.member(*self.printed(), *flags, timeout=120)

    def join(self) -> None:
        """Register, and wait until the cluster is ready."""
        self.register()
        self.fleet.until_ready(NAME)

    def propagate(self, manifests: str, *objects: str, namespace: str = "default") -> None:
        """Apply manifests in the control plane, and wait until these objects are in the cluster, in this order."""
        self.karmada("apply", "-f", "-", stdin=manifests)
        for name in objects:
            wait(self.member, name, "--for=create", namespace=namespace)

    def names(self) -> dict[str, set[str]]:
        """What is on either side, of the kinds that registering creates."""
        kinds = {
            "karmada": f"{KINDS},clusters.cluster.karmada.io,certificatesigningrequests",
            "member": f"{KINDS},deployments",
        }
        found = {}
        for side, words in kinds.items():
            items = getattr(self, side)("get", words, "-A", "-o", "json").json()["items"]
            found[side] = {
                f"{i['kind']} {i['metadata'].get('namespace', '')}/{i['metadata']['name']}"
                for i in items
                if "bootstrap-token-" not in i["metadata"]["name"]
            }
        return found

    def agent_log(self) -> str:
        return self.member("logs", "-n", "karmada-system", "deploy/karmada-agent", "--tail=40", check=False).out
