"""An impersonator for a Cluster that was registered without one, such as by a manifest.

The credentials of the Cluster make the account in the member, as join does; its token goes into a Secret of the control
plane, and the Cluster refers to that. From then on users reach the member through the proxy.
"""

from __future__ import annotations

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.joining import objects
from karmada.joining.join import ensure, ensure_namespace, impersonator_token
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj


async def provide_impersonator(control: Client, member: Client, cluster: Obj, *, clock: Clock = SYSTEM) -> None:
    """JoinError or ApiError when the credentials do not allow it; doing it again completes what is missing."""
    name, where = meta.name(cluster), well_known.NAMESPACE_CLUSTER
    await ensure_namespace(member, where, clock)
    token = (await impersonator_token(member, name, where, clock=clock))["data"]["token"]
    await ensure_namespace(control, where, clock)
    wanted = objects.credentials(where, well_known.impersonator_secret_name(name), {"token": token})
    wanted["metadata"]["ownerReferences"] = [meta.make_owner(cluster)]
    found = await ensure(control, SECRETS, wanted)
    if found.get("data") != wanted["data"] or meta.owner_references(found) != meta.owner_references(wanted):
        change = {"metadata": {"ownerReferences": meta.owner_references(wanted)}, "data": wanted["data"]}
        await control.patch(SECRETS, meta.name(wanted), where, change)
    reference = {"namespace": where, "name": meta.name(wanted)}
    patch = {"metadata": {"uid": meta.uid(cluster)}, "spec": {"impersonatorSecretRef": reference}}
    await control.patch(Cluster.gvr, name, "", patch)
