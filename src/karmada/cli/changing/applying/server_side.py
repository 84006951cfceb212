"""Server-side apply, and the migration from client-side apply.

Fields of a client-side apply belong to another manager, so fields removed from the file would stay. The first
server-side apply therefore transfers those fields to its own manager and applies again.
"""

from __future__ import annotations

from typing import Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.applying.client_side import warn_if_deleting
from karmada.cli.changing.applying.item import Done, Item
from karmada.cli.targeting import connect
from karmada.cli.targeting.session import Session
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.types import Obj
from karmada.kube.patch.fieldset import union

_DEFAULT = "kubectl"
_KEEPER = "kubectl-last-applied"
_RETRIES = 5
_ADVICE = """\
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""

_LATER = "This is non-fatal and will be retried next time you apply. Error: {error}"
_NOT_KEPT = f"Warning: failed to migrate {{annotation}} for Server-Side Apply. {_LATER}"
_NOT_MOVED = f"Warning: server rejected managed fields migration to Server-Side Apply. {_LATER}"


class ServerSide:
    def __init__(self, session: Session, flags: dict[str, Any]) -> None:
        self._client = session.client
        self._flags = flags
        self._manager = flags["field_manager"]

    async def apply(self, item: Item, failures: writing.Failures) -> Done | None:
        """Return None when it failed, which is among the failures."""
        if not item.name:
            raise connect.failure("resource name may not be empty")
        done: Done | None = None
        with failures.collecting():
            try:
                obj = await self._send(item, item.obj, self._manager, force=self._flags["force_conflicts"])
            except Conflict as error:
                raise connect.failure(f"{error.message}\n{_ADVICE}") from error
            warn_if_deleting(obj)
            if not self._flags["subresource"]:
                obj = await self._handed_over(item, obj)
            done = Done(obj, "serverside-applied")
        return done  # noqa: RET504 - a failure in the block was collected

    async def _send(self, item: Item, obj: Obj, manager: str, *, force: bool) -> Obj:
        return await self._client.patch(
            item.mapping.gvr,
            item.name,
            item.namespace,
            obj,
            type="apply",
            subresource=self._flags["subresource"],
            force=force,
            dry_run=self._flags["dry_run"] == writing.SERVER,
            field_manager=manager,
            field_validation=self._flags["validate"],
        )

    async def _handed_over(self, item: Item, obj: Obj) -> Obj:
        try:
            obj = await self._keep_annotation(item, obj)
        except ApiError as error:
            click.echo(_NOT_KEPT.format(annotation=writing.LAST_APPLIED, error=error.message), err=True)
            return obj
        try:
            moved = await self._move_fields(item, obj)
        except ApiError as error:
            click.echo(_NOT_MOVED.format(error=error.message), err=True)
            return obj
        if moved is None:
            return obj
        return await self._send(item, item.obj, self._manager, force=self._flags["force_conflicts"])

    async def _keep_annotation(self, item: Item, obj: Obj) -> Obj:
        """Give the last-applied annotation a manager of its own, so that it is not removed."""
        text = (obj["metadata"].get("annotations") or {}).get(writing.LAST_APPLIED)
        if self._manager != _DEFAULT or text is None or _owners(obj, "Apply"):
            return obj
        metadata = {"name": item.name, "annotations": {writing.LAST_APPLIED: text}}
        if item.namespace:
            metadata["namespace"] = item.namespace
        only = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
        return await self._send(item, only, _KEEPER, force=False)

    async def _move_fields(self, item: Item, obj: Obj) -> Obj | None:
        """Return None when there is nothing to migrate."""
        for attempt in range(_RETRIES):
            names = {str(entry.get("manager")) for entry in _owners(obj, "Update")}
            entries = handed_over(obj["metadata"].get("managedFields") or [], names, self._manager)
            if not names or entries is None:
                return None
            patch = [
                {"op": "replace", "path": "/metadata/managedFields", "value": entries},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]},
            ]
            try:
                return await self._client.patch(
                    item.mapping.gvr,
                    item.name,
                    item.namespace,
                    patch,
                    type="json",
                    dry_run=self._flags["dry_run"] == writing.SERVER,
                    field_manager=self._manager,
                )
            except Conflict:
                if attempt + 1 == _RETRIES:
                    raise
                obj = await self._client.get(item.mapping.gvr, item.name, item.namespace)
        raise AssertionError("unreachable")


def _owners(obj: Obj, operation: str) -> list[Obj]:
    """Entries of managers that own the annotation of client-side applies."""
    found = []
    for entry in obj["metadata"].get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        owned = f"f:{writing.LAST_APPLIED}" in (fields.get("f:annotations") or {})
        if owned and entry.get("operation") == operation and not entry.get("subresource"):
            found.append(entry)
    return found


def handed_over(entries: list[Obj], names: set[str], manager: str) -> list[Obj] | None:
    """Return the entries with the Update fields of these managers moved to the applying manager; None for no change."""

    def is_old(entry: Obj) -> bool:
        return entry.get("operation") == "Update" and entry.get("manager") in names and not entry.get("subresource")

    old = [entry for entry in entries if is_old(entry)]
    if not old:
        return None
    own = [
        entry
        for entry in entries
        if entry.get("operation") == "Apply" and entry.get("manager") == manager and not entry.get("subresource")
    ]
    base = own[0] if own else {**old[0], "operation": "Apply", "manager": manager}
    fields = base.get("fieldsV1") or {}
    for entry in old:
        if entry.get("apiVersion") == base.get("apiVersion"):
            fields = union(fields, entry.get("fieldsV1") or {})
    merged = {**base, "fieldsV1": fields}
    kept = [merged if own and entry is own[0] else entry for entry in entries if not is_old(entry)]
    return kept if own else [*kept, merged]
