"""Where the Services that clientConfigs name are, by what the control plane has stored about them.

A Service that the control plane does not know is left to the resolver of this host, under its name in a cluster: the
webhook may run beside the control plane in a cluster that has it.
"""

from __future__ import annotations

from typing import Final

from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.server.addresses.service_routing import Address, Unroutable, service_port

_ROUTED: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})


class Services:
    """A Router. Services are watched once a webhook names one."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._informer: Informer | None = None

    async def synced(self) -> None:
        if self._informer is None:
            self._informer = self._informers.of(SERVICES)
            self._informer.start()
        await self._informer.wait_synced()

    async def resolve(self, namespace: str, name: str, port: int) -> Address:
        assert self._informer is not None, "Services are not synced"
        service = self._informer.get(Key(namespace, name))
        if service is None:
            return Address(f"{name}.{namespace}.svc", port)
        spec = service.get("spec") or {}
        kind = spec.get("type") or "ClusterIP"
        if kind == "ExternalName":
            return Address(str(spec.get("externalName") or ""), port)
        if kind not in _ROUTED:
            raise Unroutable(f'unsupported service type "{kind}"')
        address = spec.get("clusterIP") or "None"
        if address == "None":
            raise Unroutable('cannot route to service with ClusterIP "None"')
        if service_port(service, port) is None:
            raise Unroutable(f'no service port {port} found for service "{name}"')
        return Address(address, port)
