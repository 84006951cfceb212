"""`karmadactl get --watch`: list, then watch, all sources at once.

Every source is listed once and then watched by a task of its own; their events go through one queue to the printer. A
watch that ends is resumed at its resourceVersion; when that has expired, the source is listed again and the differences
are printed as events. A source that cannot be watched is reported and dropped; the others continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import click

from karmada.cli.commands.get import report, request_of, where
from karmada.cli.output.columns import Growing
from karmada.cli.output.rows import Table
from karmada.cli.targeting import connect
from karmada.cli.targeting.sources import (
    TABLE,
    ReadRequest,
    Trouble,
    fetch,
    is_own,
    key_of,
    not_served,
    opened,
    own_version,
    path_of,
    selection,
    settled,
    targets_at,
    trouble_of,
)
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.cli.commands.get import Wish
    from karmada.cli.targeting.resources import Target
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.transport import WatchEvent

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SINGLE = "you may only specify a single resource type"


class Change(NamedTuple):
    """A watch event: its type, and its Table or object."""

    source: str
    type: str
    answer: Obj


@dataclass(slots=True)
class Source:
    session: Session
    target: Target
    version: str = ""
    """The resourceVersion up to which events were printed."""
    known: dict[tuple[str, str], Obj] = field(default_factory=dict)
    """Every object of it, or its row."""


async def watch(wish: Wish, way: connect.Way, namespace: str) -> None:
    """Run until it is interrupted or no source is left."""
    async with way.open(namespace) as control:
        requested = request_of(wish, control)
        understood, clusters, refused = await where(wish, control, requested)
        async with opened(control, clusters) as members:
            found, troubles = await _sources(wish, control, members, requested, understood)
            troubles += refused
            request = _by_fields(requested, found)
            writer = Writer(wish, found)
            listed = await asyncio.gather(*(_list(source, request) for source in found), return_exceptions=True)
            alive: list[Source] = []
            first: list[Change] = []
            for source, answer in zip(found, listed, strict=True):
                if isinstance(answer, Exception):
                    troubles.append(trouble_of(source.session, answer))
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    alive.append(source)
                    first.append(Change(source.session.name, "ADDED", answer))
            troubles = await settled(control, troubles, wish.clusters)
            if wish.lenient:
                troubles = _reportable(troubles, found=bool(alive))
            _check_named(requested, alive, troubles)
            writer.write([] if wish.watch_only else first)
            if not alive:
                report(troubles)
            for trouble in troubles:
                click.echo(str(trouble), err=True)
            await _follow_all(alive, request, writer)
    raise connect.failure("no source is left to watch")


async def _sources(
    wish: Wish,
    control: Session,
    members: list[Session],
    request: ReadRequest,
    understood: list[Target] | connect.Failure,
) -> tuple[list[Source], list[Trouble]]:
    """Return the sources, each with its single target."""
    troubles: list[Trouble] = []
    found: list[Source] = []
    places = [control, *members] if wish.includes_control_plane else members
    meanings = await asyncio.gather(*(_understood(session, control, request, understood) for session in places))
    for session, targets in zip(places, meanings, strict=True):
        if isinstance(targets, Trouble):
            troubles.append(targets)
            continue
        if len({target.mapping.gvr for target in targets}) > 1:
            raise connect.failure(_SINGLE)
        if len(targets) > 1:
            raise connect.failure(
                "watch is only supported on individual resources and resource collections - "
                f"{len(targets)} resources were found"
            )
        if wish.lenient and session is not control and is_own(targets[0].mapping):
            continue
        found.append(Source(session, targets[0]))
    return found, troubles


def _reportable(troubles: list[Trouble], *, found: bool) -> list[Trouble]:
    """Return the targets of a type, which may be missing in some sources; one that none has is reported once."""
    absent = [trouble for trouble in troubles if trouble.absent]
    forgiven = absent if found else absent[1:]
    return [trouble for trouble in troubles if trouble not in forgiven]


async def _understood(
    session: Session, control: Session, request: ReadRequest, by_control_plane: list[Target] | connect.Failure
) -> list[Target] | Trouble:
    """Return what the words mean there: what they mean to the control plane, unless that does not know."""
    if not isinstance(by_control_plane, connect.Failure):
        return by_control_plane
    if session is control:
        return trouble_of(session, by_control_plane)
    try:
        return await targets_at(session, request)
    except Exception as error:  # noqa: BLE001 - trouble_of raises what is not one of its own
        return trouble_of(session, error)


def _by_fields(request: ReadRequest, sources: list[Source]) -> ReadRequest:
    """Return the request for one object as a list with that name in it."""
    name = next((source.target.name for source in sources), "")
    for source in sources:
        source.target = replace(source.target, name="")
    return replace(request, field_selector=f"metadata.name={name}") if name else request


def _check_named(request: ReadRequest, alive: list[Source], troubles: list[Trouble]) -> None:
    """Failure when no source has the named object."""
    if not request.named or any(source.known for source in alive):
        return
    name = request.words[0].rpartition("/")[2] if "/" in request.words[0] else request.words[1]
    for source in alive:
        gvr = source.target.mapping.gvr.group_resource
        troubles.append(Trouble(source.session.name, f'{gvr} "{name}" not found', True, key_of(source.target)))
        break
    report(troubles)


# following


async def _follow_all(sources: list[Source], request: ReadRequest, writer: Writer) -> None:
    changes: asyncio.Queue[Change | Trouble] = asyncio.Queue(maxsize=1000)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_follow(source, request, changes)) for source in sources]
        left = len(tasks)
        while left:
            item = await changes.get()
            if isinstance(item, Trouble):
                click.echo(str(item), err=True)
                left -= item.key == "over"
            else:
                writer.write([item])


async def _follow(source: Source, request: ReadRequest, changes: asyncio.Queue[Change | Trouble]) -> None:
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError, Expired, Gone

    pause = _FIRST_PAUSE
    while True:
        failed: Exception | None = None
        try:
            async for item in _changes(source, request):
                await changes.put(item)
                pause = _FIRST_PAUSE
        except (Expired, Gone):
            source.version = ""
        except ConnectionFailed as error:
            failed = error
        except ApiError as error:
            if error.http_code < 500 and error.http_code != 429:
                await changes.put(Trouble(source.session.name, connect.reason(error), key="over"))
                return
            failed = error
        if failed is not None:
            if pause == _FIRST_PAUSE * 2:  # not at the first time: streams break
                await changes.put(Trouble(source.session.name, connect.reason(failed)))
            pause = min(pause * 2, _LONGEST_PAUSE)
        await asyncio.sleep(pause)


async def _changes(source: Source, request: ReadRequest) -> AsyncIterator[Change]:
    """Yield what happens from where the source stands, until the stream ends."""
    from karmada.kube.client.client import JSON
    from karmada.kube.client.transport import Call

    if not source.version:
        async for item in _caught_up(source, request):
            yield item
    query = {"watch": "true", "resourceVersion": source.version, **selection(request)}
    call = Call("GET", path_of(source.target), query, accept=TABLE if request.tables else JSON)
    async for event in source.session.client.transport.watch(call):
        if event.type != "BOOKMARK":
            _remember(source, event)
            yield Change(source.session.name, event.type, event.object)


def _remember(source: Source, event: WatchEvent) -> None:
    for item in _items(event.object):
        source.version = _version(item) or source.version
        if event.type == "DELETED":
            source.known.pop(_key(item), None)
        else:
            source.known[_key(item)] = item


async def _list(source: Source, request: ReadRequest) -> Obj:
    """Return everything there is, which is what is known from now on."""
    from karmada.kube.objects.errors import NotFound

    try:
        answer = await fetch(source.session, request, source.target)
    except NotFound as error:
        if not not_served(error):
            raise
        source.target = await own_version(source.session, source.target)
        answer = await fetch(source.session, request, source.target)
    source.version = str((answer.get("metadata") or {}).get("resourceVersion") or "")
    source.known = {_key(item): item for item in _items(answer)}
    return answer


async def _caught_up(source: Source, request: ReadRequest) -> AsyncIterator[Change]:
    """Yield what is different now from what was known."""
    before = source.known
    answer = await _list(source, request)
    changed: dict[str, list[Obj]] = {"ADDED": [], "MODIFIED": []}
    for key, item in source.known.items():
        if key not in before:
            changed["ADDED"].append(item)
        elif _version(before[key]) != _version(item):
            changed["MODIFIED"].append(item)
    changed["DELETED"] = [item for key, item in before.items() if key not in source.known]
    content = "rows" if answer.get("kind") == "Table" else "items"
    for type_, items in changed.items():
        if items:
            yield Change(source.session.name, type_, {**answer, content: items})


def _items(answer: Obj) -> list[Obj]:
    """Return the rows of a Table, the items of a list, or the object itself."""
    content = answer.get("rows" if answer.get("kind") == "Table" else "items")
    return content or [] if isinstance(content, list) or answer.get("kind") == "Table" else [answer]


def _metadata(item: Obj) -> Obj:
    """Return the metadata of an object, or of the object of a row."""
    obj = item.get("object") or {} if "cells" in item else item
    return obj.get("metadata") or {}


def _key(item: Obj) -> tuple[str, str]:
    metadata = _metadata(item)
    return metadata.get("namespace", ""), metadata.get("name", "")


def _version(item: Obj) -> str:
    return str(_metadata(item).get("resourceVersion", ""))


# writing


class Writer:
    def __init__(self, wish: Wish, sources: list[Source]) -> None:
        self._wish = wish
        self._look = wish.look(kinds=False)
        self._table = Table(sources[0].target.mapping) if sources else None
        self._growing = Growing()
        self._header = True
        self._print = None if wish.is_table else wish.printer()

    def write(self, changes: list[Change]) -> None:
        text = self._rows(changes) if self._print is None else self._documents(changes)
        if text:
            click.echo(text, nl=False)

    def _rows(self, changes: list[Change]) -> str:
        if self._table is None:
            return ""
        added = [(item, self._table.add(item.source, item.answer)) for item in changes]
        self._table.rows.clear()
        lines = [
            self._table.line(row, self._look, watched=True, event=item.type) for item, rows in added for row in rows
        ]
        if lines and self._header:
            self._header = False
            header = self._table.header(self._look)
            lines = [header, *lines] if header else lines
        return self._growing.lines(lines)

    def _documents(self, changes: list[Change]) -> str:
        assert self._print is not None
        texts = []
        for item in changes:
            for obj in _items(item.answer):
                shown = {"object": obj, "type": item.type} if self._wish.output_watch_events else obj
                texts.append(self._print(shown))
        return "".join(texts)
