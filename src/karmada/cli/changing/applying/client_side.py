"""Client-side apply: a three-way merge of the last applied configuration, the file and the live object."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

import click
import orjson

from karmada.cli.changing import writing
from karmada.cli.changing.applying.item import Done, Item
from karmada.cli.output.documents import to_yaml
from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.cli.targeting.session import Session
from karmada.kube.objects.errors import ApiError, Conflict, Invalid, NotFound
from karmada.kube.objects.go_json import compact_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.patch.threeway import PatchConflict, three_way_merge_patch, three_way_strategic_patch
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node

_RETRIES = 5
_MISSING = (
    "Warning: resource {place} is missing the {annotation} annotation which is required by {program} apply. "
    "{program} apply should only be used on resources created declaratively by either {program} create --save-config "
    "or {program} apply. The missing annotation will be patched automatically."
)
_DELETING = "Warning: Detected changes to resource {name} which is currently being deleted."
_CASCADES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


def with_annotation(obj: Obj) -> Obj:
    """Return the object with the last-applied annotation."""
    metadata = obj["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != writing.LAST_APPLIED}
    text = compact_json({**obj, "metadata": {**metadata, "annotations": annotations}}) + "\n"
    return {**obj, "metadata": {**metadata, "annotations": {**annotations, writing.LAST_APPLIED: text}}}


def parsed_last_applied(obj: Obj, source: str) -> Obj:
    text = writing.last_applied(obj)
    try:
        original = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError as error:
        raise connect.failure(f'error when reading the last applied configuration of "{source}": {error}') from error
    return original if isinstance(original, dict) else {}


@lru_cache(maxsize=64)
def schema_of(gvk: GVK) -> Node | None:
    """Return None for kinds that are not built in: their lists are not merged."""
    return Definitions.load().node_for(gvk)


def warn_if_deleting(obj: Obj) -> None:
    if obj["metadata"].get("deletionTimestamp"):
        click.echo(_DELETING.format(name=obj["metadata"]["name"]), err=True)


class ClientSide:
    def __init__(self, session: Session, flags: dict[str, Any]) -> None:
        self._client = session.client
        self._flags = flags
        self._manager = flags["field_manager"]
        self._server_dry_run = flags["dry_run"] == writing.SERVER

    async def apply(self, item: Item, failures: writing.Failures) -> Done | None:
        """Return None when it failed, which is among the failures."""
        if not item.name:
            raise connect.failure(f'error when retrieving current configuration of:\n{item.place}\nfrom server for: '
                                  f'"{item.source}": resource name may not be empty')  # fmt: skip
        modified = with_annotation(item.obj)
        found = False
        current: Obj = {}
        with failures.collecting(f"retrieving current configuration of:\n{item.place}\nfrom server for:", item.source):
            try:
                current = await self._get(item)
                found = True
            except NotFound:
                return await self._created(item, modified, failures)
        if not found:
            return None
        if self._flags["dry_run"] == writing.CLIENT:
            return Done(current, "configured")
        if not writing.last_applied(current):
            place = f"{item.mapping.gvr.resource}/{item.name}"
            text = _MISSING.format(place=place, annotation=writing.LAST_APPLIED, program=program.command())
            click.echo(text, err=True)
        return await self._changed(item, modified, current, failures)

    async def _get(self, item: Item) -> Obj:
        return await self._client.get(item.mapping.gvr, item.name, item.namespace)

    async def _created(self, item: Item, modified: Obj, failures: writing.Failures) -> Done | None:
        if self._flags["dry_run"] == writing.CLIENT:
            return Done(modified, "created")
        done: Done | None = None
        with failures.collecting("creating", item.source):
            done = Done(await self._create(item, modified), "created")
        return done  # noqa: RET504 - a failure in the block was collected

    async def _create(self, item: Item, obj: Obj) -> Obj:
        return await self._client.create(
            item.mapping.gvr,
            obj,
            item.namespace,
            dry_run=self._server_dry_run,
            field_manager=self._manager,
            field_validation=self._flags["validate"],
        )

    # changes

    async def _changed(self, item: Item, modified: Obj, current: Obj, failures: writing.Failures) -> Done | None:
        for attempt in range(_RETRIES + 1):
            patch, kind = self._patch(item, modified, current)
            if not patch:
                return Done(current, "unchanged")
            try:
                changed = await self._send(item, patch, kind)
            except (Conflict, Invalid) as error:
                if isinstance(error, Conflict) and attempt < _RETRIES:
                    await asyncio.sleep(1.0 if attempt else 0.0)
                    current = await self._get(item)
                    continue
                if not self._flags["force"]:
                    _refused(item, patch, error, failures)
                    return None
                changed = await self._replaced(item, modified, current)
            except ApiError as error:
                _refused(item, patch, error, failures)
                return None
            warn_if_deleting(changed)
            return Done(changed, "configured")
        raise AssertionError("unreachable")

    def _patch(self, item: Item, modified: Obj, current: Obj) -> tuple[Obj, str]:
        original = parsed_last_applied(current, item.source)
        node = schema_of(item.mapping.gvk)
        if node is None:
            return three_way_merge_patch(original, modified, current), "merge"
        try:
            patch = three_way_strategic_patch(original, modified, current, node, overwrite=self._flags["overwrite"])
        except PatchConflict as error:
            raise connect.failure(
                f'error when applying patch:\n\nto:\n{item.place}\nfor: "{item.source}": error when patching '
                f'"{item.source}": patch:\n{to_yaml(error.patch)}\nconflicts with changes made from original to '
                f"current:\n{to_yaml(error.changes)}"
            ) from error
        return patch, "strategic"

    async def _send(self, item: Item, patch: Obj, kind: str) -> Obj:
        return await self._client.patch(
            item.mapping.gvr,
            item.name,
            item.namespace,
            patch,
            type=kind,
            dry_run=self._server_dry_run,
            field_manager=self._manager,
            field_validation=self._flags["validate"],
        )

    async def _replaced(self, item: Item, modified: Obj, current: Obj) -> Obj:
        """Delete and recreate; when the new object is refused, the old one is restored."""
        grace = self._flags["grace_period"]
        await self._client.delete(
            item.mapping.gvr,
            item.name,
            item.namespace,
            propagation=_CASCADES[self._flags["cascade"]],
            grace_period=grace if grace >= 0 else 0,
        )
        await self._until_gone(item, current["metadata"].get("uid", ""))
        try:
            return await self._create(item, modified)
        except ApiError as error:
            kept = {k: v for k, v in current["metadata"].items() if k not in ("resourceVersion", "uid")}
            try:
                await self._create(item, {**current, "metadata": kept})
            except ApiError as second:
                raise connect.failure(
                    f"An error occurred force-replacing the existing object with the newly provided one:\n\n"
                    f"{error.message}.\n\nAdditionally, an error occurred attempting to restore the original object:\n"
                    f"\n{second.message}"
                ) from second
            raise

    async def _until_gone(self, item: Item, uid: str) -> None:
        from karmada.kube.objects.clock import SYSTEM

        limit = SYSTEM.monotonic() + (self._flags["timeout"] or 7 * 24 * 3600)
        pause = 0.05
        while SYSTEM.monotonic() < limit:
            try:
                found = await self._get(item)
            except NotFound:
                return
            if found["metadata"].get("uid") != uid:
                return
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)
        raise connect.failure(f"timed out waiting for the condition on {item.mapping.gvr.resource}/{item.name}")


def _refused(item: Item, patch: Obj, error: ApiError, failures: writing.Failures) -> None:
    doing = f'applying patch:\n{compact_json(patch)}\nto:\n{item.place}\nfor: "{item.source}": error when patching'
    with failures.collecting(doing, item.source):
        raise error
