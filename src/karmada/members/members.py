"""Every member cluster of the control plane with its client and informers, made at the first use.

`Members` follows Clusters and Secrets: a changed address or credential switches the member's transport in place, a
Cluster that is gone has its informers stopped and its connections closed. Nothing here waits for a member: what a dead
cluster costs is paid by its callers, each with a time-out of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import Transport
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.shapes import BARE
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.members.access import BY_SECRET, NoAccess, access_of, secret_index, secret_key
from karmada.members.switching import Open, SwitchingTransport, over_network

USER_AGENT = "karmada-controller-manager"
log = get_logger("members")


class Member:
    """One member cluster. `informers` run from the first `of` on; they outlive changes of credentials."""

    def __init__(self, name: str, transport: SwitchingTransport, clock: Clock) -> None:
        self.name = name
        self.transport = transport
        self.client = Client(transport)
        self.informers = Informers(self.client, clock=clock, shape=BARE)
        self.informers.start()
        self.trouble: NoAccess | None = None
        """Fault of the settings now; `client` still goes the way that was set up before."""
        self.history = 0
        """Another number, another cluster behind the name: what was known of the old one's objects counts no more."""
        self._closed = False
        self._restarting = asyncio.Lock()

    def switch(self, config: RestConfig) -> Coroutine[Any, Any, None] | None:
        """From now on this way; what is left to be done with the old one is to be awaited.

        Behind another address or authority may be another cluster: its history is its own.
        """
        before = self.transport.config
        old = self.transport.switch(config) if not self._closed else None
        if old is None:
            return None
        moved = (config.server, config.ca) != (before.server, before.ca)
        if moved:
            self.history += 1
        return self._leave(old, moved)

    async def _leave(self, old: Transport, moved: bool) -> None:
        await old.close()
        if not moved:
            return
        async with self._restarting:
            if not self._closed:
                await self.informers.stop()
                self.informers.forget_history()
            if not self._closed:
                self.informers.start()

    async def close(self) -> None:
        """For good: nothing starts after this."""
        self._closed = True
        async with self._restarting:
            await self.informers.stop()
        await self.transport.close()


class Members:
    name = "members"

    def __init__(
        self,
        informers: Informers,
        clock: Clock,
        *,
        user_agent: str = USER_AGENT,
        allow_insecure: bool = False,
        own: RestConfig | None = None,
        open_way: Open = over_network,
        disable_compression: bool = False,
    ) -> None:
        """`own`, for an agent, is the way to its cluster, whatever the Cluster says; then no Secret is read.

        `disable_compression` is for those who list much: members compress more slowly than they send.
        """
        self._open = open_way
        self._allow_insecure = allow_insecure
        self._own = own
        self._clusters = informers.of(Cluster.gvr, indexes={BY_SECRET: secret_index})
        self.secrets = informers.of(SECRETS) if own is None else None
        self._clock = clock
        self._settings: dict[str, Any] = {"user_agent": user_agent, "disable_compression": disable_compression}
        self._members: dict[str, Member] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._unsubscribe: list[Callable[[], None]] = []
        self.gone: list[Callable[[str], None]] = []
        """Called with the name of a cluster that is no more, or is handled by another replica."""
        self.moved: list[Callable[[str], None]] = []
        """Called with the name of a cluster behind which another one may be from now on."""

    async def start(self) -> None:
        self._unsubscribe = [self._clusters.add_handler(self._cluster_changed)]
        if self.secrets is not None:
            self._unsubscribe.append(self.secrets.add_handler(self._secret_changed))

    async def stop(self) -> None:
        self._stopped = True
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # they close connections; _done logs their errors
        members, self._members = list(self._members.values()), {}
        await asyncio.gather(*(member.close() for member in members))

    def get(self, name: str) -> Member:
        """NoAccess (for people) when there is no such cluster, or it cannot be reached as it is set up."""
        member = self._members.get(name)
        if member is not None:
            return member
        if self._stopped:
            raise NoAccess(f"cluster {name}: all connections to clusters are closed")
        cluster = self._clusters.get(Key("", name))
        if cluster is None:
            raise NoAccess(f'clusters.cluster.karmada.io "{name}" not found')
        member = Member(name, SwitchingTransport(self._access(cluster), self._open), self._clock)
        self._members[name] = member
        return member

    def known(self, name: str) -> Member | None:
        """Return the member, if it was used before."""
        return self._members.get(name)

    def _access(self, cluster: Obj) -> RestConfig:
        if self._own is not None:
            return replace(self._own, **self._settings)
        key, secrets = secret_key(cluster), self.secrets
        secret = secrets.get(Key(*key)) if key is not None and secrets is not None else None
        return replace(access_of(cluster, secret, allow_insecure=self._allow_insecure), **self._settings)

    # changes

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if old is None or old.get("spec") != new.get("spec"):
                self._refresh(new)
            return
        assert old is not None
        self.release(old["metadata"]["name"])

    @property
    def names(self) -> list[str]:
        """Return the names of the members that were used so far."""
        return list(self._members)

    def release(self, name: str) -> None:
        """Close the connection to a member and stop its informers: it is gone, or another replica's from now on."""
        member = self._members.pop(name, None)
        if member is not None:
            self._later(member.close(), f"close {name}")
        for callback in self.gone:
            callback(name)

    def _secret_changed(self, old: Obj | None, new: Obj | None) -> None:
        secret = new or old
        assert secret is not None
        for cluster in self._clusters.by_index(BY_SECRET, str(key_of(secret))):
            self._refresh(cluster)

    def _refresh(self, cluster: Obj) -> None:
        """Switch to the new access, if there is one; invalid settings leave the old one in place."""
        member = self._members.get(cluster["metadata"]["name"])
        if member is None:
            return
        try:
            config = self._access(cluster)
        except NoAccess as error:
            log.info("The access to a cluster is broken", cluster=member.name, err=str(error))
            member.trouble = error
            return
        member.trouble = None
        if config != member.transport.config:
            log.info("The access to a cluster has changed", cluster=member.name)
            history = member.history
            leaving = member.switch(config)
            if leaving is not None:
                self._later(leaving, f"switch {member.name}")
            if member.history != history:
                for call in self.moved:
                    call(member.name)

    def _later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("Work on a cluster's connections failed", task.exception(), task=task.get_name())
