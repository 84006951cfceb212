"""A rehearsal: a control plane with all its controllers and scheduler, and members, in this process and in memory.

Time is the fleet's own: it stands still until `run` moves it, and then jumps from one due moment to the next, so an
hour takes seconds. Between two moments everything that has something to do finishes it, which needs a RehearsalLoop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.well_known import NAMESPACE_CLUSTER
from karmada.apiserver.mount import until_served
from karmada.components.assembly import Assembly
from karmada.components.server import control_plane_server
from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import Transport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.core import LOOPBACK
from karmada.kube.server.http.inprocess import InProcess
from karmada.kube.server.watchcache.entry import encode_value, storage_key
from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.profile import Profile
from karmada.metricsadapter import adapter as metrics_adapter
from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.network import InMemoryTransport, Network, State

_SUFFIX: Final = ".rehearsal"


@dataclass(slots=True)
class RehearsedMember:
    sim: SimCluster
    network: Network

    @property
    def client(self) -> Client:
        """Straight into the member, whatever its network is like."""
        return self.sim.server.client(user_agent="rehearsal")


@dataclass
class RehearsalFleet:
    folder: Path
    settings: Settings = field(default_factory=Settings)
    gates: FeatureGates = field(default_factory=default_gates)
    start_at: float = 1_700_000_000.0
    in_process_estimator: bool = True
    """As the flag of `karmada`."""

    def __post_init__(self) -> None:
        self.clock = FakeClock(self.start_at)
        config = ServerConfig(data_dir=self.folder / "control-plane", storage="memory://", port=0)
        self.server: ApiServer = control_plane_server(
            config, self.clock, self.gates, allow_no_execute_taint_policy=True
        )
        metrics_adapter.install(self.server, open_way=self._open)
        self.members: dict[str, RehearsedMember] = {}
        self._assembly: Assembly | None = None

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="rehearsal")

    # life

    async def start(self) -> None:
        """Start the API server; controllers and scheduler follow with `start_controllers`."""
        await self.server.start()
        await until_served(self.server)

    async def stop(self) -> None:
        await self.stop_controllers()
        for member in self.members.values():
            await member.sim.stop()
        await self.server.stop()

    async def start_controllers(self) -> None:
        """Start controllers and scheduler; after `stop_controllers` they begin as after a restart."""
        assembly = Assembly(
            lambda name: self.server.client(user_agent=name),
            settings=self.settings,
            gates=self.gates,
            clock=self.clock,
            open_member=self._open,
            follow_ups=self.server.follow_ups,
        )
        assembly.add_controllers()
        assembly.add_scheduler(in_process=self.in_process_estimator)
        await assembly.manager.start()
        self._assembly = assembly

    async def stop_controllers(self) -> None:
        if self._assembly is not None:
            assembly, self._assembly = self._assembly, None
            stopping = asyncio.create_task(assembly.manager.stop())
            while not stopping.done():
                await self.clock.advance(1.0)
            await stopping

    def _open(self, config: RestConfig, _before: Transport | None) -> Transport:
        name = config.server.removeprefix("https://").removesuffix(_SUFFIX)
        member = self.members[name]
        inner = InProcess(member.sim.server.pipeline, LOOPBACK, user_agent=config.user_agent)
        return InMemoryTransport(inner, member.network)

    # content

    async def store(self, objects: Iterable[tuple[GVR, Obj]]) -> None:
        """Have these objects as they are, with their uids, generations and statuses; no admission sees them."""
        for kind, obj in objects:
            metadata = obj["metadata"]
            key = storage_key(kind.group_resource, metadata.get("namespace", ""), metadata["name"])
            if await self.server.store.get(key) is None:
                await self.server.store.write(key, encode_value(obj), expected=0)
        await self.server.cache.fresh()

    async def add_member(self, profile: Profile, *, objects: Iterable[Obj] = ()) -> RehearsedMember:
        """Start a simulated cluster of this profile, which is not joined yet; `objects` are created in it."""
        sim = SimCluster(profile, self.folder / profile.name, in_memory=True, clock=self.clock)
        starting = asyncio.create_task(sim.start())
        while not starting.done():
            await self.settle()
        await starting
        member = self.members[profile.name] = RehearsedMember(sim, Network(self.clock))
        for obj in objects:
            await member.client.create(await member.client.resource(GVK.parse(obj["apiVersion"], obj["kind"])), obj)
        return member

    async def join(self, name: str, cluster: Obj | None = None) -> None:
        """Register a member as a Cluster, with the labels, taints, region and so on of the one given."""
        given = cluster or {"metadata": {}, "spec": {}}
        spec = {
            **{field: value for field, value in given["spec"].items() if field not in _CONNECTION},
            "syncMode": "Push",
            "apiEndpoint": f"https://{name}{_SUFFIX}",
            "insecureSkipTLSVerification": True,
            "secretRef": {"namespace": NAMESPACE_CLUSTER, "name": name},
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE_CLUSTER},
            "stringData": {"token": "rehearsal"},
        }
        await self.client.create(SECRETS, secret)
        kept = {field: given["metadata"][field] for field in ("labels", "annotations") if given["metadata"].get(field)}
        made = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": {"name": name, **kept}}
        await self.client.create(Cluster.gvr, {**made, "spec": spec})

    def change_network(self, name: str, state: State) -> None:
        self.members[name].network.change(state)

    # time

    async def run(
        self, seconds: float, *, until: Callable[[], bool] | None = None, each: Callable[[], None] | None = None
    ) -> bool:
        """Let time pass, `seconds` at most; `each` is called after every moment. Whether `until` came true."""
        end = self.clock.now() + seconds
        await self.settle()
        while True:
            if each is not None:
                each()
            if until is not None and until():
                return True
            due = self.clock.next_due()
            if due is None or due > end:
                break
            self.clock.wake_next()
            await self.settle()
        self.clock.skip_to(end)
        return until is not None and until()

    async def settle(self) -> None:
        """Wait until everything waits for time, or for the network."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, RehearsalLoop):
            raise TypeError("a rehearsal runs in a RehearsalLoop")
        try:
            await loop.at_rest()
        except RuntimeError as error:
            raise RuntimeError(f"the fleet does not come to rest at {rfc3339(self.clock.now())}") from error


_CONNECTION: Final = frozenset(
    {
        "apiEndpoint", "caBundle", "id", "impersonatorSecretRef", "insecureSkipTLSVerification", "proxyHeader",
        "proxyURL", "secretRef", "syncMode",
    }
)  # fmt: skip
"""How the real cluster is reached, which its rehearsal is not."""
