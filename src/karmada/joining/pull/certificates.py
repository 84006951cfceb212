"""Client certificates from a control plane, by CertificateSigningRequest: made, sent, waited for.

Waiting is by get alone: agents may neither list nor watch requests.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from karmada.api import well_known
from karmada.joining.join import JoinError, Progress, quiet
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvrs import CSRS
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.runtime.waiting import with_timeout

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey

SIGNER: Final = "kubernetes.io/kube-apiserver-client"
USAGES: Final = ("digital signature", "key encipherment", "client auth")
_FIRST_LOOK, _LAST_LOOK = 0.1, 1.0
"""Seconds between two looks at a request: at first, and in the long run."""


class Credentials(NamedTuple):
    """A certificate chain and its key, in PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """Which certificate is wanted, for how long, and by which object it is requested."""

    name: str
    subject: x509.Name
    key: PrivateKey = field(repr=False)
    lifetime: int
    """Seconds that the certificate is requested for."""
    labels: dict[str, str] = field(default_factory=dict)

    def to_object(self) -> Obj:
        metadata: Obj = {"name": self.name}
        if self.labels:
            metadata["labels"] = self.labels
        return {
            "apiVersion": CSRS.api_version,
            "kind": "CertificateSigningRequest",
            "metadata": metadata,
            "spec": {
                "request": base64.b64encode(_request_pem(self.subject, self.key)).decode(),
                "signerName": SIGNER,
                "usages": list(USAGES),
                "expirationSeconds": self.lifetime,
            },
        }


def agent_subject(user: str) -> x509.Name:
    """Return the subject of a user in the group of agents."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, well_known.AGENT_GROUP)
    return x509.Name([group, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def new_rsa_key() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=3072)


def _request_pem(subject: x509.Name, key: PrivateKey) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _key_pem(key: PrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


async def obtain_certificate(
    client: Client, request: CertificateRequest, *, timeout: float, clock: Clock = SYSTEM, progress: Progress = quiet
) -> Credentials:
    """Return the certificate, once it is approved and signed; JoinError when it is refused or not there in time."""
    await client.create(CSRS, request.to_object())
    name = request.name
    progress(
        f"Waiting for the client certificate of csr {name}. Unless the agentcsrapproving controller of "
        f"karmada-controller-manager approves it, execute `kubectl certificate approve {name}` on the control plane"
    )
    try:
        certificate = await with_timeout(clock, _issued(client, name, clock), timeout)
    except TimeoutError:
        raise JoinError(
            f"the certificate signing request {name} was not approved and signed within {format_duration(timeout)}: "
            f"approve it with `kubectl certificate approve {name}` on the control plane, or enable the controller "
            "agentcsrapproving there and check that the token has its group"
        ) from None
    return Credentials(certificate, _key_pem(request.key))


async def _issued(client: Client, name: str, clock: Clock) -> bytes:
    pauses = Attempts(clock, BackOff(_FIRST_LOOK, _LAST_LOOK), jitter=0.0)
    while True:
        await pauses.pause()
        try:
            status = (await client.get(CSRS, name)).get("status") or {}
        except ConnectionFailed:
            continue  # the request is stored; until the time is up the connection may come back
        if status.get("certificate"):
            return base64.b64decode(status["certificate"])
        for entry in status.get("conditions") or ():
            if entry.get("type") in ("Denied", "Failed"):
                why = entry.get("message") or entry.get("reason") or "no reason was given"
                raise JoinError(f"the certificate signing request {name} was {entry['type'].lower()}: {why}")
