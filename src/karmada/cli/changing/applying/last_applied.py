"""`karmadactl apply view-last-applied`, `set-last-applied` and `edit-last-applied`: the annotation that apply keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.output.printing import print_flags, printer, qualified_name
from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, file_flags, read_files
from karmada.cli.targeting.selection import NOTHING_GIVEN, Chosen, Selection, choose, given_sources

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj


def _text(obj: Obj) -> str:
    from karmada.kube.objects.go_json import compact_json

    return compact_json(obj) + "\n"


async def _annotate(session: Session, one: Chosen, obj: Obj, flags: dict[str, Any]) -> Obj:
    return await session.client.patch(
        one.mapping.gvr,
        one.name,
        one.namespace,
        {"metadata": {"annotations": {writing.LAST_APPLIED: _text(obj)}}},
        dry_run=flags.get("dry_run") == writing.SERVER,
        field_manager=flags.get("field_manager", ""),
    )


# view


@click.command("view-last-applied")
@click.argument("words", nargs=-1, metavar="(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)")
@file_flags
@click.option("--all", "all_", is_flag=True, help="All resources of the type in the namespace.")
@click.option("-l", "--selector", default="", help="Only resources with these labels.")
@click.option("-o", "--output", default="yaml", show_default=True, help="yaml or json.")
@connect.connection_flags
@connect.namespace_flag
def view_last_applied(words: tuple[str, ...], **flags: Any) -> None:
    """Show the last applied configuration.

    \b
    Examples:
      karmadactl apply view-last-applied deployment/web
      karmadactl apply view-last-applied -f web.yaml -o json
    """
    if flags["output"] not in ("yaml", "json"):
        raise connect.usage(f"Unexpected -o output mode: {flags['output']}, the flag 'output' must be one of yaml|json")
    connect.run(_view(words, given_sources(words, flags), flags))


async def _view(words: Sequence[str], sources: Sequence[Source], flags: dict[str, Any]) -> None:

    failures = writing.Failures()
    selection = Selection(all=flags["all_"], labels=flags["selector"])
    async with flags["way"].open(flags["namespace"]) as session:
        chosen = await choose(session, words, sources, selection, failures)
    for one in chosen:
        with failures.collecting():
            text = writing.last_applied(one.obj)
            if text:
                click.echo(_shown(_parsed(text, one.name), flags["output"]), nl=False)
    failures.show()


def _parsed(text: str, name: str) -> Any:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise connect.failure(f"the annotation of {name} is not JSON: {error}") from error


def _shown(obj: Any, output: str) -> str:
    from karmada.cli.output.documents import to_yaml
    from karmada.kube.objects.go_json import to_json

    if output == "yaml":
        return to_yaml(obj)
    lines = to_json(obj).splitlines()  # two blanks a level here, and not four
    return "".join(" " * ((len(line) - len(line.lstrip(" "))) // 2) + line.lstrip(" ") + "\n" for line in lines)


# set


@click.command("set-last-applied")
@click.option("-f", "--filename", "filenames", multiple=True, help="The file with the new last applied configuration.")
@click.option("--create-annotation", is_flag=True, help="Create the annotation where it is missing.")
@writing.dry_run_flag
@print_flags
@connect.connection_flags
@connect.namespace_flag
def set_last_applied(**flags: Any) -> None:
    """Set the last applied configuration from a file; change nothing else.

    \b
    Examples:
      karmadactl apply set-last-applied -f web.yaml
      karmadactl apply set-last-applied -f web.yaml --create-annotation
    """
    sources = read_files(flags["filenames"])
    if not sources:
        raise connect.failure(NOTHING_GIVEN)
    connect.run(_set(sources, flags))


async def _set(sources: Sequence[Source], flags: dict[str, Any]) -> None:

    render = printer(
        flags["output"],
        flags["template"],
        flags["allow_missing_template_keys"],
        flags["show_managed_fields"],
        writing.did("configured", flags["dry_run"]),
    )
    failures = writing.Failures()
    async with flags["way"].open(flags["namespace"]) as session:
        for source in sources:
            for one in await choose(session, (), [source], Selection(), failures):
                with failures.collecting():
                    await _set_one(session, one, source, flags, render)
    failures.show()


async def _set_one(
    session: Session, one: Chosen, source: Source, flags: dict[str, Any], render: Callable[[Obj], str]
) -> None:
    before, wanted = writing.last_applied(one.obj), _placed(source.obj, one)
    if not before and not flags["create_annotation"]:
        raise connect.failure(
            f"no last-applied-configuration annotation found on resource: {one.name}, to create the "
            "annotation, run the command with --create-annotation"
        )
    if before == _text(wanted):
        click.echo(f"set-last-applied {one.name}: no changes required.")
        return
    changed = one.obj
    if flags["dry_run"] != writing.CLIENT:
        changed = await _annotate(session, one, wanted, flags)
    click.echo(render(changed), nl=False)


def _placed(obj: Obj, one: Chosen) -> Obj:
    if not one.namespace:
        return obj
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "namespace": one.namespace}}


# edit


@click.command("edit-last-applied")
@click.argument("words", nargs=-1, metavar="(RESOURCE/NAME | -f FILENAME)")
@file_flags
@click.option("-o", "--output", default="yaml", help="Format in the editor: yaml or json.")
@click.option("--windows-line-endings", is_flag=True, help="Use Windows line endings.")
@writing.validate_flag
@writing.manager_flag("kubectl-client-side-apply")
@connect.connection_flags
@connect.namespace_flag
def edit_last_applied(words: tuple[str, ...], **flags: Any) -> None:
    """Edit the last applied configuration.

    \b
    Examples:
      karmadactl apply edit-last-applied deployment/web
      karmadactl apply edit-last-applied -f web.yaml -o json
    """
    if flags["output"] not in ("yaml", "json"):
        raise connect.failure("The flag 'output' must be one of yaml|json")
    connect.run(_edit(words, given_sources(words, flags), flags))


async def _edit(words: Sequence[str], sources: Sequence[Source], flags: dict[str, Any]) -> None:
    from karmada.cli.changing.editor import edit_objects

    failures = writing.Failures()
    async with flags["way"].open(flags["namespace"]) as session:
        chosen = await choose(session, words, sources, Selection(), failures)
        failures.show()
        known = {_key(one.obj): one for one in chosen if writing.last_applied(one.obj)}
        if len(known) < len(chosen) or not chosen:
            raise connect.failure(
                "no last-applied-configuration annotation found on resources, to create the annotation, use command "
                f"`{program.command()} apply set-last-applied --create-annotation`"
            )
        before = [_tidy(_parsed(writing.last_applied(one.obj), one.name)) for one in known.values()]
        edited = await edit_objects(
            before,
            output=flags["output"],
            windows_line_endings=flags["windows_line_endings"],
            check=lambda found: _check_known(found, known),
        )
        if edited is None:
            return
        for obj in edited:
            one = known[_key(obj)]
            if _text(obj) == _text(_tidy(_parsed(writing.last_applied(one.obj), one.name))):
                click.echo(f"{qualified_name(one.obj)} skipped")
                continue
            await _annotate(session, one, obj, flags)
            click.echo(f"{qualified_name(one.obj)} edited")


def _key(obj: Obj) -> tuple[str, ...]:
    metadata = obj.get("metadata") or {}
    return obj.get("apiVersion", ""), obj.get("kind", ""), metadata.get("namespace", ""), metadata.get("name", "")


def _tidy(obj: Obj) -> Obj:
    """Without the empty annotations that apply writes."""
    metadata = dict(obj.get("metadata") or {})
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    return {**obj, "metadata": metadata}


def _check_known(found: Sequence[Obj], known: dict[tuple[str, ...], Chosen]) -> None:
    from karmada.cli.changing.editor import Rejected

    strange = [qualified_name(obj) for obj in found if _key(obj) not in known]
    if strange:
        raise Rejected(*(f"{name} is not one of the edited objects" for name in strange))
