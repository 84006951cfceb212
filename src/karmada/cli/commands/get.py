"""`karmadactl get`: resources of the control plane and of its members, in one table.

Without --operation-scope, a table shows the control plane and the members; JSON and the like show only the control
plane's objects. With a scope, only that scope. A source that fails is reported at the end; the others are shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.output.table_output import TableOutput, table_flags
from karmada.cli.parsing import program
from karmada.cli.targeting import connect, scope
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.cli.output.rows import Look
    from karmada.cli.targeting.session import Session
    from karmada.cli.targeting.sources import Findings, Part, ReadRequest, Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish(TableOutput):
    """The flags of `get`."""

    words: tuple[str, ...]
    scope: str
    clusters: tuple[str, ...]
    all_namespaces: bool
    selector: str
    ignore_not_found: bool
    watch: bool
    watch_only: bool
    output_watch_events: bool
    show_labels: bool
    label_columns: tuple[str, ...]
    show_kind: bool

    @property
    def watching(self) -> bool:
        return self.watch or self.watch_only

    @property
    def includes_control_plane(self) -> bool:
        return self.scope in ("", scope.KARMADA, scope.ALL)

    @property
    def includes_members(self) -> bool:
        return self.scope in (scope.MEMBERS, scope.ALL) or (self.scope == "" and self.is_table)

    @property
    def lenient(self) -> bool:
        """Return whether no scope was given: an object that some source has is found."""
        return self.scope == ""

    def look(self, *, kinds: bool) -> Look:
        from karmada.cli.output.rows import Look

        return Look(
            wide=self.wide,
            namespaces=self.all_namespaces,
            kinds=self.show_kind or kinds,
            labels=self.show_labels,
            label_columns=self.label_columns,
            headers=not self.no_headers,
            events=self.output_watch_events,
        )


@click.command()
@click.argument("words", nargs=-1, metavar="[TYPE[,TYPE...] [NAME...] | TYPE/NAME...]")
@connect.connection_flags
@connect.namespace_flag
@scope.scope_flag(scope.KARMADA, scope.MEMBERS, scope.ALL)
@click.option("-C", "--clusters", multiple=True, help="The members to read from [all members].")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("--ignore-not-found", is_flag=True, help="Do not fail when a resource does not exist.")
@click.option("--watch-only", is_flag=True, help="Watch for changes without listing first.")
@click.option("--output-watch-events", is_flag=True, help="With --watch: show the type of each event.")
@table_flags
@click.option("--show-labels", is_flag=True, help="Show all labels in a last column.")
@click.option("-L", "--label-columns", multiple=True, help="Show these labels in columns of their own.")
@click.option("--show-kind", is_flag=True, help="Show the kind before each name.")
def get(
    words: tuple[str, ...],
    way: connect.Way,
    namespace: str,
    scope: str,
    clusters: tuple[str, ...],
    labels: str,
    output: str,
    label_columns: tuple[str, ...],
    allow_missing_template_keys: bool,
    show_managed_fields: bool,
    **flags: Any,
) -> None:
    """List resources of the control plane and of its members.

    \b
    Scope (-s):
      (not set)  the control plane and all members in one table; only the control plane with -o json and the like
      karmada    the control plane
      members    all members, or those named with -C
      all        both

    CLUSTER is where a row comes from. ADOPTION is Y for an object that the control plane manages in that cluster, N for
    one that it does not, and - for an object of the control plane itself.

    \b
    Examples:
      # Pods of all members
      karmadactl get pods
      # A Deployment in the control plane and in two members
      karmadactl get deployment web -s all -C member1,member2
      # Nodes of one member, with their zones
      karmadactl get nodes -C member1 -L topology.kubernetes.io/zone
      # Changes of the pods of an application, in all clusters
      karmadactl get pods -l app=web --watch --output-watch-events
      # The template as the control plane has it
      karmadactl get deployment web -o yaml
      # The newest pods last
      karmadactl get pods -A --sort-by=.metadata.creationTimestamp
    """
    wish = Wish(
        words=words,
        scope=_scope(scope, clusters),
        clusters=clusters,
        selector=labels,
        output=output,
        allow_missing=allow_missing_template_keys,
        managed_fields=show_managed_fields,
        label_columns=tuple(connect.commas(label_columns)),
        **flags,
    )
    _check(wish)
    if wish.watching:
        from karmada.cli.commands.get_watch import watch

        try:
            connect.run(watch(wish, way, namespace))
        except KeyboardInterrupt:
            raise click.exceptions.Exit(1) from None
        return
    connect.run(_get(wish, way, namespace))


def _scope(given: str, clusters: tuple[str, ...]) -> str:
    """Clusters that are named without a scope are meant to be looked into."""
    return scope.MEMBERS if clusters and not given else given


def _check(wish: Wish) -> None:
    """Failure for invalid combinations of flags."""
    if not wish.words:
        name = program.command()
        click.echo(
            f'You must specify the type of resource to get. Use "{name} api-resources" for a complete list of '
            "supported resources.\n",
            err=True,
        )
        raise connect.failure(f"Required resource not specified.\nSee '{name} get -h' for help and examples")
    if not wish.is_table:
        wish.printer()
        if wish.show_labels:
            raise connect.failure(f"--show-labels option cannot be used with {wish.output} printer")
    if wish.output_watch_events and not wish.watching:
        raise connect.failure("--output-watch-events option can only be used with --watch or --watch-only")
    named = len(wish.words) > 1 or "/" in wish.words[0]
    if named and wish.selector:
        raise connect.failure("name cannot be provided when a selector is specified")
    if named and wish.all_namespaces:
        raise connect.failure("a resource cannot be retrieved by name across all namespaces")
    _check_words(wish.words)


def _check_words(words: Sequence[str]) -> None:
    """Refuse arguments that make no sense whatever the server has."""
    from karmada.cli.targeting.resources import check_words

    check_words(words)


async def _get(wish: Wish, way: connect.Way, namespace: str) -> None:

    async with way.open(namespace) as control:
        request = request_of(wish, control)
        findings = await _look(wish, control, request)
    _show(wish, request, findings)
    report(findings.troubles)


def request_of(wish: Wish, control: Session) -> ReadRequest:
    from karmada.cli.targeting.sources import ReadRequest

    return ReadRequest(
        words=wish.words,
        namespace="" if wish.all_namespaces else control.namespace,
        selector=wish.selector,
        tables=wish.is_table,
        whole_objects=bool(wish.sort_by),
    )


async def _look(wish: Wish, control: Session, request: ReadRequest) -> Findings:
    from karmada.cli.targeting import sources

    understood, members, troubles = await where(wish, control, request)
    async with sources.opened(control, members) as sessions:
        findings = await sources.gather(
            control,
            sessions,
            request,
            understood,
            with_control_plane=wish.includes_control_plane,
            own_kinds_here_only=wish.lenient,
        )
    findings.troubles = await sources.settled(control, [*findings.troubles, *troubles], wish.clusters)
    if wish.lenient:
        findings.forgive_absence()
    if wish.ignore_not_found:
        findings.troubles = [t for t in findings.troubles if not (t.absent and request.named and t.key is not None)]
    return findings


async def where(wish: Wish, control: Session, request: ReadRequest) -> tuple[Any, list[str], list[Trouble]]:
    """Return the targets as the control plane resolves them, and the members to read from, fetched concurrently.

    If members were not requested explicitly and may not be listed, that is reported and the rest is shown.
    """
    from karmada.cli.targeting import sources
    from karmada.kube.objects.errors import Forbidden

    if not wish.includes_members:
        return await sources.guess(control, request), [], []
    guessing = asyncio.ensure_future(sources.guess(control, request))
    try:
        members = await sources.members_of(control, wish.clusters, optional=wish.lenient)
        return await guessing, members, []
    except Forbidden as error:
        if not wish.lenient:
            raise
        return await guessing, [], [sources.trouble_of(control, error)]
    finally:
        guessing.cancel()


# output


def _show(wish: Wish, request: ReadRequest, findings: Findings) -> None:
    if not wish.is_table:
        click.echo(_documents(wish, findings), nl=False)
        return
    from karmada.cli.output.rows import render, tables_of

    tables = tables_of(findings.parts)
    if wish.sort_by:
        from karmada.cli.output.sorting import sorted_by

        for table in tables:
            table.rows = sorted_by(wish.sort_by, table.rows, lambda row: row.object)
    text = render(tables, wish.look(kinds=len(tables) > 1))
    click.echo(text, nl=False)
    if not text and not findings.troubles and not (wish.ignore_not_found and request.named):
        click.echo(_nothing(wish, request, findings), err=True)


def _nothing(wish: Wish, request: ReadRequest, findings: Findings) -> str:
    if wish.scope == scope.MEMBERS and not findings.members:
        return "No member Clusters found in Karmada control plane"
    namespaced = any(part.target.mapping.namespaced for part in findings.parts)
    if namespaced and request.namespace:
        return f"No resources found in {request.namespace} namespace."
    return "No resources found"


def _documents(wish: Wish, findings: Findings) -> str:
    """Return a document for every source, except for columns, which have one header."""
    printer = wish.printer()
    by_source: dict[str, list[Part]] = {}
    for part in findings.parts:
        key = "" if wish.output.startswith("custom-columns") else part.source
        by_source.setdefault(key, []).append(part)
    return "".join(printer(document(parts, wish.sort_by)) for parts in by_source.values())


def document(parts: Sequence[Part], sort_by: str = "") -> Obj:
    """Return a single object by itself; everything else as a list."""
    if len(parts) == 1 and parts[0].target.name:
        return parts[0].answer
    items: list[Obj] = []
    for part in parts:
        found = part.answer.get("items")
        items += found if isinstance(found, list) and not part.target.name else [part.answer]
    if sort_by:
        from karmada.cli.output.sorting import sorted_by

        items = sorted_by(sort_by, items, lambda item: item)
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def report(troubles: Sequence[Trouble]) -> None:
    """Failure with all of them, each once, if there are any."""
    lines = list(dict.fromkeys(map(str, troubles)))
    if len(lines) == 1:
        raise connect.failure(lines[0])
    if lines:
        raise connect.Failure("\n".join(lines))
