"""An installation, phase by phase. Each can be repeated: it creates what is missing and changes what differs.

So a second run repairs or upgrades, and one that was interrupted anywhere is finished by the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from karmada.install import certificates as pki
from karmada.install.applying import apply_all
from karmada.install.host import Stage, aggregated_stages, all_stages, api_stages, foundation, other_stages
from karmada.install.names import API_SERVER, CERTIFICATES, ETCD_NODE
from karmada.install.options import InstallError, Options
from karmada.install.preflight import addresses, check_namespace, check_port, check_storage_class, node_to_label, url_of
from karmada.install.rights import check_rights, needed
from karmada.install.secrets import admin_kubeconfig, certificates_in, secrets
from karmada.install.waiting import until_available, until_ready, until_served
from karmada.joining.pull.pins import pins_of
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvrs import NAMESPACES, NODES, SECRETS, SERVICES, STORAGE_CLASSES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import Outcome, get_if_exists
from karmada.kube.server.auth.files import private_directory, read_optional, write_private
from karmada.kube.server.auth.pki import KeyPair
from karmada.local.board import Board

Connect: TypeAlias = Callable[[RestConfig], AbstractAsyncContextManager[Client]]
KUBECONFIG: Final = "karmada-apiserver.config"
_API_SECONDS: Final = 120.0


async def _go_on(_what: str) -> None:
    return None


@contextmanager
def _accessible(folder: Path) -> Iterator[None]:
    """InstallError for a folder that cannot be used."""
    try:
        yield
    except OSError as error:
        raise InstallError(
            f"{error.filename or folder}: {error.strerror}: name a folder that you may use with --karmada-data, "
            "or run this as a user who may"
        ) from error


@dataclass(slots=True)
class Installation:
    """One run. `wrote` is called after every write, with what was written."""

    host: Client
    options: Options
    connect: Connect
    board: Board
    clock: Clock = SYSTEM
    wrote: Callable[[str], Awaitable[None]] = _go_on
    _addresses: list[str] = field(default_factory=list)
    _certificates: dict[str, KeyPair] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> Path:
        return self.options.folder / KUBECONFIG

    @property
    def server(self) -> str:
        """Return the address of the API server for clients, once the nodes are known."""
        return url_of(self._addresses[0], self.options.port)

    @property
    def pin(self) -> str:
        """Return the hash by which clusters that register know the authority."""
        return pins_of(self._certificates[pki.CA].cert_pem)[0] if self._certificates else ""

    async def manifests(self) -> list[Obj]:
        """Return everything that a run would have in the host cluster, without writing anything."""
        self._certificates = await self.issued(lambda _line: None)
        objects = foundation(self.options, secrets(self.options, self._certificates))
        return [*objects, *(obj for stage in all_stages(self.options) for obj in stage.objects)]

    async def run(self, names: Sequence[str] = ()) -> None:
        """Run all phases, or those of these names in their usual order; InstallError when one cannot be finished."""
        for name, phase in PHASES.items():
            if not names or name in names:
                await phase(self)

    # phases

    async def preflight(self) -> None:
        """Rights, port, nodes and storage class; nothing is changed."""
        options = self.options
        await check_rights(self.host, needed(options))
        check_namespace(await get_if_exists(self.host, NAMESPACES, options.namespace, ""))
        check_port((await self.host.list_all(SERVICES)).items, options)
        nodes = (await self.host.list_all(NODES)).items
        node_to_label(nodes, options.volume)
        if options.volume.mode == "PVC":
            check_storage_class((await self.host.list_all(STORAGE_CLASSES)).items, options.volume)
        await self._reachable()
        self.board.done("preflight", f"the API server will be at {self.server}")

    async def certs(self) -> None:
        """Certificates in their folder, renewed as far as they have to be."""
        await self._reachable()
        lines: list[str] = []
        self._certificates = await self.issued(lines.append)
        with _accessible(self.options.pki):
            pki.save(self.options.pki, self._certificates)
        await self.wrote("certificates")
        for line in lines:
            self.board.say(f"  {line}")
        self.board.done("certificates", f"{len(lines)} issued, in {self.options.pki}")

    async def write_kubeconfig(self) -> None:
        """Write the administrator's kubeconfig."""
        await self._ready_certificates()
        content = admin_kubeconfig(self.server, self._certificates)
        with _accessible(self.options.folder):
            private_directory(self.options.folder)
            if read_optional(self.kubeconfig) != content:
                write_private(self.kubeconfig, content)
        await self.wrote("kubeconfig")
        self.board.done("kubeconfig", str(self.kubeconfig))

    async def host_objects(self) -> None:
        """Write the namespace, Secrets, and the label of the node that keeps the state."""
        await self._ready_certificates()
        await self._label_node()
        objects = foundation(self.options, secrets(self.options, self._certificates))
        await self._apply(self.host, "host objects", objects)

    async def api_server(self) -> None:
        await self._reachable()
        for stage in api_stages(self.options):
            await self._stages([stage])

    async def aggregated(self) -> None:
        await self._stages(aggregated_stages(self.options))

    async def control_plane(self) -> None:
        """Install what the control plane itself has to have; the all-in-one has it by itself."""
        await self._ready_certificates()
        content = admin_kubeconfig(self.server, self._certificates).decode()
        name = "control plane"
        show = partial(self.board.doing, name)
        async with self.connect(Kubeconfig.parse(content).resolve("")) as client:
            await until_served(client, "/readyz", self.options.wait_seconds, self.clock, show)
            if self.options.all_in_one:
                self.board.done(name, "it is served")
                return
            from karmada.install.control_plane import CLUSTERS_API, control_plane_objects

            objects = control_plane_objects(self.options, self.server, self._certificates[pki.CA].cert_pem)
            await self._apply(client, name, objects)
            await until_available(client, CLUSTERS_API, _API_SECONDS, self.clock, show)
        self.board.done(name, "its objects are there")

    async def components(self) -> None:
        await self._stages(other_stages(self.options))

    # what phases share

    async def issued(self, report: pki.Report) -> dict[str, KeyPair]:
        """Return the certificates of the machine and of the cluster, and new ones where they are needed."""
        await self._reachable()
        secret = await get_if_exists(self.host, SECRETS, CERTIFICATES, self.options.namespace)
        with _accessible(self.options.pki):
            local = pki.load(self.options.pki)
        known = pki.combined(local, certificates_in(secret), self.options.pki)
        return pki.issue(self.options, self._addresses, known, self.clock.now(), report)

    async def _reachable(self) -> None:
        if not self._addresses:
            nodes = (await self.host.list_all(NODES)).items
            self._addresses = addresses(nodes, self.options.advertise_address)
            self.options = replace(self.options, advertise_address=self._addresses[0])

    async def _ready_certificates(self) -> None:
        await self._reachable()
        if not self._certificates:
            self._certificates = await self.issued(lambda _line: None)

    async def _label_node(self) -> None:
        name = node_to_label((await self.host.list_all(NODES)).items, self.options.volume)
        if name:
            await self.host.patch(NODES, name, "", {"metadata": {"labels": {ETCD_NODE: ""}}}, type="merge")
            await self.wrote(f"Node/{name}")

    async def _stages(self, stages: Sequence[Stage]) -> None:
        """Return stages of components that do not need each other: those of one start at the same time."""
        for stage in stages:
            await self._apply(self.host, stage.name, stage.objects)
        for stage in stages:
            show = partial(self.board.doing, stage.name)
            try:
                await until_ready(self.host, stage.workload, self.options.wait_seconds, self.clock, show)
            except InstallError:
                self.board.fail(stage.name, "not ready")
                raise
            self.board.done(stage.name, "ready")

    async def _apply(self, client: Client, name: str, objects: Sequence[Obj]) -> None:
        changed: list[str] = []

        async def wrote(obj: Obj, outcome: Outcome) -> None:
            if outcome != "unchanged":
                changed.append(outcome)
                self.board.doing(name, f"{outcome} {obj['kind']} {obj['metadata']['name']}")
            await self.wrote(f"{obj['kind']}/{obj['metadata']['name']}")

        await apply_all(client, objects, wrote)
        counted = [f"{changed.count(word)} {word}" for word in ("created", "updated") if word in changed]
        self.board.done(name, f"{len(objects)} objects, {', '.join(counted) or 'nothing to change'}")


Phase: TypeAlias = Callable[[Installation], Awaitable[None]]
PHASES: Final[Mapping[str, Phase]] = {
    "preflight": Installation.preflight,
    "certs": Installation.certs,
    "kubeconfig": Installation.write_kubeconfig,
    "host": Installation.host_objects,
    API_SERVER: Installation.api_server,
    "karmada-aggregated-apiserver": Installation.aggregated,
    "control-plane": Installation.control_plane,
    "components": Installation.components,
}
"""Phases by the names that `init phase` has for them, in their order."""
