"""A fleet in memory with services that are used across clusters."""

from __future__ import annotations

from typing import Any

from karmada.api.multicluster import ServiceExport, ServiceImport
from karmada.api.policy import PropagationPolicy
from karmada.api.well_known import execution_namespace
from karmada.api.work import Work
from karmada.controllers.networking.carriers import carried
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import DEPLOYMENTS, SERVICES, SLICES
from karmada.kube.objects.types import Obj
from karmada.rehearsal.network import State
from tests.support.objects import kube_object
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import cluster_policy, deployment, placed, policy, selecting

MEMBERS = ("m1", "m2", "m3")


def service(name: str = "serve") -> Obj:
    return kube_object("v1", "Service", name, "default") | {
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
    }


def export(name: str = "serve") -> Obj:
    return kube_object(ServiceExport.gvk.api_version, "ServiceExport", name, "default")


def import_of(name: str = "serve", **spec: Any) -> Obj:
    return kube_object(ServiceImport.gvk.api_version, "ServiceImport", name, "default") | {
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec}
    }


class ServingFleet(PlayedFleet):
    # life

    async def start(self) -> None:
        await self.begin(*MEMBERS, nodes=2, seconds=0)
        crds = [
            selecting("CustomResourceDefinition", name=f"{kind.gvr.resource}.{kind.gvr.group}")
            | {"apiVersion": "apiextensions.k8s.io/v1"}
            for kind in (ServiceExport, ServiceImport)
        ]
        await self.create(cluster_policy("crds", *crds, placement=placed(*MEMBERS)))
        await self.fleet.run(60)

    async def clear(self) -> None:
        for name in MEMBERS:
            self.fleet.change_network(name, State.UP)
        await self.fleet.run(60)
        for gvr in (PropagationPolicy.gvr, ServiceExport.gvr, ServiceImport.gvr, SERVICES, DEPLOYMENTS):
            for found in (await self.client.list_all(gvr, "default")).items:
                if meta.name(found) != "kubernetes":
                    await self.client.delete(gvr, meta.name(found), "default")
        await self.fleet.run(60)

    # what happens

    async def create(self, *objects: Obj) -> None:
        for obj in objects:
            await self.client.create(await self.client.resource(GVK.parse(obj["apiVersion"], obj["kind"])), obj)

    async def run(self, *, seconds: float = 20) -> None:
        await self.fleet.run(seconds)

    async def serve_in(self, *clusters: str, name: str = "serve", replicas: int = 2) -> None:
        """A Deployment with its Service in these clusters."""
        selectors = (selecting(name=name), selecting("Service", name=name))
        await self.create(
            policy(f"{name}-pods", *selectors, placement=placed(*clusters)),
            deployment(name, replicas=replicas),
            service(name),
        )
        await self.run()

    async def export_from(self, *clusters: str, name: str = "serve") -> None:
        selector = {**selecting("ServiceExport", name=name), "apiVersion": ServiceExport.gvk.api_version}
        await self.create(policy(f"{name}-export", selector, placement=placed(*clusters)), export(name))
        await self.run()

    async def import_to(self, *clusters: str, name: str = "serve", **spec: Any) -> None:
        selector = {**selecting("ServiceImport", name=name), "apiVersion": ServiceImport.gvk.api_version}
        importing = policy(f"{name}-import", selector, placement=placed(*clusters), propagateDeps=True)
        await self.create(importing, import_of(name, **spec))
        await self.run()

    # what is there

    def slices(self, service_name: str, member: str = "") -> dict[str, set[str]]:
        """Addresses by the names of the EndpointSlices of a Service, in a member or in the control plane."""
        return {
            name: {address for endpoint in found.get("endpoints") or () for address in endpoint["addresses"]}
            for name, found in self.stored(SLICES, member=member).items()
            if meta.labels(found).get("kubernetes.io/service-name") == service_name
        }

    def addresses(self, service_name: str, member: str = "") -> set[str]:
        """As kube-proxy sees them."""
        return set().union(*self.slices(service_name, member).values())

    def carriers(self, cluster: str) -> dict[str, Obj]:
        works = self.stored(Work.gvr, execution_namespace(cluster))
        return {name: work for name, work in works.items() if carried(work) is not None}
