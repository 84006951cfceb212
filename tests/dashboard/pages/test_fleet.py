"""The fleet as it is shown: regions, sums, the order of tables, and a page that a thousand clusters fit on."""

from __future__ import annotations

from karmada.api.cluster import Cluster
from karmada.dashboard.pages.fleet import CARDS, UNPLACED, fleet_of, ordered, tile_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane
from tests.support.objects import kube_object


def cluster(name: str, *, ready: str = "True", cpu: str = "0", **spec: object) -> Obj:
    return kube_object(Cluster.gvk.api_version, "Cluster", name) | {
        "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", **spec},
        "status": {
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": f"2026-01-01T00:00:0{len(name)}Z"}],
            "nodeSummary": {"totalNum": 3, "readyNum": 2},
            "resourceSummary": {"allocatable": {"cpu": "10"}, "allocated": {"cpu": cpu}},
        },
    }


def test_clusters_are_grouped_by_provider_region_and_zone_and_those_without_come_last() -> None:
    fleet = fleet_of(
        [
            cluster("a"),
            cluster("b", provider="p", region="r2"),
            cluster("c", provider="p", region="r1", zones=["z2"]),
            cluster("d", provider="p", region="r1", zones=["z1"]),
        ]
    )
    assert [(region.provider, region.name) for region in fleet.regions] == [("p", "r1"), ("p", "r2"), ("", UNPLACED)]
    assert [(zone, [tile.name for tile in tiles]) for zone, tiles in fleet.regions[0].zones] == [
        ("z1", ["d"]),
        ("z2", ["c"]),
    ]


def test_sums_are_over_all_clusters_and_states_are_counted_the_worst_first() -> None:
    fleet = fleet_of([cluster("a", cpu="5"), cluster("b", ready="False", cpu="2500m"), cluster("c")])
    assert (fleet.cpu.used, fleet.cpu.total, fleet.cpu.share) == (7.5, 30.0, 25)
    assert (fleet.nodes_ready, fleet.nodes) == (6, 9)
    assert [(kind, count) for kind, _, count in fleet.states] == [("bad", 1), ("good", 2)]


def test_what_needs_attention_is_the_worst_and_the_latest() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    fleet = fleet_of(
        [cluster("w", taints=taints), cluster("ok"), cluster("b", ready="False"), cluster("bad", ready="False")]
    )
    assert [tile.name for tile in fleet.attention] == ["bad", "b", "w"]


@cases(
    ("name", ["a", "b", "c"]),
    ("cpu", ["c", "a", "b"]),
    ("state", ["b", "a", "c"]),
    ("region", ["b", "c", "a"]),
    ("nonsense", ["a", "b", "c"]),
)
def test_tables_are_sorted_the_fullest_and_the_worst_first(by: str, names: list[str]) -> None:
    found = [cluster("a", cpu="1", region="z"), cluster("b", ready="False"), cluster("c", cpu="9", region="y")]
    assert [tile.name for tile in ordered([tile_of(one) for one in found], by)] == names


def test_many_clusters_are_cells_and_few_are_cards() -> None:
    assert not fleet_of([cluster(f"c{number}") for number in range(CARDS)]).dense
    assert fleet_of([cluster(f"c{number}") for number in range(CARDS + 1)]).dense


async def test_the_page_shows_a_dense_fleet_as_cells_with_what_needs_attention_above(plane: DashboardPlane) -> None:
    for number in range(CARDS + 1):
        wanted = cluster(f"c{number}", ready="False" if number == 7 else "True")
        made = await plane.client.create(Cluster.gvr, wanted)
        await plane.client.update_status(Cluster.gvr, {**made, "status": wanted["status"]})
    await plane.browser.log_in()
    page = (await plane.browser.get("/")).text
    assert page.count('class="cell good') >= CARDS
    assert "Needs attention" in page
    assert 'aria-label="c7, Not ready"' in page
    table = (await plane.browser.get("/?view=table&sort=state")).text
    assert table.index("/clusters/c7") < table.index("/clusters/c0")
    assert 'aria-sort="descending"' in table
