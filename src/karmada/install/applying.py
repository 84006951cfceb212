"""Create or update objects by server-side apply: the server compares, and what others have set stays.

A second run writes nothing, a newer version removes what it no longer sets, and an interrupted run goes on where it
ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from karmada.install.options import InstallError
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError, Invalid
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import Outcome, Write, get_if_exists

MANAGER: Final = "karmadactl-init"
Wrote = Callable[[Obj, Outcome], Awaitable[None]]
"""Called after each object."""


def shown(obj: Obj) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


async def live(client: Client, obj: Obj) -> Obj | None:
    """Return the object as it is in the cluster."""
    metadata = obj["metadata"]
    return await get_if_exists(client, await client.resource_of(obj), metadata["name"], metadata.get("namespace", ""))


async def apply(client: Client, obj: Obj) -> Write:
    """InstallError where what exists cannot become what is wanted."""
    before = await live(client, obj)
    try:
        after = await client.apply(await client.resource_of(obj), obj, field_manager=MANAGER, force=True)
    except Invalid as error:
        raise InstallError(_refused(obj, error, existed=before is not None)) from error
    if before is None:
        return Write("created", after)
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return Write("unchanged" if same else "updated", after)


async def apply_all(client: Client, objects: Iterable[Obj], wrote: Wrote) -> None:
    for obj in objects:
        await wrote(obj, (await apply(client, obj)).outcome)


def _refused(obj: Obj, error: ApiError, *, existed: bool) -> str:
    if not existed:
        return f"{shown(obj)} was refused: {error.message}"
    return (
        f"{shown(obj)} cannot be changed to what the flags say: {error.message}. Give the flags of the first "
        "installation, or delete it first if its data may go"
    )
