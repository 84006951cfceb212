"""Join a cluster, or repair its registration.

Joining creates a Cluster and never touches an existing one. Here an existing Cluster is checked: do the stored
credentials work for this cluster at this address? If not (another port, a cluster recreated under its old name, deleted
service accounts), address and credentials are replaced; the rest of the Cluster and its placements stay.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.joining import objects
from karmada.joining.join import JoinError, Joining, cluster_id_of, ensure, join, prepare_member
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.client.config import Impersonation, Material, RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj

_GONE_SECONDS = 60.0


async def ensure_joined(control: Client, member: Client, way: RestConfig, name: str, *, renew: bool) -> str:
    """Return what was done, in a word. With `renew` the name may move to another cluster."""
    cluster = await existing_cluster(control, name)
    if cluster is None:
        try:
            await join(control, member, Joining.to(way, name))
        except JoinError:
            cluster = await existing_cluster(control, name)  # perhaps somebody else was faster
            if cluster is None:
                raise
        else:
            return "joined"
    cluster_id = await cluster_id_of(member)
    if cluster["spec"].get("id") != cluster_id and not renew:
        raise JoinError(f"cluster {name} is another cluster, with the id {cluster['spec'].get('id')}; use another name")
    if cluster["spec"].get("apiEndpoint") == way.server and await _opens(control, cluster, way, cluster_id):
        return "was joined"
    await _renew(control, member, cluster, way, cluster_id)
    return "joined again"


async def existing_cluster(control: Client, name: str) -> Obj | None:
    """Return the Cluster, if there is one; waits for the end of one that is being deleted."""

    def settled(found: Obj | None) -> list[Obj] | None:
        if found is None:
            return []
        return None if meta.is_deleting(found) else [found]

    try:
        found = await wait_for(control, Cluster.gvr, name, "", settled, clock=SYSTEM, seconds=_GONE_SECONDS)
    except TimeoutError:
        raise JoinError(f"cluster {name} is still being deleted after {_GONE_SECONDS:g}s") from None
    return found[0] if found else None


async def _opens(control: Client, cluster: Obj, way: RestConfig, cluster_id: str) -> bool:
    """Return whether the stored credentials work for this cluster."""
    where = cluster["spec"].get("secretRef") or {}
    try:
        secret = await control.get(SECRETS, where.get("name", ""), where.get("namespace", ""))
        held = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
    except (NotFound, binascii.Error):
        return False
    if "token" not in held:
        return "kubeconfig" in held  # somebody has put it there: theirs to keep right
    plain = replace(way, certificate=Material(), key=Material(), username="", password="", exec=None, token_file="")
    own = replace(
        plain, token=held["token"].decode(), ca=Material(data=held.get("caBundle", b"")), impersonate=Impersonation()
    )
    client = Client(HttpTransport(own))
    try:
        return await cluster_id_of(client) == cluster_id
    except (ApiError, ConnectionFailed):
        return False
    finally:
        await client.close()


async def _renew(control: Client, member: Client, cluster: Obj, way: RestConfig, cluster_id: str) -> None:
    name, spec = meta.name(cluster), cluster["spec"]
    where = (spec.get("secretRef") or {}).get("namespace") or well_known.NAMESPACE_CLUSTER
    impersonator, account = await prepare_member(member, name, where)
    spoken_for = well_known.impersonator_secret_name(name)
    data = {
        name: {"caBundle": account["data"].get("ca.crt", ""), "token": account["data"]["token"]},
        spoken_for: {"token": impersonator["data"]["token"]},
    }
    owner = {"ownerReferences": [meta.make_owner(cluster)]}
    for secret, content in data.items():
        await ensure(control, NAMESPACES, objects.namespace(where))
        await ensure(control, SECRETS, objects.credentials(where, secret, content))
        await control.patch(SECRETS, secret, where, {"metadata": owner, "data": content})
    wanted = {
        "id": cluster_id,
        "apiEndpoint": way.server,
        "secretRef": {"namespace": where, "name": name},
        "impersonatorSecretRef": {"namespace": where, "name": spoken_for},
    }
    await control.patch(Cluster.gvr, name, "", {"spec": wanted})
