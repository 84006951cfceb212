"""`karmadactl edit`: resources of the server in an editor.

Changes are sent as a patch, so that concurrent changes of others stay. What the server rejects is opened again with the
errors; what it accepted is not sent twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.editor import Draft, Rejected, as_text, edit_until_accepted, parsed
from karmada.cli.output.printing import qualified_name
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, file_flags
from karmada.cli.targeting.selection import Chosen, Selection, choose, given_sources

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj


@click.command()
@click.argument("words", nargs=-1, metavar="(RESOURCE/NAME | -f FILENAME)")
@file_flags
@click.option("-o", "--output", default="yaml", help="Format in the editor: yaml or json.")
@click.option("--output-patch", is_flag=True, help="Show the patch that is sent.")
@writing.save_config_flag
@click.option("--subresource", default="", help="Edit this subresource, such as status.")
@writing.validate_flag
@click.option("--windows-line-endings", is_flag=True, help="Use Windows line endings.")
@writing.manager_flag("kubectl-edit")
@connect.connection_flags
@connect.namespace_flag
def edit(words: tuple[str, ...], **flags: Any) -> None:
    """Edit resources in $KUBE_EDITOR, $EDITOR or vi.

    \b
    Examples:
      karmadactl edit deployment/web
      KUBE_EDITOR=nano karmadactl edit propagationpolicy web -n shop
      karmadactl edit deployment web --subresource=status -o json
    """
    if flags["output"] not in ("yaml", "json"):
        raise connect.failure("The flag 'output' must be one of yaml|json")
    connect.run(_Editing(flags).run(words, given_sources(words, flags)))


@dataclass(slots=True)
class _Outcome:
    """The result of one save."""

    reasons: list[str] = field(default_factory=list)
    """Errors; the editor is opened again."""
    lost: bool = False
    """An object no longer exists."""
    failed: bool = False


class _Editing:
    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._saved: dict[str, Obj] = {}

    async def run(self, words: Sequence[str], sources: Sequence[Source]) -> None:

        flags = self._flags
        failures = writing.Failures()
        named = len(words) > 1 or any("/" in word for word in words)
        async with flags["way"].open(flags["namespace"]) as session:
            chosen = await choose(
                session, words, sources, Selection(all=not named), failures, subresource=flags["subresource"]
            )
            failures.show()
            if not chosen:
                raise connect.failure("edit cancelled, no objects found")
            await self._edit(session, chosen)

    async def _edit(self, session: Session, chosen: Sequence[Chosen]) -> None:
        from karmada.kube.objects.meta import without_managed_fields

        flags = self._flags
        originals = [without_managed_fields(one.obj) for one in chosen]
        draft = Draft(
            as_text(originals, flags["output"]),
            suffix=f".{flags['output']}",
            windows_line_endings=flags["windows_line_endings"],
        )
        outcome = await edit_until_accepted(draft, lambda text: self._save(session, chosen, originals, draft, text))
        if outcome is None:
            return
        if outcome.lost:
            raise connect.failure(f'The edits you made on deleted resources have been saved to "{draft.path}"')
        if outcome.failed:
            raise connect.failure(f"changes that could not be saved are in {draft.path}; retry with apply -f")
        draft.discard()

    async def _save(
        self, session: Session, chosen: Sequence[Chosen], originals: Sequence[Obj], draft: Draft, text: str
    ) -> _Outcome:
        outcome = _Outcome()
        try:
            edited = parsed(text)
        except Rejected as error:
            what = _title(chosen[0])
            click.echo(f"error: {what} is invalid", err=True)
            raise Rejected(f"{what} was not valid:\n* {error}") from error
        for obj in edited:
            place = _place_of(obj, originals)
            if place is None or not _same_identity(obj, originals[place]):
                draft.keep()
                raise connect.failure("At least one of apiVersion, kind and name was changed")
            await self._send(session, chosen[place], originals[place], obj, outcome)
        if outcome.reasons:
            raise Rejected(*outcome.reasons)
        return outcome

    async def _send(self, session: Session, one: Chosen, old: Obj, new: Obj, outcome: _Outcome) -> None:
        from karmada.kube.objects.errors import ApiError, Invalid, NotFound

        key = f"{one.mapping.gvr}/{one.namespace}/{one.name}"
        if self._saved.get(key) == new:
            return
        if old == new:
            click.echo(f"{qualified_name(old)} skipped")
            return
        try:
            await self._patch(session, one, old, new)
        except Invalid as error:
            click.echo(f"error: {_title(one)} is invalid", err=True)
            causes = [f"{cause.get('field', '')}: {cause['message']}" for cause in error.causes] or [error.message]
            outcome.reasons.append("\n".join([f"{_title(one)} was not valid:", *(f"* {cause}" for cause in causes)]))
        except NotFound:
            click.echo(f"error: {_title(one)} could not be found on the server", err=True)
            outcome.lost = True
        except ApiError as error:
            click.echo(f"error: {_title(one)} could not be patched: {error.message}", err=True)
            outcome.failed = True
        else:
            self._saved[key] = new
            click.echo(f"{qualified_name(old)} edited")

    async def _patch(self, session: Session, one: Chosen, old: Obj, new: Obj) -> None:
        flags = self._flags
        body, kind = make_patch(old, writing.with_last_applied(new) if flags["save_config"] else new)
        if flags["output_patch"]:
            from karmada.kube.objects.go_json import compact_json

            click.echo(f"Patch: {compact_json(body)}")
        await session.client.patch(
            one.mapping.gvr,
            one.name,
            one.namespace,
            body,
            type=kind,
            subresource=flags["subresource"],
            field_manager=flags["field_manager"],
            field_validation=flags["validate"],
        )


def make_patch(old: Obj, new: Obj) -> tuple[Obj, str]:
    """Return what was changed, and the type of patch: strategic for built-in kinds, merge for all others."""
    from karmada.kube.objects.gvk import GVK
    from karmada.kube.patch.mergepatch import create_merge_patch
    from karmada.kube.patch.threeway import three_way_strategic_patch
    from karmada.kube.schema.builtin import Definitions

    node = Definitions.load().node_for(GVK.parse(old["apiVersion"], old["kind"]))
    if node is None:
        return create_merge_patch(old, new), "merge"
    return three_way_strategic_patch(old, new, old, node), "strategic"


def _title(one: Chosen) -> str:
    return f'{one.mapping.gvr.group_resource} "{one.name}"'


def _place_of(obj: Obj, originals: Sequence[Obj]) -> int | None:
    """Return the original of an object: by its uid, or else by its kind and name."""
    uid = (obj.get("metadata") or {}).get("uid")
    for place, original in enumerate(originals):
        if uid and original["metadata"].get("uid") == uid:
            return place
    for place, original in enumerate(originals):
        if not uid and _same_identity(obj, original):
            return place
    return None


def _same_identity(one: Obj, other: Obj) -> bool:
    def identity(obj: Obj) -> tuple[Any, ...]:
        metadata = obj.get("metadata") or {}
        return obj.get("apiVersion"), obj.get("kind"), metadata.get("name"), metadata.get("namespace")

    return identity(one) == identity(other)
