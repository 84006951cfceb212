from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority, KeyPair
from karmada.kube.server.auth.serving import FILES_SECONDS, FollowedServing
from tests.support.tls_backend import load, write

CA, OTHER = CertificateAuthority.create("one"), CertificateAuthority.create("two")


def leaf(authority: CertificateAuthority) -> KeyPair:
    return authority.issue("api", sans=["localhost"], usages=SERVER_USAGES)


@asynccontextmanager
async def listening(serving: FollowedServing) -> AsyncIterator[int]:
    """Answers with the common name of the client's certificate."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = dict(part[0] for part in (writer.get_extra_info("peercert") or {}).get("subject", ()))
        writer.write(subject.get("commonName", "nobody").encode() + b"\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving.context)
    following = asyncio.create_task(serving.follow())
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        following.cancel()
        server.close()


async def call(port: int, trusted: CertificateAuthority, client: KeyPair | None = None) -> str:
    tls = ssl.create_default_context(cadata=trusted.cert_pem.decode())
    tls.maximum_version = ssl.TLSVersion.TLSv1_2  # a client learns of a refusal before its handshake is over
    if client is not None:
        load(tls, client)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost")
    try:
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()


async def test_a_session_is_not_resumed_so_every_connection_is_verified(tmp_path: Path) -> None:
    tls = ssl.create_default_context(cadata=CA.cert_pem.decode())
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    async with listening(FollowedServing(*write(leaf(CA), tmp_path), "VersionTLS12", FakeClock())) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost")
        assert await reader.readline() == b"nobody\n"
        session = writer.get_extra_info("ssl_object").session
        assert session is None or not session.has_ticket
        writer.close()


async def test_new_connections_get_the_certificate_that_is_in_the_files(tmp_path: Path) -> None:
    clock = FakeClock()
    cert, key = write(leaf(CA), tmp_path)
    async with listening(FollowedServing(cert, key, "VersionTLS12", clock)) as port:
        assert await call(port, CA) == "nobody"
        cert.unlink()
        await clock.advance(FILES_SECONDS)
        assert await call(port, CA) == "nobody", "what cannot be read changes nothing"
        write(leaf(OTHER), tmp_path)
        await clock.advance(FILES_SECONDS)
        assert await call(port, OTHER) == "nobody"
        with pytest.raises(ssl.SSLCertVerificationError):
            await call(port, CA)


async def test_authorities_of_clients_can_be_taken_away(tmp_path: Path) -> None:
    serving = FollowedServing(*write(leaf(CA), tmp_path), "VersionTLS12", FakeClock())
    jane, joe = CA.issue("jane"), OTHER.issue("joe")
    async with listening(serving) as port:
        serving.trust(CA.cert_pem)
        assert await call(port, CA, jane) == "jane"
        serving.trust(OTHER.cert_pem)
        assert await call(port, CA, joe) == "joe"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await call(port, CA, jane)


async def test_authorities_that_come_while_the_files_are_bad_are_loaded_later(tmp_path: Path) -> None:
    clock = FakeClock()
    pair = leaf(CA)
    cert, key = write(pair, tmp_path)
    serving = FollowedServing(cert, key, "VersionTLS12", clock)
    async with listening(serving) as port:
        key.write_bytes(b"half a key")
        serving.trust(OTHER.cert_pem)
        write(pair, tmp_path)
        await clock.advance(FILES_SECONDS)
        assert await call(port, CA, OTHER.issue("joe")) == "joe"


def test_files_that_cannot_be_used_are_an_error_at_the_start(tmp_path: Path) -> None:
    cert, key = write(leaf(CA), tmp_path)
    key.write_bytes(leaf(CA).key_pem)
    with pytest.raises(ssl.SSLError):
        FollowedServing(cert, key, "VersionTLS12", FakeClock())
