"""`karmadactl search`: objects of all members by what is in them, from the caches of ResourceRegistries.

One request to the control plane, whatever the number of clusters; no member is read. The order is by how well objects
match, or by cluster, kind, namespace and name.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.output.table_output import TableOutput, table_flags
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.searching import Search
    from karmada.kube.objects.types import Obj

DEFAULT_LIMIT = 100
_COLUMNS = ("CLUSTER", "NAMESPACE", "KIND", "NAME", "STATUS", "AGE")
_WIDE = ("APIVERSION", "DETAILS")
_GONE = "<gone>"


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT...]")
@connect.connection_flags
@click.option("-n", "--namespace", default="", help="Only in this namespace [all namespaces].")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces, also where -n is set before.")
@click.option("-C", "--clusters", multiple=True, help="Only in these members [all members].")
@click.option("--kind", "kinds", multiple=True, help="Only these kinds, e.g. deploy,pods.")
@click.option(
    "--field-selector", default="", help="Only with these fields, e.g. status.phase!=Running,spec.nodeName=n1."
)
@click.option("--owner", default="", help="Only what this object owns, directly or not: KIND/NAME.")
@click.option("--limit", type=int, default=DEFAULT_LIMIT, show_default=True, help="Show at most so many; 0 for all.")
@table_flags
def search(
    text: tuple[str, ...],
    way: connect.Way,
    namespace: str,
    all_namespaces: bool,
    clusters: tuple[str, ...],
    kinds: tuple[str, ...],
    labels: str,
    field_selector: str,
    owner: str,
    limit: int,
    watch: bool,
    allow_missing_template_keys: bool,
    show_managed_fields: bool,
    output: str,
    template: str,
    no_headers: bool,
    sort_by: str,
) -> None:
    """Find objects of all members by name, label, image, status message, annotation, node or address.

    All words of the text must occur, each as the beginning of a word; -word must not occur, after --. Objects whose
    names match come first. What is searched are the caches of ResourceRegistries: kinds and clusters that none of
    them selects are not found.

    \b
    Examples:
      # Everything that has to do with "checkout", in all clusters
      karmadactl search checkout
      # Who runs this image?
      karmadactl search nginx:1.27
      # Pods that cannot pull their images, of one cluster
      karmadactl search ImagePullBackOff --kind pods -C member1
      # Pods that do not run, the oldest first
      karmadactl search --kind pods --field-selector status.phase!=Running --sort-by=.metadata.creationTimestamp
      # What a Deployment owns: ReplicaSets, and their pods
      karmadactl search --owner deploy/web -n shop
      # Everything with a label, but what is in the cluster member2
      karmadactl search -l app=web -- -member2
      # As YAML, and while it changes
      karmadactl search checkout -o yaml
      karmadactl search checkout --watch
    """
    from karmada.cli.targeting.searching import Search

    look = TableOutput(
        output=output,
        template=template,
        allow_missing=allow_missing_template_keys,
        managed_fields=show_managed_fields,
        no_headers=no_headers,
        sort_by=sort_by,
    )
    if not look.is_table:
        look.printer()  # a wrong format is reported before anything is requested
    if limit < 0:
        raise connect.failure("--limit must not be negative")
    if sort_by and watch:
        raise connect.failure("--watch and --sort-by cannot be used together")
    wanted = Search(
        text=" ".join(text),
        selector=labels,
        field_selector=field_selector,
        owner=owner,
        kinds=tuple(connect.commas(kinds)),
        clusters=tuple(connect.commas(clusters)),
        namespace="" if all_namespaces else namespace,
        whole=bool(sort_by) or (not look.is_table and output != "name"),
    )
    try:
        connect.run((_watch if watch else _list)(wanted, limit, look, way))
    except KeyboardInterrupt:
        if not watch:
            raise
        raise click.exceptions.Exit(1) from None


async def _list(wanted: Search, limit: int, look: TableOutput, way: connect.Way) -> None:
    from karmada.cli.output.columns import columns
    from karmada.cli.targeting import searching

    async with way.open() as control:
        found = await searching.search(control, wanted, limit)
    items = _sorted(found.items, look.sort_by)
    if not look.is_table:
        print_ = look.printer()
        listed = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [_object(item) for item in items]}
        click.echo(print_(listed), nl=False)
    elif items:
        rows = [row(item, time.time(), wide=look.wide) for item in items]
        click.echo(columns(rows if look.no_headers else [header(wide=look.wide), *rows]), nl=False)
    else:
        click.echo("No resources found", err=True)
    if found.more:
        click.echo(f"These are the first {len(items)}: use --limit to see more, or search for less.", err=True)
    if found.indexing:
        click.echo("The index is still being filled: something may be missing.", err=True)


def _sorted(items: list[Obj], path: str) -> list[Obj]:
    from karmada.cli.output.sorting import sorted_by

    return sorted_by(path, items, _object) if path else items


async def _watch(wanted: Search, limit: int, look: TableOutput, way: connect.Way) -> None:
    from karmada.cli.output.columns import Growing
    from karmada.cli.targeting import searching

    growing, wide = Growing(), look.wide
    print_ = None if look.is_table else look.printer()
    shown: dict[tuple[Any, ...], Obj] = {}
    first = not look.no_headers
    async with way.open() as control:
        async for kind, item in searching.watch(control, wanted, limit):
            key = tuple(item.get(part) for part in ("cluster", "apiVersion", "kind", "namespace", "name"))
            if shown.get(key) == item:
                continue  # a watch that is resumed begins with what is there
            shown[key] = item
            if kind == "DELETED":
                del shown[key]
                item = {**item, "status": _GONE}
            if print_ is not None:
                click.echo(print_(_object(item)), nl=False)
                continue
            lines = [header(wide=wide)] if first else []
            first = False
            click.echo(growing.lines([*lines, row(item, time.time(), wide=wide)]), nl=False)


# rows


def header(*, wide: bool) -> list[str]:
    return [*_COLUMNS, *(_WIDE if wide else ())]


def row(item: Obj, now: float, *, wide: bool) -> list[str]:
    from karmada.cli.output.columns import first_line

    cells = [
        item["cluster"],
        item.get("namespace") or "-",
        item["kind"],
        item["name"],
        item.get("status") or "-",
        _age(item.get("creationTimestamp"), now),
    ]
    if wide:
        cells += [item["apiVersion"], item.get("details") or "-"]
    return [first_line(str(cell)) for cell in cells]


def _age(created: Any, now: float) -> str:
    from karmada.kube.objects.times import human_duration, parse_time

    try:
        return human_duration(now - parse_time(created))
    except (TypeError, ValueError):
        return "-"


def _object(item: Obj) -> Obj:
    """Return the whole object, or as much as the result says of it."""
    if "object" in item:
        whole: Obj = item["object"]
        return whole
    metadata = {"name": item["name"], "namespace": item.get("namespace") or None}
    metadata = {key: value for key, value in metadata.items() if value}
    annotations = {"resource.karmada.io/cached-from-cluster": item["cluster"]}
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "metadata": {**metadata, "annotations": annotations},
    }
