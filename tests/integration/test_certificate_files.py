"""Certificates and keys from files: they are used, followed while the server runs, and renewed before they end."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.frontproxy import FrontProxy, FrontProxyConfig
from karmada.kube.server.auth.jwt import SigningKey
from karmada.kube.server.auth.pki import DAY, SERVER_USAGES, CertificateAuthority, KeyPair, Pki, generate_key_pem
from karmada.kube.server.auth.serving import FILES_SECONDS, TlsConfig
from karmada.kube.server.config import ServerConfig
from tests.support.callers import Caller
from tests.support.certificates import der
from tests.support.eventually import eventually
from tests.support.running import run_server

CORPORATE, OTHER = CertificateAuthority.create("corporate"), CertificateAuthority.create("other")


@asynccontextmanager
async def serving(
    data_dir: Path, *, behind: float = 0.0, **settings: Any
) -> AsyncIterator[tuple[ApiServer, FakeClock]]:
    """A server whose clock is behind: what it issues later is valid now."""
    clock = FakeClock(start=time.time() - behind)
    config = ServerConfig(data_dir=data_dir, storage="memory://", port=0, controllers=False, anonymous=False)
    async with run_server(ApiServer(replace(config, **settings), clock)) as server:
        yield server, clock


def put(pair: KeyPair, directory: Path) -> tuple[Path, Path]:
    cert, key = directory / "tls.crt", directory / "tls.key"
    cert.write_bytes(pair.cert_pem)
    key.write_bytes(pair.key_pem)
    return cert, key


def leaf(authority: CertificateAuthority) -> KeyPair:
    return authority.issue("api", sans=["127.0.0.1"], usages=SERVER_USAGES)


async def served_certificate(server: ApiServer, **settings: Any) -> bytes:
    """What a new connection is shown; it sends no server name, since the server has an address only."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    for name, value in settings.items():
        setattr(tls, name, value)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
    der: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return der


async def test_a_given_certificate_is_served_and_followed(certificates: Path, tmp_path: Path) -> None:
    first, second = leaf(CORPORATE), leaf(OTHER)
    cert, key = put(first, tmp_path)
    async with serving(certificates, tls=TlsConfig(cert_file=cert, key_file=key)) as (server, clock):
        assert await served_certificate(server) == der(first.cert_pem)
        cert.write_bytes(second.cert_pem)  # the pair is half written
        await clock.advance(FILES_SECONDS)
        assert await served_certificate(server) == der(first.cert_pem)
        key.write_bytes(second.key_pem)
        await clock.advance(FILES_SECONDS)
        assert await served_certificate(server) == der(second.cert_pem)
        trusted = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
        assert trusted, "the administrator's kubeconfig trusts what is served"
        assert server.credentials.root_pem.endswith(second.cert_pem)


async def test_client_authorities_are_added_and_taken_away_while_it_runs(certificates: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "clients.crt"
    bundle.write_bytes(CORPORATE.cert_pem)
    jane, joe = CORPORATE.issue("jane"), OTHER.issue("joe")
    async with serving(certificates, tls=TlsConfig(client_ca_file=bundle)) as (server, clock):
        async with Caller(server, cert=jane.cert_pem, key=jane.key_pem) as caller:
            assert (await caller.who())["username"] == "jane"
            bundle.write_bytes(b"no certificate")
            await clock.advance(FILES_SECONDS)
            assert (await caller.who())["username"] == "jane"
            bundle.write_bytes(OTHER.cert_pem)
            await clock.advance(FILES_SECONDS)
            assert (await caller("GET", "/api")).code == 401, "on the connection that is open, too"
        async with Caller(server, cert=joe.cert_pem, key=joe.key_pem) as caller:
            assert (await caller.who())["username"] == "joe"
        async with Caller(server, cert=server.pki.admin.cert_pem, key=server.pki.admin.key_pem) as caller:
            assert (await caller.who())["username"] == "system:admin"
        published = await _published(server)
        assert OTHER.cert_pem.decode() in published
        assert CORPORATE.cert_pem.decode() not in published
        async with Caller(server, cert=jane.cert_pem, key=jane.key_pem) as caller:
            with pytest.raises(aiohttp.ClientError):
                await caller("GET", "/api")


async def test_front_proxies_are_those_of_the_given_authority_and_name_users_in_the_given_headers(
    certificates: Path, tmp_path: Path
) -> None:
    authority, own = tmp_path / "proxies.crt", CORPORATE.issue("front")
    authority.write_bytes(CORPORATE.cert_pem)
    names = FrontProxy(allowed_names=("front",), user_headers=("X-Jane",))
    cert, key = put(own, tmp_path)
    config = FrontProxyConfig(client_ca_file=authority, cert_file=cert, key_file=key, names=names)
    async with serving(certificates, front_proxy=config) as (server, _):
        async with Caller(server, cert=own.cert_pem, key=own.key_pem) as proxy:
            assert (await proxy("GET", "/api", headers={"X-Jane": "jane"})).code == 200
            assert (await proxy("GET", "/api", headers={"X-Remote-User": "jane"})).code == 401
        other = CORPORATE.issue("other")
        async with Caller(server, cert=other.cert_pem, key=other.key_pem) as proxy:
            assert (await proxy("GET", "/api", headers={"X-Jane": "jane"})).code == 401
        made_here = server.pki.front_proxy_client
        async with Caller(server, cert=made_here.cert_pem, key=made_here.key_pem) as proxy:
            with pytest.raises(aiohttp.ClientError):
                await proxy("GET", "/api", headers={"X-Jane": "jane"})
        maps = GVR("", "v1", "configmaps")
        data = (await server.client().get(maps, "extension-apiserver-authentication", "kube-system"))["data"]
        assert data["requestheader-client-ca-file"] == CORPORATE.cert_pem.decode()
        assert data["requestheader-username-headers"] == '["X-Jane"]'
        assert server.credentials.front_proxy_client_files == (cert, key)


async def _published(server: ApiServer) -> str:
    found = await server.client().get(GVR("", "v1", "configmaps"), "extension-apiserver-authentication", "kube-system")
    return str(found["data"]["client-ca-file"])


async def test_its_own_certificates_are_renewed_while_it_runs(tmp_path: Path) -> None:
    made = time.time() - 335 * DAY - 1.5 * FILES_SECONDS
    Pki.open(tmp_path / "pki", extra_sans=("127.0.0.1",), now=lambda: made)
    async with serving(tmp_path, behind=2 * FILES_SECONDS) as (server, clock):
        before, kubeconfig = server.pki, server.kubeconfig.read_text()
        assert await served_certificate(server) == der(before.serving.cert_pem)
        await clock.advance(FILES_SECONDS)
        assert server.pki.serving != before.serving
        assert await served_certificate(server) == der(server.pki.serving.cert_pem)
        await eventually(lambda: server.kubeconfig.read_text() != kubeconfig)
        assert server.pki.front_proxy_client != before.front_proxy_client
        async with Caller(server, cert=server.pki.admin.cert_pem, key=server.pki.admin.key_pem) as caller:
            assert (await caller.who())["username"] == "system:admin"


@pytest.mark.parametrize(("minimum", "accepted"), [("VersionTLS12", True), ("VersionTLS13", False)])
async def test_older_tls_than_the_minimum_is_refused(certificates: Path, minimum: str, accepted: bool) -> None:
    async with serving(certificates, tls=TlsConfig(minimum=minimum)) as (server, _):
        old = served_certificate(server, maximum_version=ssl.TLSVersion.TLSv1_2)
        if accepted:
            assert await old
        else:
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                await old


async def test_tokens_of_a_former_key_are_accepted_and_new_ones_signed_with_the_given(
    certificates: Path, tmp_path: Path
) -> None:
    signing, former, foreign = (tmp_path / name for name in ("new.key", "old.pub", "foreign.key"))
    old = SigningKey(generate_key_pem())
    signing.write_bytes(generate_key_pem())
    former.write_bytes(old.public.pem)
    foreign.write_bytes(generate_key_pem())
    settings: dict[str, Any] = {
        "service_account_signing_key_file": signing,
        "service_account_key_files": (former, foreign),
    }
    async with serving(certificates, **settings) as (server, _):
        new = SigningKey(signing.read_bytes())
        kids = {key["kid"] for key in server.keys.jwks()["keys"]}
        assert kids == {new.public.kid, old.public.kid, SigningKey(foreign.read_bytes()).public.kid}
        assert server.keys.verify(old.sign({"a": 1})) == {"a": 1}
        account = {"metadata": {"namespace": "a", "name": "b", "uid": "c"}}
        assert server.keys.verify(server.issuer.bound_token(account, ["x"], 60))["sub"] == "system:serviceaccount:a:b"
        assert new.public.kid == server.keys.keys[0].kid


def test_a_file_without_keys_is_named(certificates: Path, tmp_path: Path) -> None:
    bad = tmp_path / "empty.pem"
    bad.write_text("nothing")
    with pytest.raises(ValueError, match=r"empty\.pem: no PEM key"):
        ApiServer(ServerConfig(data_dir=certificates, storage="memory://", service_account_key_files=(bad,)))


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValueError, match="--tls-private-key-file"):
        TlsConfig(cert_file=Path("tls.crt"))
