"""Credentials of a client: headers and a client certificate, renewed as they run out.

A token file is read again when it changes (service account tokens rotate). An exec plug-in runs once, its answer is
kept until it expires or the server says 401, and callers at the same time share one run.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson

from karmada.kube.client.config import ExecConfig, ReloadedConfig, RestConfig
from karmada.kube.client.tls import FileReader, MaterialReader
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

_EXPIRY_MARGIN = 10.0


class CredentialError(Exception):
    """Credentials could not be had (a plug-in failed, a file is missing)."""


@dataclass(frozen=True, slots=True)
class Credential:
    """`authorization` is the header's value; certificate and key are PEM."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


class Credentials(Protocol):
    async def get(self) -> Credential: ...

    def rejected(self, credential: Credential) -> bool:
        """Drop what the server answered with 401; return whether another `get` may return something better."""


class StaticCredentials:
    """Credentials that do not run out by themselves: a token or password; files are followed when they change."""

    def __init__(self, config: RestConfig) -> None:
        self._token_file = FileReader(config.token_file) if config.token_file else None
        self._token = config.token
        self._basic = ""
        if config.username and not config.token:
            pair = f"{config.username}:{config.password}".encode()
            self._basic = "Basic " + base64.b64encode(pair).decode()
        self._certificate = MaterialReader(config.certificate)
        self._key = MaterialReader(config.key)
        self._in_files = bool(config.token_file or config.certificate.path or config.key.path)
        self._known: Credential | None = None

    async def get(self) -> Credential:
        if self._known is None or self._in_files:
            self._known = self._read()
        return self._known

    def _read(self) -> Credential:
        try:
            token = self._token_file.read().decode().strip() if self._token_file else ""
            token = token or self._token
            authorization = f"Bearer {token}" if token else self._basic
            return Credential(authorization, self._certificate.read(), self._key.read())
        except OSError as error:
            raise CredentialError(f"{error.filename}: {error.strerror}") from error

    def rejected(self, credential: Credential) -> bool:  # noqa: ARG002 - nothing can be renewed
        return False


class ReloadingCredentials:
    """Credentials of a file that may be replaced at any time."""

    def __init__(self, source: ReloadedConfig) -> None:
        self._source = source
        self._config = source.current()
        self._static = StaticCredentials(self._config)

    async def get(self) -> Credential:
        config = self._source.current()
        if config is not self._config:
            self._config, self._static = config, StaticCredentials(config)
        return await self._static.get()

    def rejected(self, credential: Credential) -> bool:  # noqa: ARG002 - whatever it was
        """Return True when the file has changed since."""
        return self._source.current() is not self._config


class ExecCredentials:
    def __init__(self, config: RestConfig, plugin: ExecConfig, *, clock: Clock = SYSTEM) -> None:
        self._config = config
        self._plugin = plugin
        self._clock = clock
        self._known: Credential | None = None
        self._expires: float | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> Credential:
        async with self._lock:
            if self._known is None or (self._expires is not None and self._clock.now() >= self._expires):
                self._known = self._read(await self._run())
            return self._known

    def rejected(self, credential: Credential) -> bool:
        """Return True once per credential: the next run may bring another."""
        if self._known is credential:
            self._known = None
        return True

    def _read(self, answer: Obj) -> Credential:
        if answer.get("kind") != "ExecCredential" or answer.get("apiVersion") != self._plugin.api_version:
            shown = f"{answer.get('apiVersion')}, {answer.get('kind')}"
            raise CredentialError(f"exec plug-in {self._plugin.command}: expected ExecCredential, got {shown}")
        status = answer.get("status") or {}
        token = status.get("token") or ""
        certificate = (status.get("clientCertificateData") or "").encode()
        key = (status.get("clientKeyData") or "").encode()
        if not token and not (certificate and key):
            raise CredentialError(f"exec plug-in {self._plugin.command}: no token and no certificate in its response")
        expires = status.get("expirationTimestamp")
        self._expires = parse_time(expires) - _EXPIRY_MARGIN if expires else None
        return Credential(f"Bearer {token}" if token else "", certificate, key)

    async def _run(self) -> Obj:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if plugin.interactive_mode == "Always" and not interactive:
            raise CredentialError(f"exec plug-in {plugin.command}: needs a terminal, and there is none")
        environment: Mapping[str, str] = {
            **os.environ,
            **plugin.env,
            "KUBERNETES_EXEC_INFO": orjson.dumps(self._info(interactive)).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env=environment,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
            raise CredentialError(f"exec plug-in {plugin.command}: {error.strerror}{hint}") from error
        output, complaints = await process.communicate()
        if process.returncode != 0:
            shown = complaints.decode(errors="replace").strip()[-500:]
            raise CredentialError(f"exec plug-in {plugin.command} failed with exit code {process.returncode}: {shown}")
        try:
            answer: Obj = orjson.loads(output)
        except orjson.JSONDecodeError as error:
            raise CredentialError(f"exec plug-in {plugin.command}: its response is no JSON: {error}") from error
        return answer

    def _info(self, interactive: bool) -> Obj:
        spec: Obj = {"interactive": interactive}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = self._cluster_info()
        return {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}

    def _cluster_info(self) -> Obj:
        config = self._config
        cluster: Obj = {"server": config.server}
        ca = MaterialReader(config.ca).read()
        if ca:
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
        if config.tls_server_name:
            cluster["tls-server-name"] = config.tls_server_name
        if config.insecure:
            cluster["insecure-skip-tls-verify"] = True
        if config.proxy_url:
            cluster["proxy-url"] = config.proxy_url
        cluster["config"] = self._plugin.config
        return cluster


def credentials_for(config: RestConfig, *, clock: Clock = SYSTEM) -> Credentials:
    if config.reloaded is not None:
        return ReloadingCredentials(config.reloaded)
    if config.exec is not None and not config.token and not config.token_file:
        return ExecCredentials(config, config.exec, clock=clock)
    return StaticCredentials(config)
