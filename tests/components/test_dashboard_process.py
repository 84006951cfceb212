"""karmada-dashboard in front of a control plane that is not its own process: logins, certificates, health, metrics."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from karmada.components.dashboard import DashboardProcess, dashboard_process, main
from karmada.components.dashboard_service import impersonation_rights
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.kubeconfig import write_kubeconfig
from tests.support.dashboard_client import TOKENS, DashboardClient
from tests.support.karmada_server import control_plane


@asynccontextmanager
async def _running(server: ApiServer, folder: Path, *flags: str) -> AsyncIterator[DashboardProcess]:
    """With the account that may impersonate, and nothing else."""
    own = server.pki.ca.issue("system:karmada-dashboard", now=server.clock.now())
    kubeconfig = folder / "dashboard.kubeconfig"
    write_kubeconfig(kubeconfig, server.url, server.credentials.root_pem, own.cert_pem, own.key_pem, "c")
    nowhere = ("--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
    where = ("--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={folder / 'certs'}", *nowhere)
    given = main.make_context("karmada-dashboard", [f"--kubeconfig={kubeconfig}", *where, *flags]).params
    process = dashboard_process(given)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    (tmp_path / "tokens").write_text(TOKENS)
    server = control_plane(tmp_path, token_file=tmp_path / "tokens")
    server.more_defaults += impersonation_rights()
    await server.start()
    yield server
    await server.stop()


def _trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "certs/ca.crt"))


async def test_viewers_log_in_with_their_own_credentials_and_the_process_has_none_to_give(
    server: ApiServer, tmp_path: Path
) -> None:
    async with _running(server, tmp_path) as process:
        connector = aiohttp.TCPConnector(ssl=_trusting(tmp_path))
        async with aiohttp.ClientSession(connector=connector) as session:
            browser = DashboardClient(process.dashboard.url, session)
            assert (await browser.log_in()).status == 303
            assert (await browser.get("/")).status == 200
            assert "Certificate</button>" not in (await browser.get("/login?x")).text
            assert (await browser.log_in("nobody-token")).status == 303
            assert (await browser.get("/")).status == 403
            metrics = f"http://127.0.0.1:{process.endpoints[0].port}/metrics"
            async with session.get(metrics) as page:
                text = await page.text()
            assert "karmada_dashboard_sessions 1.0" in text
            assert "karmada_build_info" in text


async def test_certificates_of_the_given_authority_act_as_their_users(server: ApiServer, tmp_path: Path) -> None:
    authority = tmp_path / "clients.crt"
    authority.write_bytes(server.pki.ca.cert_pem)
    person = server.pki.ca.issue("ada", ("system:masters",), now=server.clock.now())
    (tmp_path / "ada.pem").write_bytes(person.cert_pem + person.key_pem)
    async with _running(server, tmp_path, f"--client-ca-file={authority}") as process:
        trusting = _trusting(tmp_path)
        trusting.load_cert_chain(tmp_path / "ada.pem")
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
            browser = DashboardClient(process.dashboard.url, session)
            entered = await browser.post("/login", {"method": "certificate"})
            assert entered.status == 303, entered.text
            page = await browser.get("/")
            assert page.status == 200
            assert 'title="ada (' in page.text


async def test_it_is_ready_while_the_control_plane_responds(server: ApiServer, tmp_path: Path) -> None:
    async with _running(server, tmp_path) as process:
        assert await process.health.ok("readyz")
        await server.stop()
        assert not await process.health.ok("readyz")
        assert await process.health.ok("healthz")


def test_a_control_plane_without_a_dashboard_does_not_load_one() -> None:
    script = (
        "import sys, karmada.components.controlplane; from karmada.components.dashboard_flags import *; "
        "loaded = [module for module in sys.modules if 'dashboard.' in module or module == 'jinja2']; "
        "print(dashboard_options_from({'dashboard': False}), loaded)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "None []\n"
