"""The objects that a command changes: by name, by selector, or from files.

Named objects are fetched concurrently, listed ones type by type. What cannot be fetched is added to the failures, and
the rest is processed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karmada.cli.changing import writing
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, read_files

if TYPE_CHECKING:
    from karmada.cli.targeting.resources import Target
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.discovery import Mapping
    from karmada.kube.objects.types import Obj


NOTHING_GIVEN = """You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'"""
NO_NAME = "resource(s) were provided, but no name was specified"


def given_sources(words: Sequence[str], flags: dict[str, Any]) -> list[Source]:
    """Return the objects of the files that the flags name; Failure when there are neither those nor words."""
    sources = read_files(flags["filenames"], flags["kustomize"], flags["recursive"])
    if not words and not sources:
        raise connect.failure(NOTHING_GIVEN)
    return sources


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of a type; nothing set means those that are named."""

    all: bool = False
    all_namespaces: bool = False
    labels: str = ""
    fields: str = ""

    def __bool__(self) -> bool:
        return self.all or bool(self.labels) or bool(self.fields)


@dataclass(frozen=True, slots=True)
class Chosen:
    """An object of the server (empty when it was not looked at); `source` is the file that named it."""

    mapping: Mapping
    namespace: str
    name: str
    obj: Obj
    source: str = ""


async def choose(
    session: Session,
    words: Sequence[str],
    sources: Sequence[Source],
    selection: Selection,
    failures: writing.Failures,
    *,
    subresource: str = "",
    fetch: bool = True,
) -> list[Chosen]:
    """Return the selected objects, in the order of the request; without `fetch`, named ones are not read."""
    import asyncio

    if sources:
        if words:
            raise connect.failure(
                "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
            )
        return await _from_sources(session, sources, failures, subresource, fetch)
    targets = await _targets(session, words, selection)
    found = await asyncio.gather(
        *(_found(session, target, selection, subresource, fetch) for target in targets), return_exceptions=True
    )
    chosen: list[Chosen] = []
    for answer in found:
        with failures.collecting():
            if isinstance(answer, BaseException):
                raise answer
            chosen += answer
    return chosen


async def _targets(session: Session, words: Sequence[str], selection: Selection) -> list[Target]:
    from karmada.cli.targeting.resources import parse_targets

    namespace = "" if selection.all_namespaces else session.namespace
    targets = parse_targets(await session.client.mapper.catalog(), words, namespace)
    named = any(target.name for target in targets)
    if named and selection:
        raise connect.failure("name cannot be provided when a selector is specified")
    if not named and not selection:
        raise connect.failure(NO_NAME)
    if named and any(not target.namespace and target.mapping.namespaced for target in targets):
        raise connect.failure("a resource cannot be retrieved by name across all namespaces")
    return targets


async def _found(session: Session, target: Target, selection: Selection, subresource: str, fetch: bool) -> list[Chosen]:
    client, mapping = session.client, target.mapping
    if target.name:
        obj: Obj = {}
        if fetch:
            obj = await session.get(mapping.gvr, target.name, target.namespace, subresource=subresource)
        return [Chosen(mapping, target.namespace, target.name, obj)]
    listed = await client.list_all(
        mapping.gvr, target.namespace, label_selector=selection.labels, field_selector=selection.fields
    )
    return [Chosen(mapping, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], obj) for obj in listed.items]


async def _from_sources(
    session: Session, sources: Sequence[Source], failures: writing.Failures, subresource: str, fetch: bool
) -> list[Chosen]:
    chosen = []
    for source in sources:
        with failures.collecting():
            chosen.append(await _from_source(session, source, subresource, fetch))
    return chosen


async def _from_source(session: Session, source: Source, subresource: str, fetch: bool) -> Chosen:
    mapping = await writing.mapping_of(session.client, source.obj, source.name)
    placed = writing.placed(source.obj, mapping, session.namespace, session.namespace_given)
    metadata = placed.get("metadata") or {}
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "") if mapping.namespaced else ""
    if not name:
        raise connect.failure(f'resource name may not be empty, in "{source.name}"')
    obj = placed
    if fetch:
        obj = await session.get(mapping.gvr, name, namespace, subresource=subresource)
    return Chosen(mapping, namespace, name, obj, source.name)
