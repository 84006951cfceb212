"""A control plane and simulated members in this process, and kubectl as any user of either."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from karmada.joining.join import Joining, join
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.faults.kinds import Partition
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.support.background import Background
from tests.support.karmada_server import serving
from tests.support.programs import Program
from tests.support.rights import account, binding, role

PROXIES = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"


@dataclass
class Plane:
    background: Background
    server: ApiServer
    folder: Path
    kubectl_path: str

    def kubectl(self, user: str = "", *groups: str, member: str = "") -> Program:
        """As the administrator or as a user, to the control plane or through it to a member."""
        arguments = [f"--server={self.server.url}{PROXIES.format(member)}"] if member else []
        config = self._kubeconfig(user, *groups) if user else self.server.kubeconfig
        home = self.folder / "home" / (member.replace("*", "all") or "control-plane")
        home.mkdir(parents=True, exist_ok=True)
        return Program([self.kubectl_path, *arguments], home, config)

    def _kubeconfig(self, user: str, *groups: str) -> Path:
        path = self.folder / f"{user}.kubeconfig"
        if not path.exists():
            pair = self.server.pki.ca.issue(user, organizations=groups)
            cert, key = self.folder / f"{user}.crt", self.folder / f"{user}.key"
            cert.write_bytes(pair.cert_pem)
            key.write_bytes(pair.key_pem)
            config = yaml.safe_load(self.server.kubeconfig.read_text())
            config["users"][0]["user"] = {"client-certificate": str(cert), "client-key": str(key)}
            path.write_text(yaml.safe_dump(config))
        return path

    def join(self, name: str) -> SimCluster:
        """Join a simulated cluster whose impersonator may impersonate any user."""
        sim = self.background.enter(simulated(name, self.folder / name))
        self.background.run(_join(self.server, sim, name))
        return sim

    @contextmanager
    def silent(self, members: Iterable[SimCluster]) -> Iterator[None]:
        """Meanwhile the members respond to nobody."""
        chosen = list(members)
        for sim in chosen:
            self.background.run(sim.faults.inject(Partition(users="."), name="silent"))
        try:
            yield
        finally:
            for sim in chosen:
                self.background.run(sim.faults.heal("silent"))

    def create(self, gvr: GVR, obj: Obj) -> Obj:
        return self.background.run(self.server.client().create(gvr, obj))


@asynccontextmanager
async def simulated(name: str, folder: Path) -> AsyncIterator[SimCluster]:
    profile = Profile(name, latencies=INSTANT, pools=(NodePool(count=1),), system_pods=False)
    sim = SimCluster(profile, folder, in_memory=True)
    await sim.start()
    try:
        yield sim
    finally:
        await sim.stop()


async def _join(server: ApiServer, sim: SimCluster, name: str) -> None:
    config = load_config(sim.kubeconfig)
    member = Client(HttpTransport(config))
    try:
        await join(server.client(), member, Joining.to(config, name))
        await member.create(CLUSTER_ROLES, role("karmada-impersonator", IMPERSONATION))
        impersonator = account("karmada-impersonator", "karmada-cluster")
        await member.create(CLUSTER_ROLE_BINDINGS, binding("karmada-impersonator", impersonator))
    finally:
        await member.close()


IMPERSONATION: Obj = {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]}
PROXY: Obj = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]}


def plane(background: Background, folder: Path, kubectl_path: str) -> Plane:
    server = background.enter(serving(folder / "control-plane"))
    return Plane(background, server, folder, kubectl_path)


def stop(process: subprocess.Popen[Any]) -> None:
    process.kill()
    process.communicate()
