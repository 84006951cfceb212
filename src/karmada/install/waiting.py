"""Waiting until a workload of the host, or an API of the control plane, is ready; and the reasons when it is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from karmada.install.applying import live, shown
from karmada.install.diagnosis import condition, explain, is_ready, pods_of, summary
from karmada.install.options import InstallError
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import APISERVICES
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj

PAUSE: Final = 0.25
Show = Callable[[str], None]
"""Gets what is awaited, in one line, as it changes."""


async def until(look: Callable[[], Awaitable[str]], seconds: float, clock: Clock, show: Show) -> str:
    """Look until nothing is awaited any more; what is still awaited when time is up (0: never), else empty."""
    end = clock.monotonic() + seconds
    while True:
        try:
            awaited = await look()
        except (ApiError, ConnectionFailed) as error:
            awaited = str(error)
        if not awaited:
            return ""
        show(awaited)
        if seconds and clock.monotonic() >= end:
            return awaited
        await clock.sleep(PAUSE)


async def until_ready(client: Client, workload: Obj, seconds: float, clock: Clock, show: Show) -> None:
    """InstallError, with the reasons of its pods, when it takes longer."""

    async def look() -> str:
        found = await live(client, workload)
        if found is None:
            return "it was deleted"
        return "" if is_ready(found) else summary(found, await pods_of(client, found))

    awaited = await until(look, seconds, clock, show)
    if awaited:
        raise InstallError(
            f"{shown(workload)} is not ready after {format_duration(seconds)}: {awaited}\n"
            f"{await explain(client, workload)}\n"
            "Then run the command again: it goes on from here."
        )


async def until_served(client: Client, path: str, seconds: float, clock: Clock, show: Show) -> None:
    """Until the API server responds as it should; InstallError when it takes longer."""

    async def look() -> str:
        await client.raw("GET", path)
        return ""

    awaited = await until(look, seconds, clock, show)
    if awaited:
        raise InstallError(
            f"the control plane does not respond: {awaited}\nIf its address cannot be reached from here, name one that "
            "can with --karmada-apiserver-advertise-address, and run init again."
        )


async def until_available(client: Client, name: str, seconds: float, clock: Clock, show: Show) -> None:
    """Until an APIService is available; InstallError when it takes longer."""

    async def look() -> str:
        found = condition(await client.get(APISERVICES, name), "Available")
        if found.get("status") == "True":
            return ""
        return str(found.get("message") or "it is not available yet")

    awaited = await until(look, seconds, clock, show)
    if awaited:
        raise InstallError(f"APIService/{name} is not available after {format_duration(seconds)}: {awaited}")
