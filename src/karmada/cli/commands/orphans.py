"""`karmadactl orphans`: objects in members that a control plane has made and no Work carries any more.

Whatever the control plane writes into a member has a label, and an annotation that names its Work. Where that Work, or
the manifest in it, is missing, the control plane does not know the object: its state was restored from before the
object was made, or somebody deleted the Work past the controllers. Nobody deletes such objects, so here they are found.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.controllers.works import Identity
    from karmada.kube.client.discovery import Catalog, Mapping
    from karmada.kube.objects.types import Obj

_TYPES_AT_ONCE = 8
_COLUMNS = ["CLUSTER", "NAMESPACE", "NAME", "WORK", "AGE"]


class Orphan(NamedTuple):
    cluster: str
    namespace: str
    name: str
    """With its type, as a command line takes it: deployment.apps/web."""
    work: str
    created: str


@click.command()
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="json or yaml.")
@connect.connection_flags
def orphans(clusters: tuple[str, ...], output: str | None, way: connect.Way) -> None:
    """List objects in clusters that the control plane has made and does not know any more.

    They are left when the control plane is restored from a state of before they were made. Nothing deletes them: delete
    them yourself, or apply them to the control plane again with a policy that takes them over
    (conflictResolution: Overwrite).

    \b
    Examples:
      karmadactl orphans                    # in all clusters
      karmadactl orphans member1 member2
      karmadactl orphans -o json
      kubectl --context member1 delete deployment.apps/old -n shop   # with the cluster's own kubeconfig
    """
    found, failures = connect.run(_search(clusters, way))
    if output:
        from karmada.prediction.scheduling import formatted

        click.echo(formatted([orphan._asdict() for orphan in found], output))
    elif found:
        click.echo(_table(found), nl=False)
    elif not failures:
        click.echo("No orphans found", err=True)
    for cluster, message in failures.items():
        click.echo(f"error: cluster({cluster}): {message}", err=True)
    if failures:
        raise SystemExit(1)


async def _search(clusters: tuple[str, ...], way: connect.Way) -> tuple[list[Orphan], dict[str, str]]:
    from karmada.cli.targeting import session

    async with way.open() as control:
        names = await session.chosen_members(control, clusters)

        async def in_member(member: Session) -> list[Orphan]:
            return await _orphans(control, member)

        named = connect.commas(clusters)
        results, failures = await session.from_each(control, names, in_member, named=named, warnings=False)
    return sorted(orphan for found in results.values() for orphan in found), failures


async def _orphans(control: Session, member: Session) -> list[Orphan]:
    """Return those of one member; its Works are read last, so that what is made meanwhile is known."""
    managed = await _managed(member)
    carried = await _carried(control, member.name) if managed else set()
    return [_orphan(member.name, mapping, obj) for mapping, obj in managed if _identity(mapping, obj) not in carried]


async def _managed(member: Session) -> list[tuple[Mapping, Obj]]:
    """Return what the control plane has made in a member; what the member's controllers made of it names no Work."""
    from karmada.api import well_known
    from karmada.kube.objects.meta import annotations, is_deleting
    from karmada.kube.objects.shapes import METADATA

    limit, selector = asyncio.Semaphore(_TYPES_AT_ONCE), f"{well_known.MANAGED}={well_known.TRUE}"
    namespace = well_known.execution_namespace(member.name)

    async def of(mapping: Mapping) -> list[tuple[Mapping, Obj]]:
        async with limit:
            listed = await member.client.list_all(mapping.gvr, label_selector=selector, shape=METADATA)
        return [
            (mapping, obj)
            for obj in listed.items
            if annotations(obj).get(well_known.WORK_NAMESPACE) == namespace and not is_deleting(obj)
        ]

    found = await asyncio.gather(*map(of, _types(await member.client.mapper.catalog())))
    return [each for some in found for each in some]


def _types(catalog: Catalog) -> list[Mapping]:
    """Return what can be listed and deleted, in one version of each, deprecated ones too."""
    return [mapping for mapping in catalog.by_group_resource.values() if mapping.allows("list", "delete")]


async def _carried(control: Session, cluster: str) -> set[Identity]:
    """Return the identities of all manifests in the cluster's Works."""
    from karmada.api.well_known import execution_namespace
    from karmada.api.work import Work
    from karmada.controllers.works import identity_of, manifests_of

    pages = control.client.pages(Work.gvr, execution_namespace(cluster))
    return {identity_of(manifest) async for page in pages for work in page.items for manifest in manifests_of(work)}


def _identity(mapping: Mapping, obj: Obj) -> Identity:
    from karmada.kube.objects.meta import key

    return mapping.gvk.group, mapping.gvk.kind, *key(obj)


def _orphan(cluster: str, mapping: Mapping, obj: Obj) -> Orphan:
    from karmada.api.well_known import WORK_NAME
    from karmada.kube.objects.meta import annotations

    resource, metadata = mapping.gvr.group_resource, obj["metadata"]
    kind = mapping.singular or mapping.gvk.kind.lower()
    typed = f"{kind}.{resource.group}" if resource.group else kind
    return Orphan(
        cluster=cluster,
        namespace=metadata.get("namespace", ""),
        name=f"{typed}/{metadata['name']}",
        work=annotations(obj).get(WORK_NAME, ""),
        created=metadata.get("creationTimestamp", ""),
    )


def _table(found: list[Orphan]) -> str:
    from karmada.cli.output.columns import columns
    from karmada.kube.objects.clock import SYSTEM
    from karmada.kube.objects.times import human_duration, parse_time

    now = SYSTEM.now()
    rows = [[*orphan[:4], human_duration(now - parse_time(orphan.created))] for orphan in found]
    return columns([_COLUMNS, *rows])
