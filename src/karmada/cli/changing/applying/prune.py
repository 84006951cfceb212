"""--prune: delete objects that were applied before and are no longer in the files.

It covers the namespaces of the applied objects and the default kinds or those of the allowlist. Objects without the
last-applied annotation are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.applying.item import Item
from karmada.cli.changing.writing import last_applied
from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.cli.targeting.session import Session
from karmada.kube.client.discovery import Mapping, NoMatch
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_DEFAULT = (
    "core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod",
    "core/v1/ReplicationController", "core/v1/Secret", "core/v1/Service", "batch/v1/Job", "batch/v1/CronJob",
    "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment", "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
)  # fmt: skip
_DEFAULT_UNSCOPED = ("core/v1/Namespace", "core/v1/PersistentVolume")
_DEPRECATED = (
    "Deprecated: {program} apply will no longer prune non-namespaced resources by default when used with the "
    "--namespace flag in a future release. To preserve the current behaviour, list the resources you want to target "
    "explicitly in the --prune-allowlist flag."
)
_CASCADES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


def check_allowlist(words: Sequence[str]) -> list[GVK]:
    """group/version/kind, each; the core group is called core."""
    kinds = []
    for word in (part for given in words for part in given.split(",")):
        parts = word.split("/")
        if len(parts) != 3:
            raise connect.failure(f"invalid GroupVersionKind format: {word}, please follow <group/version/kind>")
        group, version, kind = parts
        kinds.append(GVK("" if group == "core" else group, version, kind))
    return kinds


async def prune(
    session: Session,
    flags: dict[str, Any],
    items: Sequence[Item],
    applied: Sequence[Obj],
    report: Callable[[Obj], None],
    failures: writing.Failures,
) -> None:
    mappings = await _mappings(session, check_allowlist(flags["prune_allowlist"]))
    keep = {obj["metadata"].get("uid") for obj in applied}
    namespaces = sorted({item.namespace for item in items if item.namespace})
    for mapping in mappings:
        for namespace in namespaces if mapping.namespaced else ("",):
            with failures.collecting():
                listed = await session.client.list_all(mapping.gvr, namespace, label_selector=flags["selector"])
                for obj in listed.items:
                    if last_applied(obj) and obj["metadata"].get("uid") not in keep:
                        typed = {"apiVersion": mapping.gvk.api_version, "kind": mapping.gvk.kind, **obj}
                        await _delete(session, flags, mapping, typed)
                        report(typed)


async def _mappings(session: Session, kinds: Sequence[GVK]) -> list[Mapping]:
    mapper = session.client.mapper
    if not kinds:
        click.echo(f"Warning: {_DEPRECATED.format(program=program.command())}", err=True)
        kinds = check_allowlist((*_DEFAULT, *_DEFAULT_UNSCOPED))
    found = []
    for kind in kinds:
        try:
            found.append(await mapper.mapping(kind))
        except NoMatch as error:
            raise connect.failure(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"') from error
    return sorted(found, key=lambda mapping: not mapping.namespaced)


async def _delete(session: Session, flags: dict[str, Any], mapping: Mapping, obj: Obj) -> None:
    if flags["dry_run"] == writing.CLIENT:
        return
    metadata = obj["metadata"]
    try:
        await session.client.delete(
            mapping.gvr,
            metadata["name"],
            metadata.get("namespace", "") if mapping.namespaced else "",
            propagation=_CASCADES[flags["cascade"]],
            grace_period=flags["grace_period"] if flags["grace_period"] >= 0 else None,
            dry_run=flags["dry_run"] == writing.SERVER,
        )
    except NotFound:
        return
