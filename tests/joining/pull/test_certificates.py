"""Certificates by request: what is sent, and how long and for what is waited."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from karmada.joining.join import JoinError
from karmada.joining.pull.certificates import (
    CertificateRequest,
    Credentials,
    agent_subject,
    obtain_certificate,
)
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.pki import new_ec_key

KEY = new_ec_key()
REQUEST = CertificateRequest(
    name="m1-abcde", subject=agent_subject("system:karmada:agent:m1"), key=KEY, lifetime=3600, labels={"a": "b"}
)


class Requests:
    """A control plane with one request, whose status a test sets."""

    def __init__(self) -> None:
        self.created: list[Obj] = []
        self.status: Obj | Exception = {}
        self.gets = 0

    async def create(self, _kind: object, obj: Obj) -> Obj:
        self.created.append(obj)
        return obj

    async def get(self, *_: object) -> Obj:
        self.gets += 1
        if isinstance(self.status, Exception):
            raise self.status
        return {"status": self.status}


def obtaining(requests: Any, clock: FakeClock) -> asyncio.Task[Credentials]:
    return asyncio.create_task(obtain_certificate(requests, REQUEST, timeout=300, clock=clock))


async def test_the_request_is_for_one_user_of_the_agents_and_has_no_other_names() -> None:
    obj = REQUEST.to_object()
    assert obj["metadata"] == {"name": "m1-abcde", "labels": {"a": "b"}}
    spec = obj["spec"]
    csr = x509.load_pem_x509_csr(base64.b64decode(spec.pop("request")))
    assert csr.is_signature_valid
    assert csr.subject.rfc4514_string() == "CN=system:karmada:agent:m1,O=system:karmada:agents"
    assert list(csr.extensions) == []
    assert spec == {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["digital signature", "key encipherment", "client auth"],
        "expirationSeconds": 3600,
    }


async def test_it_is_waited_for_about_once_a_second(clock: FakeClock) -> None:
    requests = Requests()
    task = obtaining(requests, clock)
    await clock.advance(60)
    assert 60 <= requests.gets <= 65
    requests.status = {"certificate": base64.b64encode(b"PEM").decode()}
    await clock.advance(1)
    credentials = await task
    assert credentials.certificate == b"PEM"
    key = load_pem_private_key(credentials.key, None)
    assert key.private_numbers() == KEY.private_numbers()


async def test_a_connection_that_breaks_meanwhile_does_not_end_it(clock: FakeClock) -> None:
    requests = Requests()
    task = obtaining(requests, clock)
    requests.status = ConnectionFailed("gone")
    await clock.advance(30)
    requests.status = {"certificate": base64.b64encode(b"PEM").decode()}
    await clock.advance(2)
    assert (await task).certificate == b"PEM"


@pytest.mark.parametrize(("kind", "said"), [("Denied", "was denied: not you"), ("Failed", "was failed: not you")])
async def test_a_refused_request_ends_it_at_once(clock: FakeClock, kind: str, said: str) -> None:
    requests = Requests()
    requests.status = {"conditions": [{"type": kind, "status": "True", "message": "not you"}]}
    task = obtaining(requests, clock)
    await clock.advance(1)
    with pytest.raises(JoinError, match=f"m1-abcde {said}"):
        await task


async def test_nobody_approves_it(clock: FakeClock) -> None:
    task = obtaining(Requests(), clock)
    await clock.advance(299)
    assert not task.done()
    await clock.advance(2)
    with pytest.raises(JoinError, match="m1-abcde was not approved and signed within 5m0s: approve it with `kubectl"):
        await task
