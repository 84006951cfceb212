"""The fleet: all clusters by provider, region and zone, with their health and how full they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api.cluster import Cluster
from karmada.dashboard import reads
from karmada.dashboard.pages.cluster_state import BAD, ORDER, WARN, State, Usage, state_of, usage_of, zones_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.objects.types import Obj

CARDS: Final = 60
"""Up to so many clusters are shown as cards; more of them as cells, which stay readable for thousands."""
ATTENTION: Final = 5
"""How many of those that need attention are listed above the cells."""
UNPLACED: Final = "No region"
_STATES: Final = {"bad": "Not ready", "warn": "Tainted", "idle": "Joining or leaving", "good": "Ready"}
_SORTS: Final = ("name", "state", "region", "cpu", "memory", "nodes")


@dataclass(frozen=True, slots=True)
class Tile:
    """A cluster on the map."""

    name: str
    state: State
    provider: str
    region: str
    zone: str
    mode: str
    version: str
    nodes_ready: int
    nodes: int
    cpu: Usage
    memory: Usage
    pods: Usage

    @property
    def level(self) -> int:
        """Return how full it is, from 0 to 4: the larger of CPU and memory."""
        return min(4, max(self.cpu.share, self.memory.share) // 20)

    @property
    def words(self) -> str:
        """Return the words that a filter finds it by."""
        return " ".join((self.name, self.provider, self.region, self.zone, self.state.label, self.version))


@dataclass(frozen=True, slots=True)
class Region:
    provider: str
    name: str
    zones: Sequence[tuple[str, Sequence[Tile]]]
    """Tiles by zone; one without a name when the clusters have none."""
    states: Mapping[str, int]
    cpu: Usage
    memory: Usage

    @property
    def count(self) -> int:
        return sum(len(tiles) for _, tiles in self.zones)


@dataclass(frozen=True, slots=True)
class Fleet:
    tiles: Sequence[Tile]
    regions: Sequence[Region]
    states: Sequence[tuple[str, str, int]]
    """Kind, label and how many: the worst first, only those that occur."""
    nodes_ready: int
    nodes: int
    cpu: Usage
    memory: Usage
    pods: Usage

    @property
    def dense(self) -> bool:
        return len(self.tiles) > CARDS

    @property
    def attention(self) -> list[Tile]:
        """Return the tiles that are not as they should be, the worst and the latest first."""
        return [
            tile
            for kind in (BAD, WARN)
            for tile in sorted(self.tiles, key=lambda one: one.state.since or "", reverse=True)
            if tile.state.kind == kind
        ]


def tile_of(cluster: Obj) -> Tile:
    spec, status = cluster["spec"], cluster.get("status") or {}
    nodes = status.get("nodeSummary") or {}
    return Tile(
        name=cluster["metadata"]["name"],
        state=state_of(cluster),
        provider=spec.get("provider") or "",
        region=spec.get("region") or "",
        zone=", ".join(zones_of(cluster)),
        mode=spec.get("syncMode") or "",
        version=status.get("kubernetesVersion") or "",
        nodes_ready=nodes.get("readyNum") or 0,
        nodes=nodes.get("totalNum") or 0,
        cpu=usage_of(cluster, "cpu"),
        memory=usage_of(cluster, "memory"),
        pods=usage_of(cluster, "pods"),
    )


def fleet_of(clusters: Iterable[Obj]) -> Fleet:
    tiles = [tile_of(cluster) for cluster in clusters]
    grouped: dict[tuple[str, str], list[Tile]] = {}
    for tile in tiles:
        grouped.setdefault((tile.provider, tile.region), []).append(tile)
    counts = Counter(tile.state.kind for tile in tiles)
    return Fleet(
        tiles=tiles,
        regions=[_region(*where, grouped[where]) for where in sorted(grouped, key=lambda w: (not any(w), w))],
        states=[(kind, _STATES[kind], counts[kind]) for kind in ORDER if counts[kind]],
        nodes_ready=sum(tile.nodes_ready for tile in tiles),
        nodes=sum(tile.nodes for tile in tiles),
        cpu=_sum(tile.cpu for tile in tiles),
        memory=_sum(tile.memory for tile in tiles),
        pods=_sum(tile.pods for tile in tiles),
    )


def _region(provider: str, name: str, tiles: Sequence[Tile]) -> Region:
    zones: dict[str, list[Tile]] = {}
    for tile in tiles:
        zones.setdefault(tile.zone, []).append(tile)
    return Region(
        provider=provider,
        name=name or (UNPLACED if not provider else ""),
        zones=sorted(zones.items()),
        states=Counter(tile.state.kind for tile in tiles),
        cpu=_sum(tile.cpu for tile in tiles),
        memory=_sum(tile.memory for tile in tiles),
    )


def _sum(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


def ordered(tiles: Sequence[Tile], by: str) -> list[Tile]:
    """Return tiles for the table: the fullest and the worst first, names upwards."""
    keys = {
        "state": lambda tile: (ORDER.index(tile.state.kind), tile.name),
        "region": lambda tile: (tile.provider, tile.region, tile.zone, tile.name),
        "cpu": lambda tile: (-tile.cpu.share, tile.name),
        "memory": lambda tile: (-tile.memory.share, tile.name),
        "nodes": lambda tile: (-tile.nodes, tile.name),
    }
    return sorted(tiles, key=keys.get(by, lambda tile: (tile.name,)))


async def _data(view: View) -> dict[str, Any]:
    listing = await view.clusters()
    fleet = fleet_of(listing.items)
    by = view.query.get("sort", "name")
    kind = "table" if view.query.get("view") == "table" else "map"
    return {
        "fleet": fleet,
        "attention": fleet.attention if fleet.dense and kind == "map" else [],
        "most_attention": ATTENTION,
        "kind": kind,
        "sort": by if by in _SORTS else "name",
        "rows": ordered(fleet.tiles, by) if kind == "table" else (),
        "part_url": f"/fleet?view={kind}&sort={by if by in _SORTS else 'name'}",
        "topics": [reads.topic(Cluster.gvr, since=listing.resource_version)],
    }


async def show(view: View) -> web.Response:
    return view.page("fleet.html", title="Fleet", **await _data(view))


async def part(view: View) -> web.Response:
    return view.part("partials/fleet.html", **await _data(view))


PAGE = PageModule(
    routes=(Route("GET", "/", show), Route("GET", "/fleet", part)),
    nav=("/", "Fleet"),
)
