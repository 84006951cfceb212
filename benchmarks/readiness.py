"""Which Clusters are Ready, and which ever ceased to be: followed by events, however many there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from benchmarks.planes import is_ready
from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer


class Readiness:
    def __init__(self, informer: Informer) -> None:
        self.ready: set[str] = set()
        self.lost: set[str] = set()
        """Those that were Ready and then were not."""
        self._informer = informer
        informer.add_handler(self._changed)

    def _changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is None:
            return
        name = new["metadata"]["name"]
        if is_ready(new):
            self.ready.add(name)
        elif name in self.ready:
            self.ready.discard(name)
            self.lost.add(name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Evaluated after every change."""
        await self._informer.until(condition)


@asynccontextmanager
async def following(control: Client) -> AsyncIterator[Readiness]:
    informer = Informer(control, Cluster.gvr, shape=Shape("readiness", _shown))
    found = Readiness(informer)
    informer.start()
    try:
        await informer.wait_synced()
        yield found
    finally:
        await informer.stop()


def _shown(cluster: Obj) -> Obj:
    """What shows whether it is Ready."""
    conditions = (cluster.get("status") or {}).get("conditions") or []
    kept = {field: cluster["metadata"][field] for field in ("name", "uid", "resourceVersion")}
    return {
        "metadata": kept,
        "spec": {"taints": cluster["spec"].get("taints")},
        "status": {"conditions": [condition for condition in conditions if condition["type"] == "Ready"]},
    }
