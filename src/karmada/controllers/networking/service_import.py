"""ServiceImports: each has a derived Service, behind which the imported EndpointSlices are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api.multicluster import ServiceImport
from karmada.api.well_known import derived_service_name
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Invalid
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Terminal, Watch
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists, set_status

SERVICE_IMPORT: Final = "service-import-controller"
_PORT_FIELDS: Final = ("name", "protocol", "port", "appProtocol")


class ServiceImports(Reconciler):
    name = SERVICE_IMPORT

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder(self.name)
        self._imports = context.informers.of(ServiceImport.gvr)
        self.watches = (
            Watch(ServiceImport.gvr, changed=("spec", "metadata.deletionTimestamp")),
            Watch(SERVICES, shape=METADATA, on=("DELETED",), map_to=self._import_of),
        )

    def _import_of(self, service: Obj) -> Iterable[Key]:
        """Return the ServiceImport of a derived Service that somebody deleted."""
        key = Key(meta.namespace(service), meta.name(service).removeprefix(derived_service_name("")))
        there = key.name != meta.name(service) and self._imports.get(key) is not None
        return (key,) if there else ()

    async def reconcile(self, key: Key) -> Result:
        service_import = self._imports.get(key)
        if service_import is None:
            await delete_if_exists(self._client, SERVICES, derived_service_name(key.name), key.namespace)
            return Done
        if meta.is_deleting(service_import) or service_import["spec"].get("type") != "ClusterSetIP":
            return Done
        try:
            written = await self._sync(service_import)
        except ApiError as error:
            self._recorder.event(service_import, WARNING, "SyncDerivedServiceFailed", str(error))
            if isinstance(error, Invalid):  # addresses, which servers since Kubernetes 1.30 refuse for this type
                raise Terminal(str(error)) from error
            raise
        if written:
            message = f"Sync derived service for serviceImport({key.name}) succeed."
            self._recorder.event(service_import, NORMAL, "SyncDerivedServiceSucceed", message)
        return Done

    async def _sync(self, service_import: Obj) -> bool:
        """Return whether anything was written."""
        key = Key(meta.namespace(service_import), derived_service_name(meta.name(service_import)))

        async def make(current: Obj | None) -> Obj:
            return derived(key, service_import) if current is None else _over(current, service_import)

        async def put(current: Obj | None, wanted: Obj) -> Obj:
            write = self._client.create if current is None else self._client.update
            return await write(SERVICES, wanted)

        async def live() -> Obj | None:
            return await get_if_exists(self._client, SERVICES, key.name, key.namespace)

        service = await converge(make, await live(), put, live)
        assert service is not None
        status = await set_status(self._client, SERVICES, service.object, status_of(service_import))
        return (service.outcome, status.outcome) != ("unchanged", "unchanged")


def derived(key: Key, service_import: Obj) -> Obj:
    """Return a Service without selector: its EndpointSlices are brought from elsewhere.

    It goes with the import.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "namespace": key.namespace,
            "name": key.name,
            "ownerReferences": [meta.make_owner(service_import)],
        },
        "spec": {"type": "ClusterIP", "ports": _ports(service_import)},
    }


def _over(current: Obj, service_import: Obj) -> Obj:
    """Return what the import says, beside what the server and others have set."""
    spec = {field: value for field, value in current["spec"].items() if field != "selector"}
    same = [{f: p[f] for f in _PORT_FIELDS if f in p} for p in spec.get("ports") or ()] == _defaulted(service_import)
    ports = spec["ports"] if same else _ports(service_import)
    return {**current, "spec": {**spec, "type": "ClusterIP", "ports": ports}}


def _ports(service_import: Obj) -> list[Obj]:
    return [{f: port[f] for f in _PORT_FIELDS if port.get(f)} for port in service_import["spec"].get("ports") or ()]


def _defaulted(service_import: Obj) -> list[Obj]:
    """As the server stores them."""
    return [{"protocol": "TCP", **port} for port in _ports(service_import)]


def status_of(service_import: Obj) -> Obj:
    addresses = service_import["spec"].get("ips") or ()
    return {"loadBalancer": {"ingress": [{"ip": ip} for ip in addresses]} if addresses else {}}
