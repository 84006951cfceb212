"""Read from several servers at once: the control plane, members behind its proxy, or all of them.

Types are resolved by the control plane's discovery, and members are read with the same resource at once: one round trip
instead of three. Only a member that does not serve it has its own discovery read. Categories, and types that the
control plane does not serve, are resolved in every member.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from karmada.cli.targeting import connect, session
from karmada.cli.targeting.resources import Target, parse_targets
from karmada.cli.targeting.session import Session
from karmada.cli.targeting.unreachable import is_unreachable, settle
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.client.discovery import Mapping

PAGE = 500
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The objects to read from each source; `namespace` "" means all."""

    words: Sequence[str]
    namespace: str
    selector: str = ""
    tables: bool = True
    whole_objects: bool = False
    """True if the rows of tables bring more than the metadata of their objects."""
    field_selector: str = ""

    @property
    def named(self) -> bool:
        return len(self.words) > 1 or "/" in self.words[0]


class Part(NamedTuple):
    """The response of one source for one target: a Table, a list, or a single object."""

    source: str
    target: Target
    answer: Obj


class Trouble(NamedTuple):
    """An error of a source; `absent` when it does not have the object or type."""

    source: str
    message: str
    absent: bool = False
    key: object = None
    """Subject of the trouble; None: everything."""
    unreachable: bool = False

    def __str__(self) -> str:
        return f"cluster({self.source}): {self.message}"


@dataclass(slots=True)
class Findings:
    parts: list[Part] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    members: int = 0

    def forgive_absence(self) -> None:
        """Drop errors for an object that another source has; one that none has is reported once."""
        had = {key_of(part.target) for part in self.parts}
        reported: set[object] = set()
        kept = []
        for trouble in self.troubles:
            if trouble.absent:
                forgiven = trouble.key in had if trouble.key is not None else bool(had)
                if forgiven or trouble.key in reported:
                    continue
                reported.add(trouble.key)
            kept.append(trouble)
        self.troubles = kept


def key_of(target: Target) -> object:
    return target.mapping.gvr.group_resource, target.name


@asynccontextmanager
async def opened(control: Session, clusters: Sequence[str]) -> AsyncIterator[list[Session]]:
    """Sessions to these members, until the end of the block."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(session.through_proxy(control, cluster)) for cluster in clusters]


async def members_of(control: Session, names: Sequence[str], *, optional: bool) -> list[str]:
    """Return the selected members; with `optional` there may be no such thing as members."""
    from karmada.kube.objects.errors import NotFound

    try:
        return await session.chosen_members(control, names)
    except NotFound:
        if optional:
            return []
        raise


async def guess(control: Session, request: ReadRequest) -> list[Target] | connect.Failure:
    """Return the targets as the control plane understands the words, or what it does not understand."""
    try:
        return await targets_at(control, request)
    except connect.Failure as failure:
        return failure


async def gather(
    control: Session,
    members: Sequence[Session],
    request: ReadRequest,
    understood: list[Target] | connect.Failure,
    *,
    with_control_plane: bool,
    own_kinds_here_only: bool = False,
) -> Findings:
    """Return the results and errors of all sources, in order."""
    lookups = []
    if with_control_plane:
        lookups.append(_look(control, request, understood, trusted=True))
    elsewhere = understood if isinstance(understood, list) and _plain(request, understood) else None
    if own_kinds_here_only and elsewhere is not None:
        elsewhere = [target for target in elsewhere if not is_own(target.mapping)]
    lookups += [_look(member, request, elsewhere, trusted=False) for member in members if elsewhere != []]
    findings = Findings(members=len(members))
    for found in await asyncio.gather(*lookups):
        for item in found:
            if isinstance(item, Part):
                findings.parts.append(item)
            else:
                findings.troubles.append(item)
    return findings


def is_own(mapping: Mapping) -> bool:
    """Return whether it is one of the control plane's own kinds, which members know nothing of."""
    return mapping.gvr.group.endswith(".karmada.io")


def _plain(request: ReadRequest, targets: list[Target]) -> bool:
    """Return whether every word names one type, rather than a category."""
    if any("/" in word for word in request.words):
        return True
    names = max(1, len(request.words) - 1)
    return len(targets) == len(request.words[0].split(",")) * names


async def targets_at(source: Session, request: ReadRequest) -> list[Target]:
    """Return the targets as this server understands the words."""
    return parse_targets(await source.client.mapper.catalog(), request.words, request.namespace)


async def _look(
    source: Session, request: ReadRequest, targets: list[Target] | connect.Failure | None, *, trusted: bool
) -> list[Part | Trouble]:
    if isinstance(targets, connect.Failure):
        return [trouble_of(source, targets)]
    if targets is None:
        try:
            targets = await targets_at(source, request)
        except Exception as error:  # noqa: BLE001 - connect.reason raises what is not one of its own
            return [trouble_of(source, error)]
        trusted = True
    return await asyncio.gather(*(_one(source, request, target, trusted) for target in targets))


async def _one(source: Session, request: ReadRequest, target: Target, trusted: bool) -> Part | Trouble:
    try:
        try:
            return Part(source.name, target, await fetch(source, request, target))
        except Exception as error:
            if trusted or not not_served(error):
                raise
            target = await own_version(source, target)
            return Part(source.name, target, await fetch(source, request, target))
    except Exception as error:  # noqa: BLE001 - connect.reason raises what is not one of its own
        return trouble_of(source, error, key_of(target))


def trouble_of(source: Session, error: Exception, key: object = None) -> Trouble:
    from karmada.kube.objects.errors import NotFound

    absent = isinstance(error, NotFound) or (
        isinstance(error, connect.Failure) and "doesn't have a resource type" in error.message
    )
    return Trouble(source.name, connect.reason(error), absent, key, is_unreachable(error))


async def settled(control: Session, troubles: Sequence[Trouble], named: Sequence[str]) -> list[Trouble]:
    """Return the troubles, with one for each unreachable member, and none for one that need not be reached."""
    silent = {one.source: one.message for one in troubles if one.unreachable and one.source != control.name}
    failures = await settle(control, silent, connect.commas(named))
    kept: list[Trouble] = []
    for one in troubles:
        if one.source not in silent or not one.unreachable:
            kept.append(one)
        elif one.source in failures:
            kept.append(Trouble(one.source, failures.pop(one.source)))
    return kept


def not_served(error: Exception) -> bool:
    """Return a path that is not there, rather than an object: nobody says of what kind or name it would be."""
    from karmada.kube.objects.errors import NotFound

    return isinstance(error, NotFound) and not error.details.get("name")


async def own_version(source: Session, target: Target) -> Target:
    """Return the resource in the version that this server has."""
    catalog = await source.client.mapper.catalog()
    wanted = target.mapping.gvr
    found = catalog.by_group_resource.get(wanted.group_resource) or catalog.named(wanted.resource)
    if found is None or found.gvr == wanted:
        raise connect.failure(f'the server doesn\'t have a resource type "{wanted.resource}"')
    return Target(found, target.namespace if found.namespaced else "", target.name)


# requests


async def fetch(source: Session, request: ReadRequest, target: Target) -> Obj:
    from karmada.kube.client.client import JSON

    accept = TABLE if request.tables else JSON
    if target.name:
        from karmada.kube.objects.errors import NotFound

        try:
            return await _get(source, request, target, accept)
        except NotFound as error:
            raise await source.what_is_missing(error, target.namespace) from None
    return await _list(source, request, target, accept)


def path_of(target: Target) -> str:
    from karmada.kube.client.client import resource_path

    return resource_path(target.mapping.gvr, target.namespace, target.name)


def selection(request: ReadRequest) -> dict[str, str]:
    """Return the query of a list or a watch."""
    query = {"labelSelector": request.selector, "fieldSelector": request.field_selector}
    if request.whole_objects and request.tables:
        query["includeObject"] = "Object"
    return {key: value for key, value in query.items() if value}


async def _get(source: Session, request: ReadRequest, target: Target, accept: str) -> Obj:
    query = {"includeObject": "Object"} if request.whole_objects and request.tables else {}
    return await _call(source, target, query, accept)


async def _list(source: Session, request: ReadRequest, target: Target, accept: str) -> Obj:
    """Return all pages as one; from the start without pages when the snapshot they are of is gone."""
    from karmada.kube.objects.errors import Expired, Gone

    query = selection(request)
    page = await _call(source, target, {**query, "limit": str(PAGE)}, accept)
    content = "rows" if page.get("kind") == "Table" else "items"
    found: list[Obj] = [*(page.get(content) or ())]
    answer = {**page, content: found}
    while token := (page.get("metadata") or {}).get("continue"):
        try:
            page = await _call(source, target, {**query, "limit": str(PAGE), "continue": token}, accept)
        except (Expired, Gone):
            return await _call(source, target, query, accept)
        found += page.get(content) or ()
    return answer


async def _call(source: Session, target: Target, query: dict[str, str], accept: str) -> Obj:
    from karmada.kube.client.limits import LIST_BYTES
    from karmada.kube.client.transport import Call, ConnectionFailed

    call = Call("GET", path_of(target), query, accept=accept, most=LIST_BYTES)
    answer = await source.client.transport.call(call)
    if not isinstance(answer, dict):
        raise ConnectionFailed(f"{source.config.server}: the response is not a JSON object")
    return answer
