"""Policies of --all-clusters and --cluster: one per object, named after it."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.api.well_known import generated_policy_name
from karmada.cli.changing.applying.item import Item
from karmada.cli.targeting import connect
from karmada.cli.targeting.session import Session
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj


def policy_for(item: Item, clusters: Sequence[str]) -> Obj:
    """For all clusters when none is named."""
    namespace, gvk = item.namespace, item.mapping.gvk
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    selector = {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": item.name}
    metadata = {"name": generated_policy_name(namespace, item.name, gvk)}
    if namespace:
        selector["namespace"] = metadata["namespace"] = namespace
    affinity = {"clusterNames": list(clusters)} if clusters else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"placement": {"clusterAffinity": affinity}, "resourceSelectors": [selector]},
    }


async def with_policies(session: Session, items: Sequence[Item], names: Sequence[str]) -> list[Item]:
    """Return each item followed by its policy; Failure names clusters that do not exist."""
    clusters = await _existing(session, names)
    found: list[Item] = []
    for item in items:
        policy = policy_for(item, clusters)
        mapping = await session.client.mapper.mapping(GVK.parse(policy["apiVersion"], policy["kind"]))
        found += [item, Item(policy, mapping, item.source)]
    return found


async def _existing(session: Session, names: Sequence[str]) -> list[str]:
    from karmada.api.cluster import Cluster

    wanted = list(dict.fromkeys(connect.commas(names)))
    if not wanted:
        return []
    listed = await session.client.list_all(Cluster.gvr)
    existing = {cluster["metadata"]["name"] for cluster in listed.items}
    missing = [f"cluster {name} does not exist" for name in wanted if name not in existing]
    if len(missing) == 1:
        raise connect.failure(missing[0])
    if missing:
        raise connect.Failure("\n".join(missing))
    return wanted
