"""Changes to the taints of a cluster of the control plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.runtime.writes import retry_on_conflict

Taint = dict[str, Any]


async def change_taints(
    client: Client, name: str, change: Callable[[Sequence[Taint]], list[Taint] | None], *, dry_run: bool
) -> bool:
    """Write what `change` makes of the taints; return whether it made something."""

    async def attempt() -> bool:
        cluster = await client.get(Cluster.gvr, name)
        after = change(cluster["spec"].get("taints") or [])
        if after is not None and not dry_run:
            version = cluster["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": after or None}}
            await client.patch(Cluster.gvr, name, "", patch)
        return after is not None

    return await retry_on_conflict(attempt)
