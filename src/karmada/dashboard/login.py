"""From what a viewer presents to a Viewer: a token, a kubeconfig, or the certificate of the TLS handshake.

Of a kubeconfig only the credentials are used, and only those it contains: the server stays the dashboard's own control
plane (it must not be made to send requests elsewhere), files and programs that it names are not touched. A client
certificate cannot be passed on, since its key stays in the browser: the dashboard verifies it as the control plane does
and impersonates exactly its user and groups, with a credential that the operator gave it for that.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from karmada.dashboard.viewer import USER_AGENT, Identity, Viewer
from karmada.kube.client.client import Client
from karmada.kube.client.config import Impersonation, Material, RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Forbidden, Unauthorized
from karmada.kube.objects.gvk import GVR

_REVIEWS: Final = GVR("authentication.k8s.io", "v1", "selfsubjectreviews")
_ANONYMOUS: Final = "system:anonymous"
LOGIN_SECONDS: Final = 10.0


class LoginRefused(Exception):
    """The message says why, and what would work; it never has anything of the credentials."""


@dataclass(frozen=True, slots=True)
class CertificateLogin:
    """`user_of` maps a verified certificate (DER) to name and groups, None if it stands for nobody."""

    impersonator: RestConfig = field(repr=False)
    user_of: Callable[[bytes], Identity | None]


@dataclass(frozen=True, slots=True)
class Login:
    """`control_plane` has the address and the authority of the API server, and no credentials."""

    control_plane: RestConfig
    clock: Clock
    certificates: CertificateLogin | None = None

    async def by_token(self, token: str) -> Viewer:
        token = token.strip()
        if not token:
            raise LoginRefused("Paste a token first.")
        if not token.isascii() or any(character.isspace() for character in token):
            raise LoginRefused("A token is one word: check that all of it was copied, and nothing else.")
        return await self._verified(replace(self.control_plane, token=token))

    async def by_kubeconfig(self, text: str) -> Viewer:
        return await self._verified(await asyncio.to_thread(credentials_of, text, self.control_plane))

    async def by_certificate(self, der: bytes | None) -> Viewer:
        if self.certificates is None:
            raise LoginRefused("Client certificates are not accepted by this dashboard.")
        identity = self.certificates.user_of(der) if der else None
        if identity is None:
            raise LoginRefused(
                "The browser presented no client certificate that the control plane accepts. "
                "Import one into the browser, restart it, and choose it when it offers to."
            )
        acting = Impersonation(user=identity.name, groups=identity.groups)
        return await self._verified(replace(self.certificates.impersonator, impersonate=acting), identity.until)

    async def _verified(self, config: RestConfig, until: float = math.inf) -> Viewer:
        """Return the viewer, as the control plane says who this is; it must not be nobody."""
        client = Client(HttpTransport(replace(config, timeout=LOGIN_SECONDS, user_agent=USER_AGENT)))
        body = {"apiVersion": _REVIEWS.api_version, "kind": "SelfSubjectReview"}
        try:
            review = await client.create(_REVIEWS, body, "")
        except Unauthorized:
            raise LoginRefused("The control plane does not accept these credentials: are they expired?") from None
        except Forbidden as error:
            raise LoginRefused(f"The control plane refuses this user: {error.message}") from None
        except (ApiError, ConnectionFailed, OSError, ValueError) as error:
            raise LoginRefused(f"The control plane cannot be reached with these credentials: {error}") from None
        finally:
            await client.close()
        user = review["status"]["userInfo"]
        if user.get("username", _ANONYMOUS) == _ANONYMOUS:
            raise LoginRefused("The control plane takes these credentials for nobody's: use others.")
        return Viewer(Identity(user["username"], tuple(user.get("groups") or ()), until), config, self.clock)


def credentials_of(text: str, control_plane: RestConfig) -> RestConfig:
    """Return how to connect with the credentials of a kubeconfig's current context; LoginRefused without any."""
    try:
        given = Kubeconfig.parse(text, directory="/nonexistent").resolve()
    except KubeconfigError as error:
        raise LoginRefused(f"This kubeconfig cannot be used: {error}") from None
    if given.exec is not None:
        raise LoginRefused(
            "This kubeconfig gets its credentials from a program on your machine, which the dashboard does not run. "
            "Log in with a token: kubectl create token NAME"
        )
    for what, material in (("client-certificate", given.certificate), ("client-key", given.key)):
        if material.path and not material.data:
            raise LoginRefused(
                f"{what} names a file on your machine. Embed it: kubectl config view --minify --flatten --raw"
            )
    if given.token_file:
        raise LoginRefused("tokenFile names a file on your machine. Log in with the token that is in it.")
    if not (given.token or given.username or (given.certificate and given.key)):
        raise LoginRefused("The current context of this kubeconfig has no credentials.")
    return replace(
        control_plane,
        token=given.token,
        username=given.username,
        password=given.password,
        certificate=Material(data=given.certificate.data),
        key=Material(data=given.key.data),
        impersonate=given.impersonate,
        namespace=given.namespace,
    )
