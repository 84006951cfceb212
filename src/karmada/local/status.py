"""The status of a local environment: its processes, control plane and members, and their problems."""

from __future__ import annotations

import asyncio

import msgspec

from karmada.api.cluster import Cluster
from karmada.kube.client.kubeconfig import KubeconfigError
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.meta import name as name_of
from karmada.kube.objects.types import Obj
from karmada.kube.sim.admin_client import AdminClient, AdminError
from karmada.local import programs
from karmada.local.folder import CONTROL_PLANE_CONTEXT, ETCD, Folder, Refused, shown
from karmada.local.members import ready_condition
from karmada.local.reaching import connected, way
from karmada.local.up import SUPERVISOR
from karmada.version import VERSION

_SECONDS = 5.0


class Process(msgspec.Struct, kw_only=True):
    name: str
    pid: int = 0
    """0: it does not run."""
    endpoint: str = ""
    version: str = ""
    log: str = ""


class Member(msgspec.Struct, kw_only=True):
    name: str
    ready: str = "Unknown"
    version: str = ""
    mode: str = ""
    endpoint: str = ""
    message: str = ""


class Status(msgspec.Struct, kw_only=True):
    folder: str
    version: str = VERSION
    """The installed version."""
    mode: str = "stopped"
    """`foreground`, `detached`, `stopped`, or `partly` when some processes run without a supervisor."""
    processes: list[Process] = []
    clusters: list[Member] = []
    kubeconfigs: dict[str, list[str]] = {}
    """Contexts by file."""
    dashboard: str = ""
    """Its address; empty without one, and while the control plane does not run."""
    problems: list[str] = []

    @property
    def healthy(self) -> bool:
        return not self.problems


async def look(folder: Folder) -> Status:
    status = Status(folder=str(folder.root))
    choices = folder.choices()
    if choices is None:
        status.problems.append(f"there is no environment in {shown(folder.root)}; karmadactl local-up creates one")
        return status
    holders = programs.found(folder)
    names = programs.names_of(choices)
    status.processes = [
        Process(name=name, pid=holders[name].pid if name in holders else 0, log=str(folder.log(name))) for name in names
    ]
    status.mode = _mode(folder, [holders[name].detached if name in holders else None for name in names])
    if status.mode == "stopped":
        status.problems.append("it does not run; karmadactl local-up starts it")
        return status
    for process in status.processes:
        if not process.pid:
            status.problems.append(f"{process.name} does not run; its log is {shown(folder.log(process.name))}")
    by_name = {process.name: process for process in status.processes}
    if ETCD in by_name:
        by_name[ETCD].endpoint = f"https://127.0.0.1:{choices.etcd_ports[0]}"
    await asyncio.gather(
        _control_plane(folder, by_name[programs.KARMADA], status), _simulator(folder, by_name[programs.SIM], status)
    )
    _judge(status, choices.member_names)
    status.dashboard = choices.dashboard if by_name[programs.KARMADA].pid else ""
    status.kubeconfigs = {
        str(folder.control_kubeconfig): [CONTROL_PLANE_CONTEXT],
        str(folder.members_kubeconfig): _contexts(folder),
    }
    return status


def _mode(folder: Folder, detached: list[bool | None]) -> str:
    supervisor = programs.mark_of(folder, SUPERVISOR).holder()
    if supervisor is not None:
        return "detached" if supervisor.detached else "foreground"
    if all(one is None for one in detached):
        return "stopped"
    return "detached" if all(detached) else "partly"


async def _control_plane(folder: Folder, process: Process, status: Status) -> None:
    if not process.pid:
        return
    try:
        config = way(folder.control_kubeconfig, seconds=_SECONDS)
        process.endpoint = config.server
        async with connected(config) as control:
            await control.raw("GET", "/readyz")
            process.version = (await control.raw("GET", "/version"))["gitVersion"]
            listed = await control.list_all(Cluster.gvr)
    except (ApiError, ConnectionFailed, KubeconfigError, TimeoutError) as error:
        status.problems.append(f"the control plane does not serve: {error}")
        return
    status.clusters = [_member(cluster) for cluster in listed.items]


def _member(cluster: Obj) -> Member:
    ready = ready_condition(cluster)
    return Member(
        name=name_of(cluster),
        ready=ready.get("status", "Unknown"),
        version=(cluster.get("status") or {}).get("kubernetesVersion", ""),
        mode=cluster["spec"].get("syncMode", ""),
        endpoint=cluster["spec"].get("apiEndpoint", ""),
        message=ready.get("message", "") if ready.get("status") != "True" else "",
    )


async def _simulator(folder: Folder, process: Process, status: Status) -> None:
    if not process.pid:
        return
    try:
        clusters = await asyncio.to_thread(AdminClient(folder.sim).request, "GET", "/clusters", timeout=_SECONDS)
    except AdminError as error:
        status.problems.append(f"the simulator does not accept requests: {error}")
        return
    running = [cluster for cluster in clusters if "error" not in cluster]
    process.endpoint = f"{len(running)} clusters"
    for cluster in clusters:
        if "error" in cluster:
            status.problems.append(f"{cluster['name']} did not start: {cluster['error']}")


def _judge(status: Status, wanted: list[str]) -> None:
    if not status.clusters and any("control plane" in problem for problem in status.problems):
        return
    joined = {member.name: member for member in status.clusters}
    for name in wanted:
        if name not in joined:
            status.problems.append(f"{name} is not joined; karmadactl local-up joins it again")
    for member in status.clusters:
        if member.ready != "True":
            status.problems.append(f"{member.name} is not Ready: {member.message or 'its health is not known yet'}")


def _contexts(folder: Folder) -> list[str]:
    from karmada.kube.client.kubeconfig import Kubeconfig

    try:
        return sorted(Kubeconfig.load(folder.members_kubeconfig).contexts)
    except KubeconfigError as error:
        raise Refused(str(error)) from error
