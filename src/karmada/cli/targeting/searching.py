"""Searches over the caches of all members: requests to `search/query`, page by page, and watches of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj

PATH = "/apis/search.karmada.io/v1alpha1/search/query"
PAGE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_NOT_SERVED = "this control plane serves no search: karmada-search is not installed, or disabled with --disable-search"
_REGISTRY = """\
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata:
  name: {name}
spec:
  targetCluster: {{}} # all clusters
  resourceSelectors:
{selectors}"""
_SELECTOR = "  - apiVersion: {}\n    kind: {}\n"


@dataclass(frozen=True, slots=True)
class Search:
    text: str = ""
    selector: str = ""
    field_selector: str = ""
    owner: str = ""
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    namespace: str = ""
    whole: bool = False
    """Objects, not only what a table shows of them."""

    def query(self) -> dict[str, str]:
        given = {
            "q": self.text,
            "labelSelector": self.selector,
            "fieldSelector": self.field_selector,
            "owner": self.owner,
            "kind": ",".join(self.kinds),
            "cluster": ",".join(self.clusters),
            "namespace": self.namespace,
            "objects": "true" if self.whole else "",
        }
        return {key: value for key, value in given.items() if value}


@dataclass(slots=True)
class Found:
    items: list[Obj] = field(default_factory=list)
    more: bool = False
    indexing: bool = False


async def search(control: Session, wanted: Search, limit: int) -> Found:
    """As many as `limit`, 0 for all; Failure when nothing that is wanted is cached."""
    found = Found()
    query = wanted.query()
    while True:
        left = limit - len(found.items) if limit else PAGE
        answer = await _request(control, {**query, "limit": str(min(left, PAGE))})
        await _check_coverage(control, answer, wanted.clusters)
        found.items += answer["items"]
        found.indexing = answer.get("indexing", False)
        token = (answer.get("metadata") or {}).get("continue", "")
        found.more = bool(token)
        if not token or (limit and len(found.items) >= limit):
            return found
        query["continue"] = token


async def watch(control: Session, wanted: Search, limit: int) -> AsyncIterator[tuple[str, Obj]]:
    """Types of events and what they are about, without end; what is there comes first, also after a break."""
    from karmada.kube.client.transport import Call, ConnectionFailed

    await _check_coverage(control, await _request(control, {**wanted.query(), "limit": "1"}), wanted.clusters)
    call = Call("GET", PATH, {**wanted.query(), "limit": str(min(limit or PAGE, PAGE)), "watch": "true"})
    pause = _FIRST_PAUSE
    while True:
        try:
            async for event in control.client.transport.watch(call):
                pause = _FIRST_PAUSE
                yield event.type, event.object
        except ConnectionFailed as error:
            if pause > _FIRST_PAUSE:  # not at the first time: streams break
                click.echo(f"warning: the watch is resumed: {connect.reason(error)}", err=True)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _request(control: Session, query: dict[str, str]) -> Obj:
    from karmada.kube.objects.errors import NotFound

    try:
        answer: Obj = await control.client.raw("GET", PATH, query=query)
    except NotFound:
        raise connect.failure(_NOT_SERVED) from None
    return answer


# what is cached


async def _check_coverage(control: Session, answer: Obj, clusters: Sequence[str]) -> None:
    """Failure, with what to apply, for kinds and clusters that no registry selects."""
    registered = answer.get("registered") or []
    unknown = answer.get("unregistered") or []
    if not registered:
        kinds = await _named(control, unknown) or [("v1", "Pod"), ("apps/v1", "Deployment")]
        raise connect.failure(
            f"nothing is cached: there is no ResourceRegistry. Apply one, for example:\n\n{manifest(kinds)}"
        )
    if unknown:
        kinds = await _named(control, unknown)
        cached = ", ".join(sorted({each["kind"] for each in registered}))
        text = f"no ResourceRegistry selects {', '.join(unknown)} (cached: {cached})"
        raise connect.failure(f"{text}. Apply one:\n\n{manifest(kinds)}" if kinds else text)
    cached_clusters = {cluster for each in registered for cluster in each["clusters"]}
    missing = [cluster for cluster in clusters if cluster not in cached_clusters]
    if missing:
        known = ", ".join(sorted(cached_clusters)) or "none"
        raise connect.failure(
            f"nothing of {', '.join(missing)} is cached (cached: {known}): see the status of the ResourceRegistries, "
            "and whether the clusters are Ready"
        )


async def _named(control: Session, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return apiVersion and kind of what the control plane knows by these words."""
    if not words:
        return []
    catalog = await control.client.mapper.catalog()
    found = [mapping for word in words if (mapping := catalog.named(word)) is not None]
    return [(mapping.gvk.api_version, mapping.gvk.kind) for mapping in found]


def manifest(kinds: Sequence[tuple[str, str]]) -> str:
    selectors = "".join(_SELECTOR.format(*kind) for kind in kinds)
    name = "-".join(kind.lower() for _, kind in kinds)[:63].rstrip("-")
    return _REGISTRY.format(name=name, selectors=selectors).rstrip()
