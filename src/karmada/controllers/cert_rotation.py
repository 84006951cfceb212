"""Certificate rotation: an agent renews the certificate by which it reaches the control plane.

The certificate is in a kubeconfig, in a Secret of the agent's cluster. When little of its lifetime remains, a new key
and a signing request are made; the control plane approves what an agent requests for itself. The new kubeconfig is
written to the Secret, from which every copy of the agent gets it, and is used here at once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from karmada.api.cluster import Cluster
from karmada.controllers.context import Context
from karmada.joining.pull.certificates import CertificateRequest, Credentials, obtain_certificate
from karmada.joining.pull.objects import KUBECONFIG_KEY, KUBECONFIG_SECRET
from karmada.joining.pull.validity import load_chain, validity
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.names import random_suffix
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.schema.yamlio import dump_yaml, load_yaml
from karmada.kube.server.auth.pki import new_ec_key

if TYPE_CHECKING:
    from cryptography import x509

CONTROLLER: Final = "cert-rotation-controller"
WAIT_SECONDS: Final = 300.0
log = get_logger("cert-rotation")


class RotationError(ApiError):
    """Why the certificate cannot be renewed; for people."""


class AgentKubeconfig:
    """A kubeconfig as an agent has it: of the user of its current context the certificate is read and replaced."""

    def __init__(self, text: bytes) -> None:
        try:
            document = load_yaml(text)
        except ValueError as error:
            raise RotationError("the kubeconfig is not YAML") from error
        if not isinstance(document, dict):
            raise RotationError("the kubeconfig is not one")
        self._document: Obj = document
        current = str(document.get("current-context") or "")
        self.user = str(self._entry("contexts", current, "context").get("user") or "")
        if not self.user:
            raise RotationError(f'the context "{current}" of the kubeconfig has no user')
        self._user = self._entry("users", self.user, "user")

    def _entry(self, section: str, name: str, inner: str) -> Obj:
        for entry in self._document.get(section) or ():
            if entry.get("name") == name:
                found: Obj = entry.get(inner) or {}
                return found
        raise RotationError(f'the kubeconfig has no entry "{name}" in {section}')

    @property
    def certificate(self) -> bytes:
        try:
            return base64.b64decode(self._user.get("client-certificate-data") or "", validate=True)
        except (binascii.Error, ValueError) as error:
            raise RotationError(f"client-certificate-data is not valid base64: {error}") from error

    def with_credentials(self, credentials: Credentials) -> bytes:
        self._user["client-certificate-data"] = base64.b64encode(credentials.certificate).decode()
        self._user["client-key-data"] = base64.b64encode(credentials.key).decode()
        return dump_yaml(self._document)


class CertRotation(Reconciler):
    name = CONTROLLER

    def __init__(
        self,
        context: Context,
        *,
        namespace: str,
        interval: float = 300.0,
        threshold: float = 0.2,
        renewed: Callable[[bytes], None] | None = None,
    ) -> None:
        """`renewed` is called with the new kubeconfig."""
        self._client = context.client
        self._clock = context.clock
        self._members = context.members
        self._clusters = context.informers.of(Cluster.gvr)
        self._namespace = namespace
        self._interval = interval
        self._threshold = threshold
        self._renewed = renewed
        self.watches = (Watch(Cluster.gvr, changed=("metadata.generation",)),)

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None or meta.is_deleting(cluster):
            return Done
        member = self._members.get(key.name).client
        secret = await member.get(SECRETS, KUBECONFIG_SECRET, self._namespace)
        kubeconfig = _kubeconfig_in(secret)
        try:
            chain = load_chain(kubeconfig.certificate)
        except ValueError as error:
            raise RotationError(str(error)) from error
        valid = validity(chain)
        if valid.remaining(self._clock.now()) <= self._threshold:
            new = kubeconfig.with_credentials(await self._new_certificate(kubeconfig.user, chain[0]))
            data = {**secret["data"], KUBECONFIG_KEY: base64.b64encode(new).decode()}
            await member.update(SECRETS, {**secret, "data": data})
            if self._renewed is not None:
                self._renewed(new)
            log.info("The certificate was renewed", cluster=key.name, before=rfc3339(valid.end))
        return requeue(self._interval)

    async def _new_certificate(self, user: str, old: x509.Certificate) -> Credentials:
        """Issue a certificate with the subject and lifetime of the old one."""
        request = CertificateRequest(
            name=f"{user}-{random_suffix()}",
            subject=old.subject,
            key=new_ec_key(),
            lifetime=int(validity([old]).seconds),
        )
        return await obtain_certificate(self._client, request, timeout=WAIT_SECONDS, clock=self._clock)


def _kubeconfig_in(secret: Obj) -> AgentKubeconfig:
    try:
        text = base64.b64decode((secret.get("data") or {}).get(KUBECONFIG_KEY) or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise RotationError(f"the key {KUBECONFIG_KEY} is not valid base64: {error}") from error
    if not text:
        where = f"{meta.namespace(secret)}/{meta.name(secret)}"
        raise RotationError(f"the Secret {where} has no kubeconfig under the key {KUBECONFIG_KEY}")
    return AgentKubeconfig(text)
