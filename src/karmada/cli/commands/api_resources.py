"""`karmadactl api-resources`: the resource types of a server, with their short names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect
from karmada.cli.targeting.scope import chosen_cluster, one_cluster_flags

if TYPE_CHECKING:
    from karmada.kube.client.discovery import Catalog, Mapping

_HEADER = ("NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND")
_WIDE = ("VERBS", "CATEGORIES")
_OUTPUTS = ("", "wide", "name", "json", "yaml")


@click.command("api-resources")
@connect.connection_flags
@one_cluster_flags
@click.option("--api-group", default="", help="Only resources of this group.")
@click.option(
    "--namespaced", is_flag=True, default=True, help="Only namespaced resources; with =false, only cluster-scoped ones."
)
@click.option("--verbs", multiple=True, help="Only resources that allow all of these verbs.")
@click.option("--categories", multiple=True, help="Only resources in all of these categories.")
@click.option("--sort-by", default="", help="Sort by name or kind [group, then name].")
@click.option("--cached", is_flag=True, help="Accepted for compatibility; discovery is never cached.")
@click.option("-o", "--output", default="", help="Output format: wide, name, json or yaml.")
@click.option("--no-headers", is_flag=True, help="Do not print the header.")
def api_resources(
    way: connect.Way,
    scope: str,
    cluster: str,
    api_group: str,
    namespaced: bool,
    verbs: tuple[str, ...],
    categories: tuple[str, ...],
    sort_by: str,
    cached: bool,  # noqa: ARG001
    output: str,
    no_headers: bool,
) -> None:
    """List the resource types that the control plane or a member serves.

    \b
    Examples:
      # All resource types, with their short names
      karmadactl api-resources
      # Karmada's own resource types
      karmadactl api-resources --categories karmada-io
      # What can be listed in a namespace of a member
      karmadactl api-resources --verbs=list --namespaced -o name -s members --cluster member1
    """
    if output not in _OUTPUTS:
        raise connect.failure(f"--output {output} is not available")
    if sort_by not in ("", "name", "kind"):
        raise connect.failure("--sort-by accepts only name or kind")
    catalog = connect.run(_read(way, chosen_cluster(scope, cluster)))
    found = chosen(
        catalog,
        group=api_group if _given("api_group") else None,
        namespaced=namespaced if _given("namespaced") else None,
        verbs=connect.commas(verbs),
        categories=connect.commas(categories),
    )
    found.sort(key=_order(sort_by))
    click.echo(_shown(found, output, no_headers), nl=False)
    if catalog.failed:
        failed = ", ".join(f"{version}: {why}" for version, why in catalog.failed.items())
        raise connect.failure(f"unable to retrieve the complete list of server APIs: {failed}")


def _given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


async def _read(way: connect.Way, cluster: str) -> Catalog:

    async with way.server(cluster) as session:
        return await session.client.mapper.catalog()


def chosen(
    catalog: Catalog,
    *,
    group: str | None = None,
    namespaced: bool | None = None,
    verbs: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> list[Mapping]:
    """Return the preferred versions of the matching resources; None matches any."""
    return [
        mapping
        for mapping in catalog.by_group_resource.values()
        if mapping.verbs
        and (group is None or mapping.gvr.group == group)
        and (namespaced is None or mapping.namespaced == namespaced)
        and mapping.allows(*verbs)
        and set(categories) <= set(mapping.categories)
    ]


def _order(sort_by: str) -> Any:
    if sort_by == "name":
        return lambda mapping: mapping.gvr.resource
    if sort_by == "kind":
        return lambda mapping: mapping.gvk.kind
    return lambda mapping: (mapping.gvr.group, mapping.gvr.resource)


def _shown(mappings: list[Mapping], output: str, no_headers: bool) -> str:
    if output == "name":
        return "".join(f"{mapping.gvr.group_resource}\n" for mapping in mappings)
    if output in ("json", "yaml"):
        from karmada.cli.output.printing import printer

        return printer(output)(_document(mappings))
    from karmada.cli.output.columns import columns

    wide = output == "wide"
    rows = [_row(mapping, wide) for mapping in mappings]
    if not no_headers:
        rows.insert(0, [*_HEADER, *(_WIDE if wide else ())])
    return columns(rows)


def _row(mapping: Mapping, wide: bool) -> list[str]:
    row = [
        mapping.gvr.resource,
        ",".join(mapping.short_names),
        mapping.gvr.api_version,
        "true" if mapping.namespaced else "false",
        mapping.gvk.kind,
    ]
    return [*row, ",".join(mapping.verbs), ",".join(mapping.categories)] if wide else row


def _document(mappings: list[Mapping]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "groupVersion": "",
        "kind": "APIResourceList",
        "resources": [_resource(mapping) for mapping in mappings],
    }


def _resource(mapping: Mapping) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": mapping.gvr.resource,
        "singularName": mapping.singular,
        "namespaced": mapping.namespaced,
        "group": mapping.gvr.group,
        "version": mapping.gvr.version,
        "kind": mapping.gvk.kind,
        "verbs": list(mapping.verbs),
        "shortNames": list(mapping.short_names),
        "categories": list(mapping.categories),
    }
    always = ("singularName", "namespaced", "verbs")
    return {key: value for key, value in resource.items() if value or key in always}
