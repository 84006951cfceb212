"""CertificateSigningRequests: approve what kubelets may have, sign what is approved, remove what is done with."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.kinds.signing_requests import with_condition
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.server.auth.csr import auto_approval, outlived, sign, signed
from karmada.kube.server.auth.pki import CertificateAuthority
from karmada.kube.server.auth.rbac import Authorizer

CSRS = GVR("certificates.k8s.io", "v1", "certificatesigningrequests")
LOOK_AGAIN_SECONDS = 600.0


class CertificateSigning(Reconciler):
    name = "certificatesigningrequests"
    watches = (Watch(CSRS),)

    def __init__(
        self, client: Client, informers: Informers, ca: CertificateAuthority, authorizer: Authorizer, clock: Clock
    ) -> None:
        self._client = client
        self._csrs = informers.of(CSRS)
        self._ca = ca
        self._authorizer = authorizer
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        csr = self._csrs.get(key)
        if csr is None:
            return Done
        now = self._clock.now()
        if outlived(csr, now):
            await self._delete(key.name)
            return Done
        approval = auto_approval(csr, self._authorizer, now)
        if approval is not None:
            await self._client.update(CSRS, copy_json(with_condition(csr, approval)), subresource="approval")
            return Done
        done = signed(csr, sign(csr, self._ca, now))
        if done is not None:
            await self._client.update_status(CSRS, copy_json(done))
            return Done
        return requeue(LOOK_AGAIN_SECONDS)

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(CSRS, name)
        except NotFound:
            return
