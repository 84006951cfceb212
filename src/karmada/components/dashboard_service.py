"""The dashboard in the process of the all-in-one: it listens with the API server's certificate and client authority.

It reads the API over HTTPS, as every viewer would. For viewers who log in with a client certificate it has one of its
own, made at the start and kept in memory, whose only right is to impersonate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karmada.dashboard.login import CertificateLogin, Login
from karmada.dashboard.server import Dashboard, Options
from karmada.dashboard.viewer import Identity
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.objects import rbac
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.objects.clock import Clock
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.auth.peer import PeerCertificates

USER: Final = "system:karmada-dashboard"
_NAME: Final = "karmada-dashboard-impersonator"
_DAYS: Final = 3650
"""The key exists for as long as the process does."""


def impersonation_rights() -> list[Obj]:
    """For the dashboard's own user: acting as others, and nothing else."""
    rules = [{"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]}]
    return [rbac.role(_NAME, rules), rbac.binding(_NAME, rbac.user(USER))]


class DashboardService:
    """Made before the server starts, so that the rights are there from the first second; started once it serves."""

    def __init__(self, server: ApiServer, options: Options) -> None:
        self._server, self._options = server, options
        server.more_defaults += impersonation_rights()
        self.dashboard: Dashboard | None = None

    @property
    def url(self) -> str:
        assert self.dashboard is not None, "it has not started"
        return self.dashboard.url

    async def start(self) -> None:
        server = self._server
        way = RestConfig(server=server.url, ca=Material(data=server.credentials.root_pem))
        own = server.pki.ca.issue(USER, days=_DAYS, now=server.clock.now())
        impersonator = RestConfig(
            server=way.server,
            ca=way.ca,
            certificate=Material(data=own.cert_pem),
            key=Material(data=own.key_pem),
        )
        login = Login(way, server.clock, certificate_login(impersonator, server.peers, server.clock))
        self.dashboard = Dashboard(login, self._options, server.tls(), clock=server.clock)
        await self.dashboard.start()

    async def stop(self) -> None:
        if self.dashboard is not None:
            await self.dashboard.stop()


def certificate_login(way: RestConfig, peers: PeerCertificates, clock: Clock) -> CertificateLogin:
    """Viewers are whom their valid certificates name; `way` may impersonate them."""

    def user_of(der: bytes) -> Identity | None:
        peer = peers.identify(der)
        if peer.user is None or not peer.valid_at(clock.now()):
            return None
        return Identity(peer.user.name, peer.user.groups, peer.not_after)

    return CertificateLogin(way, user_of)
