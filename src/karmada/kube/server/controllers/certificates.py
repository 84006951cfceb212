"""CertificateSigningRequests: approve what kubelets may have, sign what is approved, remove what is done with."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.kinds.signing_requests import with_condition
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvrs import CSRS
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.server.auth.csr import auto_approval, outlived, sign, signed
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.pki import CertificateAuthority

LOOK_AGAIN_SECONDS = 600.0


class RequestApproving(Reconciler):
    name = "csrapproving"
    watches = (Watch(CSRS),)

    def __init__(self, client: Client, informers: Informers, rights: Decides, clock: Clock) -> None:
        self._client = client
        self._csrs = informers.of(CSRS)
        self._rights = rights
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        csr = self._csrs.get(key)
        approval = None if csr is None else await auto_approval(csr, self._rights, self._clock.now())
        if csr is not None and approval is not None:
            await self._client.update(CSRS, copy_json(with_condition(csr, approval)), subresource="approval")
        return Done


class RequestSigning(Reconciler):
    name = "csrsigning"
    watches = (Watch(CSRS),)

    def __init__(
        self, client: Client, informers: Informers, ca: CertificateAuthority, clock: Clock, longest: int
    ) -> None:
        """`longest`: seconds that a certificate is valid at most."""
        self._longest = longest
        self._client = client
        self._csrs = informers.of(CSRS)
        self._ca = ca
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        csr = self._csrs.get(key)
        now = self._clock.now()
        done = None if csr is None else signed(csr, sign(csr, self._ca, now, max_seconds=self._longest))
        if done is not None:
            await self._client.update_status(CSRS, copy_json(done))
        return Done


class RequestCleaning(Reconciler):
    name = "csrcleaner"
    watches = (Watch(CSRS),)

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._csrs = informers.of(CSRS)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        csr = self._csrs.get(key)
        if csr is None:
            return Done
        if not outlived(csr, self._clock.now()):
            return requeue(LOOK_AGAIN_SECONDS)
        await delete_if_exists(self._client, CSRS, key.name)
        return Done
