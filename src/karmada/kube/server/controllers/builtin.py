"""The controllers that come with the API server, put together: what a bare control plane needs to be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.client.client import Client
from karmada.kube.runtime.manager import Manager
from karmada.kube.server.controllers.bootstrap_tokens import BootstrapSigner, TokenCleaner
from karmada.kube.server.controllers.certificates import CertificateSigning
from karmada.kube.server.controllers.cluster_roles import ClusterRoleAggregation
from karmada.kube.server.controllers.expiry import EventExpiry, TtlAfterFinished
from karmada.kube.server.controllers.garbage_collector import GarbageCollector
from karmada.kube.server.controllers.namespaces import NamespaceController
from karmada.kube.server.controllers.service_accounts import NamespaceDefaults, TokenSecrets
from karmada.kube.server.custom_resources import CustomResourceDefinitionController

if TYPE_CHECKING:
    from karmada.kube.server.app import ApiServer


class BuiltinControllers:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        clock = server.clock

        def client(name: str) -> Client:
            return server.client(user_agent=name)

        self.manager = Manager(client("kube-controller-manager"), clock=clock)
        informers, shared = self.manager.informers, self.manager.client
        ca = server.pki.ca
        self.garbage_collector = GarbageCollector(client("garbage-collector"), clock)
        for reconciler in (
            CustomResourceDefinitionController(client("customresourcedefinitions"), informers, clock),
            NamespaceController(client("namespace-controller"), informers, clock),
            NamespaceDefaults(shared, informers, ca.cert_pem),
            TokenSecrets(shared, informers, server.issuer, ca.cert_pem),
            CertificateSigning(shared, informers, ca, server.authorizer, clock),
            BootstrapSigner(shared, informers, clock),
            TokenCleaner(shared, informers, clock),
            ClusterRoleAggregation(shared, informers),
            TtlAfterFinished(shared, informers, clock),
        ):
            self.manager.add(reconciler)
        self.manager.add_component(self.garbage_collector, needs_leader=True)
        self.manager.add_component(EventExpiry(shared, clock), needs_leader=True)
        server.custom_resources.changed.append(self.garbage_collector.resources_changed)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
