"""Enabling, disabling and looking at addons, in the host cluster and in the control plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from karmada.install.addons import states
from karmada.install.addons.catalog import ADDONS, Addon
from karmada.install.addons.settings import Settings
from karmada.install.addons.stores import is_all_in_one, store_flags
from karmada.install.addons.workloads import SEARCH, member_secret
from karmada.install.applying import apply
from karmada.install.certificates import CA
from karmada.install.names import API_SERVER, CERTIFICATES, ETCD, config_secret
from karmada.install.options import InstallError
from karmada.install.secrets import certificates_in
from karmada.install.waiting import until_available, until_ready
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    APISERVICES,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists
from karmada.local.board import Board

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addons:
    """`karmada` is a client of the control plane."""

    host: Client
    karmada: Client
    settings: Settings
    pod_seconds: float = 120.0
    api_seconds: float = 30.0
    clock: Clock = SYSTEM

    async def _in_host(self, kind: GVR, name: str) -> Obj | None:
        return await get_if_exists(self.host, kind, name, self.settings.namespace)

    # look

    async def look(self, report: Callable[[str, str], None]) -> None:
        """Report every addon with its state, by name; one that cannot be found out is unknown, and the last one."""
        api_server = await self._in_host(DEPLOYMENTS, API_SERVER)
        for addon in sorted(ADDONS.values(), key=lambda each: each.name):
            if addon.per_cluster and not self.settings.cluster:
                report(addon.name, states.UNKNOWN)
                continue
            try:
                state = await self._state(addon, api_server)
            except (ApiError, ConnectionFailed):
                report(addon.name, states.UNKNOWN)
                raise
            report(addon.name, state)

    async def _state(self, addon: Addon, api_server: Obj | None) -> str:
        apis = [await get_if_exists(self.karmada, APISERVICES, name, "") for name in addon.apis]
        if _is_built_in(addon, api_server):
            return states.state(api_server, apis)
        name = addon.deployment(self.settings.cluster)
        return states.state(await self._in_host(DEPLOYMENTS, name), apis)

    # enable

    async def enable(self, addons: Sequence[Addon], board: Board) -> None:
        """Start all addons together and await each; InstallError for what is missing, before anything is changed."""
        namespace = self.settings.namespace
        api_server = await self._api_server()
        await self._check_secrets(addons)
        settings = await self._completed(addons, api_server)
        started: list[tuple[Addon, Obj]] = []
        for addon in addons:
            if _is_built_in(addon, api_server):
                board.done(addon.name, f"is part of the control plane in {namespace}: nothing to install")
                continue
            objects = addon.host(settings)
            for obj in objects:
                await apply(self.host, obj)
            started.append((addon, objects[-1]))
        for addon, deployment in started:
            await self._finish(addon, deployment, settings, board)

    async def _api_server(self) -> Obj:
        deployment = await self._in_host(DEPLOYMENTS, API_SERVER)
        if deployment is None:
            raise InstallError(
                f"there is no control plane in namespace {self.settings.namespace} of this cluster: install one with "
                "'karmadactl init', or name its namespace with --namespace"
            )
        return deployment

    async def _check_secrets(self, addons: Sequence[Addon]) -> None:
        for addon in addons:
            name = config_secret(addon.name)
            if not addon.configured or await self._in_host(SECRETS, name) is not None:
                continue
            raise InstallError(
                f"secret \"{name}\" is not found in namespace {self.settings.namespace}: run 'karmadactl init', which "
                "puts it there (again)"
            )

    async def _completed(self, addons: Sequence[Addon], api_server: Obj) -> Settings:
        """With what the installation says of its store and its authority."""
        settings = self.settings
        secret = await self._in_host(SECRETS, CERTIFICATES)
        authority = certificates_in(secret).get(CA)
        if authority is None:
            raise InstallError(
                f'secret "{CERTIFICATES}" of namespace {settings.namespace} has no ca.crt with its key: run '
                "'karmadactl init', which puts it there (again)"
            )
        store: list[str] = []
        if any(addon.name == SEARCH and not _is_built_in(addon, api_server) for addon in addons):
            etcd = await self._in_host(STATEFUL_SETS, ETCD)
            store = store_flags(api_server, etcd, settings.namespace, settings.domain)
        return replace(settings, authority=authority.cert_pem, store=store)

    async def _finish(self, addon: Addon, deployment: Obj, settings: Settings, board: Board) -> None:
        """When it runs, the control plane is led to it."""
        show = partial(board.doing, addon.name)
        try:
            await until_ready(self.host, deployment, self.pod_seconds, self.clock, show)
            for obj in addon.control_plane(settings):
                await apply(self.karmada, obj)
            for name in addon.apis:
                await until_available(self.karmada, name, self.api_seconds, self.clock, show)
        except InstallError:
            board.fail(addon.name, "not ready")
            raise
        board.done(addon.name, "enabled")

    # disable

    async def disable(self, addons: Sequence[Addon], say: Say) -> None:
        """Remove addons; what is not there counts as removed."""
        api_server = await self._in_host(DEPLOYMENTS, API_SERVER)
        for addon in addons:
            if _is_built_in(addon, api_server):
                say(f"{addon.name} is part of the control plane in one Deployment, and stays")
                continue
            await self._disable(addon)
            say(f"{addon.deployment(self.settings.cluster)} is disabled")

    async def _disable(self, addon: Addon) -> None:
        """Remove an addon; the way to it first, so that nobody is sent to a server that is gone."""
        namespace, name = self.settings.namespace, addon.deployment(self.settings.cluster)
        for api in addon.apis:
            await _delete(self.karmada, APISERVICES, api)
        for role in addon.rights:
            await _delete(self.karmada, CLUSTER_ROLES, role["metadata"]["name"])
        if addon.apis:
            await _delete(self.karmada, SERVICES, addon.name, namespace)
        for kind in (DEPLOYMENTS, SERVICES, ACCOUNTS, CONFIG_MAPS):
            await _delete(self.host, kind, name, namespace)
        if addon.per_cluster:
            await _delete(self.host, SECRETS, member_secret(self.settings.cluster), namespace)


def _is_built_in(addon: Addon, api_server: Obj | None) -> bool:
    return addon.built_in and api_server is not None and is_all_in_one(api_server)


async def _delete(client: Client, kind: GVR, name: str, namespace: str = "") -> None:
    await delete_if_exists(client, kind, name, namespace, propagation="Background")
