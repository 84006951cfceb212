"""`karmadactl describe`: the details of resources, with related objects and events.

Arguments and files are resolved to objects first; a single name that does not exist is used as a prefix. Objects are
then described concurrently and shown in order. Errors are reported at the end and do not hide the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import file_flags
from karmada.cli.targeting.scope import chosen_cluster, one_cluster_flags

if TYPE_CHECKING:
    from asyncio import Semaphore

    from karmada.cli.changing.writing import Failures
    from karmada.cli.output.describing.around import Around
    from karmada.cli.targeting.resources import Target
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.discovery import Mapping
    from karmada.kube.objects.types import Obj

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """The objects to describe."""

    words: tuple[str, ...]
    filenames: tuple[str, ...]
    kustomize: str
    recursive: bool
    selector: str
    all_namespaces: bool
    chunk: int

    @property
    def from_files(self) -> bool:
        return bool(self.filenames or self.kustomize)


class Subject(NamedTuple):
    mapping: Mapping
    obj: Obj


@click.command()
@click.argument("words", nargs=-1, metavar="(TYPE [NAME_PREFIX] | TYPE/NAME)")
@one_cluster_flags
@file_flags
@click.option("-l", "--selector", default="", help="Only resources with these labels.")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("--show-events", is_flag=True, default=True, help="Show events of the resource.")
@click.option(
    "--chunk-size",
    type=int,
    default=500,
    show_default=True,
    help="Read lists in chunks of this size; 0 reads them whole.",
)
@connect.namespace_flag
@connect.connection_flags
def describe(
    words: tuple[str, ...],
    scope: str,
    cluster: str,
    filenames: tuple[str, ...],
    kustomize: str,
    recursive: bool,
    selector: str,
    all_namespaces: bool,
    show_events: bool,
    chunk_size: int,
    namespace: str,
    way: connect.Way,
) -> None:
    """Show details of resources: their fields, related objects and events.

    A NAME that does not exist is used as a prefix of names.

    \b
    Examples:
      # A pod of member1
      karmadactl describe pod/nginx -C=member1
      # All deployments of the control plane with a label
      karmadactl describe deploy -l app=nginx
      # The pods of member1 whose names begin with nginx
      karmadactl describe pods nginx --operation-scope=members --cluster=member1
      # A cluster, without its events
      karmadactl describe cluster member1 --show-events=false
      # The objects in a file
      karmadactl describe -f nginx.yaml
    """
    wanted = Wanted(words, filenames, kustomize, recursive, selector, all_namespaces, chunk_size)
    member = chosen_cluster(scope, cluster)
    _check(wanted)
    connect.run(_describe(wanted, member, show_events, way, namespace))


def _check(wanted: Wanted) -> None:
    if wanted.from_files:
        if wanted.words:
            given = "when paths, URLs, or stdin is provided as input"
            raise connect.failure(f"{given}, you may not specify resource arguments as well")
        return
    if not wanted.words:
        hint = f'Use "{program.command()} api-resources" for a complete list of supported resources.'
        raise connect.failure(f"You must specify the type of resource to describe. {hint}")
    named = len(wanted.words) > 1 or "/" in wanted.words[0]
    if named and wanted.selector:
        raise connect.failure("name cannot be provided when a selector is specified")
    if named and wanted.all_namespaces:
        raise connect.failure("a resource cannot be retrieved by name across all namespaces")


async def _describe(wanted: Wanted, member: str, show_events: bool, way: connect.Way, namespace: str) -> None:
    from karmada.cli.targeting import session

    async with way.open(namespace) as control:
        if not member:
            await _show(control, wanted, show_events)
            return
        async with session.member(control, member) as there:
            await _show(there, wanted, show_events)


async def _show(there: Session, wanted: Wanted, show_events: bool) -> None:
    import asyncio
    import time

    from karmada.cli.changing.writing import Failures
    from karmada.cli.output.describing.around import Around

    failures = Failures()
    found = await _find(there, wanted, failures)
    around = Around(there.client, time.time(), show_events, wanted.chunk)
    places = asyncio.Semaphore(_AT_ONCE)
    tasks = [asyncio.create_task(_text(subject, around, places)) for subject in found.subjects]
    try:
        shown = 0
        for task in tasks:
            with failures.collecting():
                text = await task
                click.echo(f"{text}\n" if found.by_prefix else ("\n\n" if shown else "") + text, nl=False)
                shown += 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not found.subjects and not failures:
        place = "" if wanted.all_namespaces else f" in {there.namespace} namespace."
        click.echo(f"No resources found{place}", err=True)
    failures.show()


async def _text(subject: Subject, around: Around, places: Semaphore) -> str:
    from karmada.cli.output.describing.kinds import describe as describe_object
    from karmada.cli.output.describing.kinds import entry

    async with places:
        mapping, obj = subject
        gvk = mapping.gvk
        best = gvk._replace(version=entry(gvk.group, gvk.kind).version or gvk.version)
        if best != gvk and around.client.mapper.known(best) is not None:
            metadata = obj["metadata"]
            obj = await around.client.get(best, metadata["name"], metadata.get("namespace") or "")
        return await describe_object({"apiVersion": gvk.api_version, "kind": gvk.kind, **obj}, around)


# words and files to objects


class Found(NamedTuple):
    subjects: list[Subject]
    by_prefix: bool = False


async def _find(there: Session, wanted: Wanted, failures: Failures) -> Found:
    from karmada.cli.targeting.resources import parse_targets
    from karmada.kube.objects.errors import NotFound

    if wanted.from_files:
        return Found(await _of_files(there, wanted, failures))
    catalog = await there.client.mapper.catalog()
    targets = parse_targets(catalog, wanted.words, "" if wanted.all_namespaces else there.namespace)
    subjects: list[Subject] = []
    for target in targets:
        with failures.collecting():
            try:
                subjects += await _fetched(there, target, wanted)
            except NotFound:
                if len(wanted.words) != 2 or "/" in wanted.words[0]:
                    raise
                alike = await _beginning_with(there, targets, wanted)
                if not alike:
                    raise
                return Found(alike, by_prefix=True)
    return Found(subjects)


async def _fetched(there: Session, target: Target, wanted: Wanted) -> list[Subject]:
    from karmada.kube.objects.errors import BadRequest

    mapping = target.mapping
    if target.name:
        return [Subject(mapping, await there.get(mapping.gvr, target.name, target.namespace))]
    try:
        listed = await there.client.list_all(
            mapping.gvr, target.namespace, label_selector=wanted.selector, page_size=wanted.chunk
        )
    except BadRequest as error:
        group, version, resource = mapping.gvr
        where = f'"{group}/{version}, Resource={resource}"'
        what = f'label selector "{wanted.selector}", field selector ""'
        raise BadRequest(f"Unable to find {where} that match {what}: {error.message}") from error
    return [Subject(mapping, obj) for obj in listed.items]


async def _beginning_with(there: Session, targets: Sequence[Target], wanted: Wanted) -> list[Subject]:
    from dataclasses import replace

    alike: list[Subject] = []
    for target in targets:
        everything = await _fetched(there, replace(target, name=""), wanted)
        alike += [subject for subject in everything if subject.obj["metadata"]["name"].startswith(target.name)]
    return alike


async def _of_files(there: Session, wanted: Wanted, failures: Failures) -> list[Subject]:
    from karmada.cli.changing import writing
    from karmada.cli.targeting import files

    subjects: list[Subject] = []
    for source in files.read_files(wanted.filenames, wanted.kustomize, wanted.recursive):
        with failures.collecting():
            mapping = await writing.mapping_of(there.client, source.obj, source.name)
            obj = writing.placed(source.obj, mapping, there.namespace, there.namespace_given)
            metadata = obj.get("metadata") or {}
            namespace = metadata.get("namespace", "") if mapping.namespaced else ""
            name = metadata.get("name") or ""
            if not name:
                raise connect.failure("resource name may not be empty")
            subjects.append(Subject(mapping, await there.get(mapping.gvr, name, namespace)))
    return subjects
