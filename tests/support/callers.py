"""Callers other than the administrator: by client certificate, by token, and servers whose time a test moves."""

from __future__ import annotations

import base64
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.running import api_server
from tests.support.wire import Answer, Http


class Caller(Http):
    """Requests with a client certificate (PEM) and key, or with a token, or with nothing."""

    def __init__(self, server: ApiServer, *, token: str = "", cert: bytes = b"", key: bytes = b"") -> None:
        super().__init__(server)
        self._token = token
        self._tls = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
        if cert:
            with tempfile.TemporaryDirectory() as directory:
                files = Path(directory) / "cert", Path(directory) / "key"
                files[0].write_bytes(cert)
                files[1].write_bytes(key)
                self._tls.load_cert_chain(*files)

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        anonymous: bool = False,
    ) -> Answer:
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        return await super().__call__(method, path, body, headers=sent, content_type=content_type, anonymous=anonymous)

    async def who(self) -> Obj:
        """The user as which the server authenticates this caller."""
        answer = await self(
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        )
        assert answer.code == 201, answer.body
        info: Obj = answer.json()["status"]["userInfo"]
        return info


async def status_with(server: ApiServer, token: str) -> int:
    """Return the code of a request with this token."""
    async with Caller(server, token=token) as caller:
        return (await caller("GET", "/api")).code


def user_certificate(server: ApiServer, name: str, *groups: str) -> dict[str, Any]:
    """For Caller: a certificate of the server's own authority."""
    pair = server.pki.ca.issue(name, organizations=groups)
    return {"cert": pair.cert_pem, "key": pair.key_pem}


def signing_request(common_name: str, *organizations: str, dns: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
    """A PEM request and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    names.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(d) for d in dns]), critical=False)
    request = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return request, secret


def encoded(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


@asynccontextmanager
async def server_with_clock(data_dir: Path) -> AsyncIterator[tuple[ApiServer, FakeClock]]:
    """A server whose time stands still until the test moves it."""
    clock = FakeClock(start=float(int(time.time())))
    async with api_server(data_dir, clock) as server:
        yield server, clock
