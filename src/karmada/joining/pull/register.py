"""Registering a cluster in Pull mode: from the cluster's side, with a bootstrap token of the control plane.

The token obtains two certificates. The first is that of the RBAC generator, which may create the rights of the agent
and is thrown away afterwards; the second is the agent's own and goes into the cluster with it. The Cluster itself is
created by the agent. Until the agent runs, every failure takes back what was created on either side.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.joining import objects
from karmada.joining.join import JoinError, Progress, check_unique, cluster_id_of, ensure_namespace, quiet
from karmada.joining.pull.certificates import (
    CertificateRequest,
    Credentials,
    agent_subject,
    new_rsa_key,
    obtain_certificate,
)
from karmada.joining.pull.discovery import Connect, Discovery, discover
from karmada.joining.pull.objects import (
    AGENT_ACCOUNT,
    KUBECONFIG_SECRET,
    Agent,
    Placed,
    agent_kubeconfig,
    agent_lease,
    agent_objects,
    agent_rights,
    agents_own_objects,
)
from karmada.joining.pull.rollout import wait_for_rollout
from karmada.joining.pull.undoing import Undo, undone_on_failure
from karmada.kube.client.client import Client
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CSRS, DEPLOYMENTS, NAMESPACES, SECRETS
from karmada.kube.objects.names import random_suffix
from karmada.kube.runtime.writes import get_if_exists

_OURS: Final = {well_known.SYSTEM: well_known.TRUE}
_COMPARED: Final = ("rules", "subjects", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    discovery: Discovery
    agent: Agent
    certificate_seconds: int = 365 * 24 * 3600

    @property
    def name(self) -> str:
        return self.agent.cluster

    @property
    def timeout(self) -> float:
        """Time limit of discovery, of each certificate and of the rollout."""
        return self.discovery.timeout


async def preflight(member: Client, namespace: str) -> list[str]:
    """Return what of an agent is in the cluster already, and would be in the way."""
    wanted = [
        (SECRETS, "Secret", KUBECONFIG_SECRET),
        (ACCOUNTS, "ServiceAccount", AGENT_ACCOUNT),
        (DEPLOYMENTS, "Deployment", well_known.AGENT),
    ]
    found = []
    if await get_if_exists(member, NAMESPACES, namespace) is not None:
        for gvr, kind, name in wanted:
            if await get_if_exists(member, gvr, name, namespace) is not None:
                found.append(f"{namespace}/{name} {kind} already exists")
    binding = await get_if_exists(member, CLUSTER_ROLE_BINDINGS, well_known.AGENT)
    ours = objects.role_binding(well_known.AGENT, namespace, AGENT_ACCOUNT)
    if binding is not None and binding.get("subjects") != ours["subjects"]:
        found.append(f"{well_known.AGENT} ClusterRoleBinding already exists, for an agent in another namespace")
    return found


@dataclass(slots=True)
class Registering:
    """A registration on its way: `say` prints its phases, `progress` what it waits for, `warn` what is left behind."""

    connect: Connect
    member: Client
    registration: Registration
    clock: Clock = SYSTEM
    say: Progress = quiet
    progress: Progress = quiet
    warn: Progress = quiet

    async def run(self) -> None:
        """JoinError, ApiError or ConnectionFailed when it fails, after what was created has been deleted."""
        self.say("[karmada-agent-start] Waiting to perform the TLS Bootstrap")
        control = await discover(self.connect, self.registration.discovery, clock=self.clock, progress=self.progress)
        with_token = replace(control, token=str(self.registration.discovery.token))
        async with (
            self.connect(with_token) as bootstrap,
            self._generator(bootstrap, control) as generator,
            undone_on_failure(self.warn, self._failed) as undo,
        ):
            await self._prepare_control_plane(generator, undo)
            kubeconfig = await self._agent_kubeconfig(bootstrap, generator, control, undo)
            await self._deploy_agent(kubeconfig, undo)

    def _failed(self) -> None:
        self.say("karmadactl register failed and started deleting the created resources")

    # certificates

    @asynccontextmanager
    async def _generator(self, bootstrap: Client, control: RestConfig) -> AsyncIterator[Client]:
        """Yield the control plane as the RBAC generator; its certificate request is deleted at the end."""
        name = f"agent-rbac-generator-{self.registration.name}{random_suffix()}"
        credentials = await self._certificate(bootstrap, name, well_known.RBAC_GENERATOR)
        identity = replace(
            control, certificate=Material(data=credentials.certificate), key=Material(data=credentials.key)
        )
        async with self.connect(identity) as generator:
            try:
                yield generator
            finally:
                undo = Undo()
                undo.delete(generator, _request(name))
                await undo.run(self.warn)

    async def _agent_kubeconfig(self, bootstrap: Client, generator: Client, control: RestConfig, undo: Undo) -> bytes:
        self.say("[karmada-agent-start] Waiting to construct karmada-agent kubeconfig")
        cluster = self.registration.name
        name = f"{cluster}-{random_suffix()}"
        undo.delete(generator, _request(name))
        credentials = await self._certificate(bootstrap, name, well_known.agent_user(cluster))
        return agent_kubeconfig(control, cluster, credentials)

    async def _certificate(self, bootstrap: Client, name: str, user: str) -> Credentials:
        request = CertificateRequest(
            name=name,
            subject=agent_subject(user),
            key=new_rsa_key(),
            lifetime=self.registration.certificate_seconds,
            labels=_OURS,
        )
        timeout = self.registration.timeout
        return await obtain_certificate(bootstrap, request, timeout=timeout, clock=self.clock, progress=self.progress)

    # the control plane

    async def _prepare_control_plane(self, control: Client, undo: Undo) -> None:
        self.say("[karmada-agent-start] Waiting to check cluster exists")
        name, agent = self.registration.name, self.registration.agent
        if await get_if_exists(control, Cluster.gvr, name) is not None:
            raise JoinError(f"failed to register as cluster with name {name} already exists")
        cluster_id = await cluster_id_of(self.member)
        await check_unique(control, name, cluster_id)
        self.say("[karmada-agent-start] Assign the necessary RBAC permissions to the agent")
        created: list[Placed] = []
        undo.add(f"what was created for cluster {name}", lambda: self._withdraw(control, cluster_id, created))
        for namespace in dict.fromkeys(
            (agent.cluster_namespace, well_known.execution_namespace(name), agent.namespace)
        ):
            await self._ensure_namespace(control, namespace, created)
        for placed in agent_rights(name, agent.cluster_namespace):
            await _put(control, placed)

    async def _withdraw(self, control: Client, cluster_id: str, namespaces: list[Placed]) -> None:
        """Delete the rights, then what the agent may have created, then namespaces.

        A cluster that took the name meanwhile keeps everything.
        """
        agent = self.registration.agent
        cluster = await get_if_exists(control, Cluster.gvr, agent.cluster)
        if cluster is not None and cluster["spec"].get("id") != cluster_id:
            return
        undo = Undo()
        for placed in (*namespaces, agent_lease(agent.cluster, agent.namespace)):
            undo.delete(control, placed)
        if cluster is not None:
            undo.delete(control, Placed(Cluster.gvr, cluster))
        for placed in agent_rights(agent.cluster, agent.cluster_namespace):
            undo.delete(control, placed)
        await undo.run(self.warn)

    async def _ensure_namespace(self, client: Client, name: str, created: list[Placed]) -> None:
        """As it is or, if it is on its way out, once it is gone; one that was not there is added to `created`."""
        placed = Placed(NAMESPACES, objects.namespace(name))
        try:
            await client.create(NAMESPACES, placed.obj)
            created.append(placed)
        except AlreadyExists:
            await ensure_namespace(client, name, self.clock)

    # the cluster

    async def _deploy_agent(self, kubeconfig: bytes, undo: Undo) -> None:
        agent, member = self.registration.agent, self.member
        created: list[Placed] = []
        await self._ensure_namespace(member, agent.namespace, created)
        for namespace in created:
            undo.delete(member, namespace)
        *others, deployment = agent_objects(agent, kubeconfig)
        self.say("[karmada-agent-start] Waiting the necessary secret and RBAC")
        for placed in others:
            await undo.after(member, placed, _put(member, placed))
        self.say("[karmada-agent-start] Waiting karmada-agent Deployment")
        if await get_if_exists(member, NAMESPACES, agent.cluster_namespace) is None:
            for placed in agents_own_objects(agent):
                undo.delete(member, placed)
        await undo.after(member, deployment, member.create(deployment.gvr, deployment.obj))
        await wait_for_rollout(member, deployment, seconds=self.registration.timeout, clock=self.clock)


async def _put(client: Client, placed: Placed) -> None:
    """Create it; what is left of an earlier attempt is brought up to date."""
    gvr, obj = placed.gvr, placed.obj
    try:
        await client.create(gvr, obj)
        return
    except AlreadyExists:
        found = await client.get(gvr, placed.name, placed.namespace)
    changed = {key: obj[key] for key in _COMPARED if key in obj and found.get(key) != obj[key]}
    if changed:
        await client.patch(gvr, placed.name, placed.namespace, changed)


def _request(name: str) -> Placed:
    return Placed(CSRS, {"kind": "CertificateSigningRequest", "metadata": {"name": name}})
