"""A server without a certificate makes its own, renews it in time, and leaves those of others alone."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from karmada.components.extension import followed_serving
from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.auth.own_serving import OwnServing
from karmada.kube.server.auth.pki import DAY, SERVER_USAGES, CertificateAuthority
from karmada.kube.server.auth.serving import FILES_SECONDS
from tests.kube.server.auth.test_serving import listening

NAME = "karmada-aggregated-apiserver"
SERVICE = f"{NAME}.karmada-system"


def serial(directory: Path) -> int:
    return x509.load_pem_x509_certificate((directory / "apiserver.crt").read_bytes()).serial_number


async def served(port: int) -> int:
    """The serial number of the certificate that a new connection gets."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(True)).serial_number
    finally:
        writer.close()


async def test_the_certificate_renews_while_the_server_runs_under_the_same_authority(tmp_path: Path) -> None:
    made = FakeClock()
    followed_serving(SERVICE, None, None, tmp_path, "VersionTLS12", made)
    authority = CertificateAuthority.load_or_create(tmp_path, "ca")
    first = serial(tmp_path)
    clock = FakeClock(made.now() + 335 * DAY - 1.5 * FILES_SECONDS)
    async with listening(followed_serving(SERVICE, None, None, tmp_path, "VersionTLS12", clock)) as port:
        await clock.advance(FILES_SECONDS)
        assert await served(port) == first
        await clock.advance(FILES_SECONDS)
        assert await served(port) == serial(tmp_path) != first
    assert (tmp_path / "ca.crt").read_bytes() == authority.cert_pem


def test_a_restart_keeps_the_certificate(tmp_path: Path) -> None:
    now = FakeClock().now()
    OwnServing(tmp_path, NAME, ["localhost"]).renew(now)
    first = serial(tmp_path)
    OwnServing(tmp_path, NAME, ["localhost"]).renew(now + DAY)
    assert serial(tmp_path) == first
    OwnServing(tmp_path, NAME, ["localhost", "other"]).renew(now + DAY)
    assert serial(tmp_path) != first, "another name needs another certificate"


@pytest.mark.parametrize("days", [0, 3000])
def test_a_pair_of_somebody_else_is_never_replaced(tmp_path: Path, days: int) -> None:
    theirs = CertificateAuthority.create("theirs").issue("api", sans=["localhost"], usages=SERVER_USAGES)
    (tmp_path / "apiserver.crt").write_bytes(theirs.cert_pem)
    (tmp_path / "apiserver.key").write_bytes(theirs.key_pem)
    OwnServing(tmp_path, NAME, ["localhost"]).renew(FakeClock().now() + days * DAY)
    assert (tmp_path / "apiserver.crt").read_bytes() == theirs.cert_pem
    assert not (tmp_path / "ca.crt").exists()


def test_a_pair_of_an_earlier_version_is_used_to_its_end_and_then_gets_a_new_authority(tmp_path: Path) -> None:
    now = FakeClock().now()
    authority = CertificateAuthority.create(f"{NAME}-ca", now=now)
    pair = authority.issue(NAME, sans=["localhost"], usages=SERVER_USAGES, now=now)
    for name, content in (
        ("ca.crt", authority.cert_pem),
        ("apiserver.crt", pair.cert_pem),
        ("apiserver.key", pair.key_pem),
    ):
        (tmp_path / name).write_bytes(content)
    own = OwnServing(tmp_path, NAME, ["localhost"])
    own.renew(now + 300 * DAY)
    assert (tmp_path / "apiserver.crt").read_bytes() == pair.cert_pem
    own.renew(now + 340 * DAY)
    assert (tmp_path / "apiserver.crt").read_bytes() != pair.cert_pem
    assert (tmp_path / "ca.key").exists()
