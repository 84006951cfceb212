"""A dashboard over a control plane in memory, and a client that behaves as a browser on it would."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from karmada.components.dashboard_service import DashboardService
from karmada.dashboard.server import Options
from karmada.kube.client.client import Client
from karmada.kube.server.app import ApiServer
from tests.support.karmada_server import control_plane

TOKENS = "admin-token,admin,1,system:masters\nnobody-token,nobody,2,\n"
"""Static tokens of the test's control plane: one who may do everything, and one without any right."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


class DashboardClient:
    """One browser: a cookie jar, and the headers that browsers send."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.session = url, session
        self.csrf = ""

    async def get(self, path: str, **headers: str) -> Answer:
        sent = {"Sec-Fetch-Site": "same-origin", **{key.replace("_", "-"): value for key, value in headers.items()}}
        async with self.session.get(self.url + path, headers=sent, allow_redirects=False) as got:
            answer = Answer(got.status, got.headers, await got.text())
        found = re.search(r'name="csrf" content="([^"]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer

    async def post(self, path: str, data: dict[str, str], **headers: str) -> Answer:
        sent = {"Origin": self.url, **{key.replace("_", "-"): value for key, value in headers.items()}}
        async with self.session.post(self.url + path, data=data, headers=sent, allow_redirects=False) as got:
            return Answer(got.status, got.headers, await got.text())

    async def log_in(self, token: str = "admin-token") -> Answer:
        answer = await self.post("/login", {"method": "token", "token": token})
        if answer.status == 303:
            await self.get("/")
        return answer


@dataclass
class DashboardPlane:
    server: ApiServer
    service: DashboardService
    browser: DashboardClient

    @property
    def client(self) -> Client:
        """The control plane, as an administrator, in-process."""
        return self.server.client()


@asynccontextmanager
async def dashboard_plane(folder: Path, *, writes: bool = False) -> AsyncIterator[DashboardPlane]:
    (folder / "tokens").write_text(TOKENS)
    server = control_plane(folder, token_file=folder / "tokens")
    service = DashboardService(server, Options(writes=writes))
    await server.start()
    try:
        await service.start()
        assert service.dashboard is not None
        trusted = ssl.create_default_context(cadata=server.credentials.root_pem.decode())
        connector = aiohttp.TCPConnector(ssl=trusted)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield DashboardPlane(server, service, DashboardClient(service.dashboard.url, session))
    finally:
        await service.stop()
        await server.stop()
