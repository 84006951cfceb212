"""Register a simulated member in mode Pull, or repair its registration.

A new member registers as any cluster does: with a bootstrap token, which lives for this purpose only, and an agent that
its process runtime runs. The agent of one that is registered already is brought to the addresses of this start: that of
the control plane in its kubeconfig, and that of the member in its flags and in the Cluster.
"""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import orjson

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.joining.join import JoinError, cluster_id_of
from karmada.joining.pull.discovery import Discovery
from karmada.joining.pull.objects import AGENT_ACCOUNT, KUBECONFIG_KEY, KUBECONFIG_SECRET, Agent, agent_deployment
from karmada.joining.pull.pins import pins_of
from karmada.joining.pull.register import Registering, Registration
from karmada.joining.pull.tokens import Token, new_token, to_secret
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.tls import MaterialReader
from karmada.kube.objects import meta
from karmada.kube.objects.bootstrap_tokens import BootstrapToken
from karmada.kube.objects.clock import SYSTEM
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import ACCOUNTS, DEPLOYMENTS, LEASES, SECRETS
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.schema.yamlio import load_yaml
from karmada.local.joined import existing_cluster
from karmada.local.reaching import connected

IMAGE: Final = "docker.io/karmada/karmada-agent:latest"
"""Which the process runtime of simulated members knows, with any tag."""
_TOKEN_SECONDS: Final = 600.0
_TIMEOUT: Final = 60.0


async def ensure_registered(
    control: Client, member: Client, control_way: RestConfig, way: RestConfig, name: str
) -> str:
    """Return what was done, in a word; JoinError when the name is that of another cluster, or of one in mode Push."""
    cluster = await existing_cluster(control, name)
    agent = Agent(cluster=name, api_endpoint=way.server, image=IMAGE)
    if cluster is None:
        await _register(control, member, control_way, agent)
        return "registered"
    if cluster["spec"].get("syncMode") != "Pull":
        raise JoinError(f"is in mode Push; karmadactl unjoin {name}, then start again to have it in mode Pull")
    if cluster["spec"].get("id") != await cluster_id_of(member):
        raise JoinError(f"is another cluster than the registered one; kubectl delete cluster {name}, then start again")
    since = time.time()
    repaired = await _repair(control, member, control_way, agent, cluster)
    await _heartbeat(control, name, since)
    return "registered again" if repaired else "was registered"


async def _register(control: Client, member: Client, control_way: RestConfig, agent: Agent) -> None:
    await _remove_leftovers(member, agent)
    pins = frozenset(pins_of(MaterialReader(control_way.ca).read()))
    async with _token(control, agent.cluster) as token:
        discovery = Discovery(server=control_way.server, token=token, pins=pins, timeout=_TIMEOUT)
        await Registering(connected, member, Registration(discovery=discovery, agent=agent)).run()


@asynccontextmanager
async def _token(control: Client, cluster: str) -> AsyncIterator[BootstrapToken]:
    """For one registration."""
    made = Token(
        *new_token(),
        usages=("signing", "authentication"),
        groups=(well_known.BOOTSTRAP_GROUP,),
        description=f"local-up registers {cluster}",
        expires=time.time() + _TOKEN_SECONDS,
    )
    secret = await control.create(SECRETS, to_secret(made))
    try:
        yield BootstrapToken(made.id, made.secret)
    finally:
        await delete_if_exists(control, SECRETS, meta.name(secret), meta.namespace(secret))


async def _remove_leftovers(member: Client, agent: Agent) -> None:
    """Remove what an interrupted registration left: an agent without its Cluster."""
    await delete_if_exists(member, DEPLOYMENTS, well_known.AGENT, agent.namespace)
    for kind, name in ((SECRETS, KUBECONFIG_SECRET), (ACCOUNTS, AGENT_ACCOUNT)):
        await delete_if_exists(member, kind, name, agent.namespace)


# a member that is registered


async def _heartbeat(control: Client, name: str, since: float) -> None:
    """Until its agent has renewed the Lease: what the Cluster says is of the start before."""

    def renewed(lease: Obj | None) -> bool | None:
        at = ((lease or {}).get("spec") or {}).get("renewTime")
        return True if at and parse_time(at) > since else None

    try:
        where = well_known.NAMESPACE_CLUSTER
        await wait_for(control, LEASES, name, where, renewed, clock=SYSTEM, seconds=_TIMEOUT)
    except TimeoutError:
        raise JoinError(
            f"its agent has not reported for {_TIMEOUT:g} s; see the log of its pod in karmada-system"
        ) from None


async def _repair(control: Client, member: Client, control_way: RestConfig, agent: Agent, cluster: Obj) -> bool:
    """Return whether an address had changed."""
    try:
        secret = await member.get(SECRETS, KUBECONFIG_SECRET, agent.namespace)
        deployment = await member.get(DEPLOYMENTS, well_known.AGENT, agent.namespace)
    except NotFound as error:
        name = agent.cluster
        raise JoinError(f"has no agent any more; kubectl delete cluster {name}, then start again") from error
    kubeconfig = _with_server(secret, control_way.server)
    command = agent_deployment(agent)["spec"]["template"]["spec"]["containers"][0]["command"]
    moved = cluster["spec"].get("apiEndpoint") != agent.api_endpoint
    if moved:
        await control.patch(Cluster.gvr, agent.cluster, "", {"spec": {"apiEndpoint": agent.api_endpoint}})
    if kubeconfig is not None:
        data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
        await member.patch(SECRETS, KUBECONFIG_SECRET, agent.namespace, {"data": data})
    if moved or kubeconfig is not None:
        await member.patch(DEPLOYMENTS, well_known.AGENT, agent.namespace, _restarted(deployment, command))
    return moved or kubeconfig is not None


def _with_server(secret: Obj, server: str) -> bytes | None:
    """Return the kubeconfig with this address of the control plane; None when it has it already."""
    document = load_yaml(base64.b64decode(secret["data"][KUBECONFIG_KEY]))
    entry = document["clusters"][0]["cluster"]
    if entry["server"] == server:
        return None
    entry["server"] = server
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def _restarted(deployment: Obj, command: list[str]) -> Obj:
    """Return a change of its template, as of `kubectl rollout restart`, with this command."""
    container = {**deployment["spec"]["template"]["spec"]["containers"][0], "command": command}
    annotations = {"kubectl.kubernetes.io/restartedAt": str(time.time())}
    return {"spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}}}
