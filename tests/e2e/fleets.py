"""A control plane and simulated members as processes of their own, steered with karmadactl and kubectl.

What a test waits for is watched, not polled: a client in a thread of this process follows the control plane, so that
waiting costs nothing and a moment is measured when it happens.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from karmada.api.cluster import Cluster
from karmada.joining.join import Joining, join
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from tests.e2e.places import Place
from tests.e2e.sim_fleet import SimFleet
from tests.support.background import Background
from tests.support.eventually import LIMIT
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, Result, ServerProcess

QUICK = (
    "--cluster-status-update-frequency=1s",
    "--cluster-failure-threshold=2s",
    "--cluster-success-threshold=1s",
)
"""A control plane that finds out within seconds how its members are doing."""
QUICK_SCALING = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
)
"""FederatedHPAs that use the first sample of a pod."""
_JOINS_AT_ONCE = 4


def plane_process(data_dir: Path, *flags: str) -> ServerProcess:
    """The whole control plane, not started yet."""
    return ServerProcess(data_dir, list(flags), module="karmada.components.karmada", greeting="Control plane at")


class Fleet:
    """`kubectl` and `ctl` (karmadactl) speak to the control plane; `sims` are the clusters that can be joined to it.

    `ours` is karmadactl in this process: for what a test prepares, changes and removes, at a fifth of the CPU time.
    """

    def __init__(self, root: Path, kubectl: str = "kubectl", flags: tuple[str, ...] = QUICK) -> None:
        self.plane = plane_process(root / "plane", *flags)
        self.sims = SimFleet(root, kubectl)
        home = self.sims.home
        self.kubectl = Program([kubectl], home, self.plane.kubeconfig)
        self.ctl = Program([sys.executable, "-m", "karmada.cli.karmadactl"], home, self.plane.kubeconfig)
        self.ours = Karmadactl(home, self.plane.kubeconfig)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.sims)
            stack.callback(self.plane.stop)
            self.plane.start()
            self._background = stack.enter_context(Background())
            self._client = self._background.enter(connected(self.plane.kubeconfig))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # clusters

    def create(self, *names_and_flags: str) -> None:
        """Simulated clusters, not joined yet."""
        self.sims.create(*names_and_flags)

    def join(self, name: str, *flags: str, kubeconfig: Path | None = None, check: bool = True) -> Result:
        """With `kubeconfig` a cluster that is not simulated, in the context that is current there."""
        way = ["--cluster-kubeconfig", str(kubeconfig or self.sims.kubeconfig)]
        if kubeconfig is None:
            way += ["--cluster-context", name]
        return self.ctl("join", name, *way, *flags, check=check)

    def join_all(self, *names: str) -> None:
        """As `join` does, without a process for each; Ready afterwards."""

        async def one(name: str, places: asyncio.Semaphore) -> None:
            config = load_config(self.sims.kubeconfig, context=name)
            async with places, connected(self.sims.kubeconfig, name) as member:
                await join(self._client, member, Joining.to(config, name))

        async def every() -> None:
            places = asyncio.Semaphore(_JOINS_AT_ONCE)
            await asyncio.gather(*(one(name, places) for name in names))

        self._background.run(every())
        self.until_ready(*names)

    def label(self, name: str, *labels: str) -> None:
        """A Cluster, with labels as kubectl takes them."""
        wanted = dict(label.split("=") for label in labels)
        self._background.run(self._client.patch(Cluster.gvr, name, "", {"metadata": {"labels": wanted}}))

    def cluster(self, name: str) -> Obj:
        found = self.get(Cluster.gvr, name)
        assert found is not None, f"there is no cluster {name}"
        return found

    def until(self, name: str, check: Callable[..., Any], seconds: float = LIMIT) -> Obj:
        """The Cluster, once `check` says yes of it."""
        return self.until_object(Cluster.gvr, name, check, seconds=seconds)

    def until_condition(self, name: str, reason: str, kind: str = "Ready", seconds: float = LIMIT) -> Obj:
        """The condition, once it has this reason."""
        found = self.until(name, lambda cluster: condition(cluster, kind).get("reason") == reason, seconds)
        return condition(found, kind)

    def until_ready(self, *names: str, seconds: float = LIMIT) -> None:
        for name in names:
            self.until_condition(name, "ClusterReady", seconds=seconds)

    # objects of the control plane

    def get(self, kind: GVR, name: str, namespace: str = "") -> Obj | None:
        return self._place.get(kind, name, namespace)

    def until_object(
        self, kind: GVR, name: str, check: Callable[[Obj], Any], namespace: str = "", seconds: float = LIMIT
    ) -> Obj:
        return self._place.until(kind, name, check, namespace, seconds)

    def until_gone(self, kind: GVR, name: str, namespace: str = "", seconds: float = LIMIT) -> None:
        self._place.until_gone(kind, name, namespace, seconds)

    @property
    def _place(self) -> Place:
        return Place(self._background, self._client)


@asynccontextmanager
async def connected(kubeconfig: Path, context: str = "") -> AsyncIterator[Client]:
    client = Client(HttpTransport(load_config(kubeconfig, context=context)))
    try:
        yield client
    finally:
        await client.close()


def condition(cluster: Obj, kind: str = "Ready") -> Obj:
    """The condition, or nothing of it."""
    return get_condition((cluster.get("status") or {}).get("conditions"), kind) or {}


def taints(cluster: Obj) -> list[str]:
    return [f"{taint['key']}:{taint['effect']}" for taint in cluster["spec"].get("taints") or ()]
