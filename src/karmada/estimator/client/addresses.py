"""Where the estimator of a cluster is found: by a Service in the control plane, else by the name it has in a cluster.

A Service of the control plane has no endpoints behind it, so only one that names a host is of use: of the type
ExternalName. Where the control plane runs inside a host cluster there is none; the estimator's Service is in that
cluster then, and its DNS name is known.
"""

from __future__ import annotations

from karmada.estimator.client.options import Whereabouts
from karmada.estimator.terms import EstimateError
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import NotFound, ServiceUnavailable
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.types import Obj

_EXTERNAL_NAME = "ExternalName"


async def addresses(client: Client, cluster: str, where: Whereabouts) -> list[str]:
    """As host:port, in the order in which they are to be tried. ApiError, EstimateError."""
    name = where.service(cluster)
    try:
        service = await client.get(SERVICES, name, where.namespace)
    except NotFound:
        host = f"{name}.{where.namespace}.svc"
        return [f"{host}.cluster.local:{where.port}", f"{host}:{where.port}"]
    return [address_of(service, where.port)]


def address_of(service: Obj, port: int) -> str:
    """Return where a Service of the control plane leads to."""
    name, spec = service["metadata"]["name"], service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind != _EXTERNAL_NAME:
        raise EstimateError(f'unsupported service type "{kind}"')
    entry = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if entry is None:
        raise ServiceUnavailable(f'no service port {port} found for service "{name}"')
    target = entry.get("targetPort") or port
    if not isinstance(target, int):
        raise EstimateError(f'ExternalName service "{name}" should have int target port')
    host = spec.get("externalName") or ""
    return f"[{host}]:{target}" if ":" in host else f"{host}:{target}"
