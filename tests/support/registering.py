"""A control plane whose certificates are approved, a simulated cluster, and karmadactl between them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from click.testing import CliRunner

from karmada.api.cluster import Cluster
from karmada.cli.karmadactl import main
from karmada.controllers.agent_csr_approving import CSRS, AgentCsrApproving
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.context import Context
from karmada.joining.pull.objects import ROLES
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
)
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.cluster import SimCluster
from tests.support.control_plane import ControlPlane, Parts, running
from tests.support.eventually import eventually
from tests.support.kubectl_plane import simulated

SYSTEM = {"karmada.io/system": "true"}
SHARED = (NAMESPACES, SECRETS, ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS, LEASES)

PHASES = """\
[preflight] Running pre-flight checks
[preflight] All pre-flight checks were passed
[karmada-agent-start] Waiting to perform the TLS Bootstrap
[karmada-agent-start] Waiting to check cluster exists
[karmada-agent-start] Assign the necessary RBAC permissions to the agent
[karmada-agent-start] Waiting to construct karmada-agent kubeconfig
[karmada-agent-start] Waiting the necessary secret and RBAC
[karmada-agent-start] Waiting karmada-agent Deployment

cluster(m1) is joined successfully
"""


def controllers(context: Context) -> list[Reconciler]:
    return [AgentCsrApproving(context), Clusters(context)]


@dataclass
class Pair:
    plane: ControlPlane
    sim: SimCluster
    member: Client

    async def run(self, *words: str) -> tuple[int, str, str]:
        result = await asyncio.to_thread(CliRunner().invoke, main, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    async def token(self, *words: str) -> str:
        flags = ("--kubeconfig", str(self.plane.server.kubeconfig))
        code, out, err = await self.run("token", "create", *words, *flags)
        assert code == 0, err
        return out.strip()

    async def command(self, *words: str) -> list[str]:
        """What --print-register-command prints, for this cluster."""
        name, *rest = (await self.token("--print-register-command", *words)).split()
        assert name == "karmadactl"
        return [*rest, "--kubeconfig", str(self.sim.kubeconfig), "--cluster-name", "m1", "--discovery-timeout", "20s"]

    async def register(self, *words: str) -> tuple[int, str, str]:
        return await self.run(*await self.command(), *words)

    async def state(self) -> dict[str, set[str]]:
        """The names of everything that registering creates, on both sides."""
        found = {}
        for side, client, kinds in (
            ("control plane", self.plane.client, (*SHARED, CSRS, Cluster.gvr)),
            ("member", self.member, (*SHARED, DEPLOYMENTS)),
        ):
            for kind in kinds:
                items = (await client.list_all(kind)).items
                names = {f"{o['metadata'].get('namespace', '')}/{o['metadata']['name']}" for o in items}
                found[f"{kind.resource} of the {side}"] = {n for n in names if "bootstrap-token-" not in n}
        return found

    async def nothing_is_left(self, before: dict[str, set[str]]) -> None:
        left: dict[str, set[str]] = {}

        async def none() -> bool:
            nonlocal left
            after = await self.state()
            left = {key: after[key] ^ before[key] for key in after if after[key] != before[key]}
            return not left

        await eventually(none, show=lambda: left)

    async def secret_kubeconfig(self, namespace: str = "karmada-system") -> Obj:
        secret = await self.member.get(SECRETS, "karmada-kubeconfig", namespace)
        assert secret["metadata"]["labels"] == SYSTEM
        assert list(secret["data"]) == ["karmada-kubeconfig"]
        config: Obj = yaml.safe_load(base64.b64decode(secret["data"]["karmada-kubeconfig"]))
        return config


@asynccontextmanager
async def registering_pair(folder: Path, parts: Parts = controllers) -> AsyncIterator[Pair]:
    async with (
        running(folder / "plane", parts, clock=RealClock()) as plane,
        simulated("m1", folder / "member") as sim,
    ):
        yield Pair(plane, sim, sim.server.client())
