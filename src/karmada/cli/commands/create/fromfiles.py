"""`create -f`: the objects of files, one after another. An error with one of them does not keep the others back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karmada.cli.changing import writing
from karmada.cli.commands.create.generator import Settings
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, read_files, require_files

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj


def create_from_files(flags: dict[str, Any]) -> None:
    settings = Settings.taken_from(flags)
    filenames, kustomize, recursive = flags["filenames"], flags["kustomize"], flags["recursive"]
    require_files(filenames, kustomize)
    if flags["raw"]:
        _check_raw(flags, settings)
        connect.run(_post(settings, flags["raw"], filenames[0]))
        return
    sources = _selected(read_files(filenames, kustomize, recursive), flags["selector"])
    if flags["edit"]:
        sources = _edited(sources, flags["windows_line_endings"])
        if not sources:
            return
    if not sources:
        raise connect.failure("no objects passed to create")
    connect.run(_create_all(settings, sources))


def _selected(sources: list[Source], selector: str) -> list[Source]:
    if not selector:
        return sources
    from karmada.kube.objects.meta import labels
    from karmada.kube.objects.selectors import parse_labels

    try:
        wanted = parse_labels(selector)
    except ValueError as error:
        raise connect.failure(str(error)) from error
    return [source for source in sources if wanted.matches(labels(source.obj))]


def _edited(sources: list[Source], windows_line_endings: bool) -> list[Source]:
    """Return the objects as an editor leaves them; none when nothing was saved."""
    from karmada.cli.changing.editor import edit_objects

    edited = connect.run(edit_objects([source.obj for source in sources], windows_line_endings=windows_line_endings))
    return [Source(obj, sources[0].name) for obj in edited or ()]


async def _create_all(settings: Settings, sources: list[Source]) -> None:

    failures = writing.Failures()
    async with settings.way.open(settings.namespace) as session:
        for source in sources:
            with failures.collecting("creating", source.name):
                settings.print(await _create(settings, session, source))
    failures.show()


async def _create(settings: Settings, session: Session, source: Source) -> Obj:
    mapping = await writing.mapping_of(session.client, source.obj, source.name)
    obj = writing.placed(source.obj, mapping, session.namespace, session.namespace_given)
    if settings.save_config:
        obj = writing.with_last_applied(obj)
    if settings.dry_run == writing.CLIENT:
        return obj
    return await session.client.create(
        mapping.gvr,
        obj,
        dry_run=settings.dry_run == writing.SERVER,
        field_manager=settings.field_manager,
        field_validation=settings.validate,
    )


# --raw


def _check_raw(flags: dict[str, Any], settings: Settings) -> None:
    filenames = flags["filenames"]
    if len(filenames) != 1 or filenames[0].startswith(("http://", "https://")):
        raise connect.failure("--raw can only use a single local file or stdin")
    for flag, name in (
        (flags["edit"], "--edit"),
        (flags["recursive"], "--recursive"),
        (flags["selector"], "--selector (-l)"),
        (settings.results.formatted, "--output"),
    ):
        if flag:
            raise connect.failure(f"--raw and {name} are mutually exclusive")


async def _post(settings: Settings, path: str, filename: str) -> None:

    bodies = read_files([filename])
    if len(bodies) != 1:
        raise connect.failure("--raw needs a file with one object")
    async with settings.way.open() as session:
        await writing.raw(session.client, "POST", path, bodies[0].obj)
