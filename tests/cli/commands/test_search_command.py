"""karmadactl search: against a real server with the index over objects that tests put into the caches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from karmada.cli.commands.search import row
from karmada.cli.targeting.searching import manifest
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.gvrs import DEPLOYMENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.handlers.dispatch import Place
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result as Response
from karmada.search.index.api import QueryApi
from karmada.search.index.service import SearchIndex
from tests.support.background import Background
from tests.support.cached import KINDS, EverythingAllowed, HeldCaches, pod
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.karmada_server import control_plane
from tests.support.karmadactl import Karmadactl

SEARCH = GroupResource("search.karmada.io", "search")


class Lab:
    def __init__(self, background: Background, caches: HeldCaches, index: SearchIndex, run: Karmadactl) -> None:
        self.background = background
        self.caches = caches
        self.index = index
        self.run = run

    def put(self, cluster: str, gvr: GVR, obj: Obj) -> None:
        async def put() -> None:
            self.caches.put(cluster, gvr, obj)
            await eventually(lambda: not self.index.indexing)

        self.background.run(put())

    def names(self, *words: str) -> list[str]:
        """Clusters and names of the rows of the table."""
        lines = self.run("search", *words).out.splitlines()[1:]
        return [f"{line.split()[0]}/{line.split()[3]}" for line in lines]


@asynccontextmanager
async def searched(folder: Path) -> AsyncIterator[tuple[HeldCaches, SearchIndex, Path]]:
    server = control_plane(folder)
    caches = HeldCaches()
    index = SearchIndex(caches)
    caches.add_sink(index)
    api = QueryApi(caches, index, EverythingAllowed(), RealClock())

    async def endpoint(request: Request, _resource: Resource) -> Response:
        return await api.handle(request)

    gvk = GVK("search.karmada.io", "v1alpha1", "Search")
    node = Node(type="object", preserve=True)
    server.registry.add(
        [
            Resource(
                gvk=gvk,
                plural="search",
                namespaced=False,
                verbs=("get",),
                schema=lambda: node,
                storage=gvk,
                storage_resource=SEARCH,
                custom=True,
                native=True,
            )
        ]
    )
    server.handlers.endpoints[Place(SEARCH, "")] = endpoint
    await server.start()
    try:
        yield caches, index, server.kubeconfig
    finally:
        await index.stop()
        await server.stop()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("search")
    with Background() as background:
        caches, index, kubeconfig = background.enter(searched(folder / "server"))
        made = Lab(background, caches, index, Karmadactl(folder, kubeconfig))
        for cluster in ("member1", "member2"):
            made.put(cluster, PODS, pod("web-1", "shop", labels={"app": "web"}))
        made.put("member1", PODS, pod("db-0", "data", image="postgres:16", phase="Failed"))
        made.put("member2", DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}})
        made.put("member2", NODES, {"metadata": {"name": "node-1"}})
        yield made


def test_a_table_shows_where_what_is_found_is_and_how_it_is(lab: Lab) -> None:
    header, found = lab.run("search", "postgres").out.splitlines()
    assert header.split() == ["CLUSTER", "NAMESPACE", "KIND", "NAME", "STATUS", "AGE"]
    assert found.split()[:5] == ["member1", "data", "Pod", "db-0", "Failed"]
    wide = lab.run("search", "postgres", "-o", "wide", "--no-headers").out.split(maxsplit=7)
    assert wide[6] == "v1"
    assert wide[7] == "Ready: 0/1, Restarts: 0, Node: node-1\n"


@cases(
    (["web-1"], ["member1/web-1", "member2/web-1"]),
    (["web", "1", "-C", "member2"], ["member2/web-1"]),
    (["--kind", "deploy,node"], ["member2/web", "member2/node-1"]),
    (["-l", "app=web", "-n", "shop"], ["member1/web-1", "member2/web-1"]),
    (["-n", "shop", "-A", "--kind", "pods", "--field-selector", "status.phase!=Running"], ["member1/db-0"]),
    (["--kind=pods", "--", "-postgres"], ["member1/web-1", "member2/web-1"]),
    (["--kind=pods", "--", "shop", "-member2"], ["member1/web-1"]),
    (["--kind=pods", "--sort-by=.spec.containers[0].image", "-C", "member1"], ["member1/web-1", "member1/db-0"]),
    ids=" ".join,
)
def test_words_and_flags_narrow_a_search(words: list[str], expected: list[str], lab: Lab) -> None:
    assert lab.names(*words) == expected


def test_nothing_found_is_no_failure(lab: Lab) -> None:
    done = lab.run("search", "nothing-of-the-kind")
    assert (done.out, done.err) == ("", "No resources found\n")


def test_whole_objects_name_their_cluster(lab: Lab) -> None:
    for output, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        listed = load(lab.run("search", "postgres", "-o", output).out)
        assert listed["kind"] == "List"
        (found,) = listed["items"]
        assert found["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"] == "member1"
        assert found["spec"]["nodeName"] == "node-1"
    assert lab.run("search", "--kind=deploy,pods", "-C=member2", "-o=name").out == "deployment.apps/web\npod/web-1\n"


def test_a_limit_says_that_there_is_more_and_zero_is_all(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    done = lab.run("search", "--limit=2")
    assert len(done.out.splitlines()) == 3
    assert done.err == "These are the first 2: use --limit to see more, or search for less.\n"
    monkeypatch.setattr("karmada.cli.targeting.searching.PAGE", 2)
    assert len(lab.names("--limit=0")) == 5
    assert len(lab.names("--limit=3")) == 3


@cases(
    (["--limit=-1"], "error: --limit must not be negative\n"),
    (["-o", "nonsense"], 'error: unable to match a printer suitable for the output format "nonsense"'),
    (["--watch", "--sort-by=.x"], "error: --watch and --sort-by cannot be used together\n"),
    (["--owner=web"], 'Error from server (BadRequest): owner: "web" must be KIND/NAME'),
    (["-C", "member9"], "error: nothing of member9 is cached (cached: member1, member2): see the status of"),
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_cannot_be_searched_is_said_in_one_line(words: list[str], error: str, lab: Lab) -> None:
    done = lab.run("search", *words, check=False)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(error)
    assert done.err.count("\n") == 1


def test_a_kind_that_no_registry_selects_comes_with_the_manifest_to_apply(lab: Lab) -> None:
    done = lab.run("search", "--kind", "svc", check=False)
    assert done.code == 1
    text, _, applied = done.err.partition("\n\n")
    assert text == "error: no ResourceRegistry selects svc (cached: Deployment, Node, Pod). Apply one:"
    registry = yaml.safe_load(applied)
    assert registry["metadata"]["name"] == "service"
    assert registry["spec"]["resourceSelectors"] == [{"apiVersion": "v1", "kind": "Service"}]


def test_without_any_registry_there_is_an_example(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    none: dict[GVR, Kind] = {}
    monkeypatch.setattr(lab.caches, "kinds", none)
    done = lab.run("search", "web", check=False)
    text, _, applied = done.err.partition("\n\n")
    assert text == "error: nothing is cached: there is no ResourceRegistry. Apply one, for example:"
    assert yaml.safe_load(applied)["kind"] == "ResourceRegistry"
    monkeypatch.setattr(lab.caches, "kinds", KINDS)


def test_a_manifest_selects_its_kinds_in_all_clusters() -> None:
    made = yaml.safe_load(manifest([("v1", "Pod"), ("apps/v1", "Deployment")]))
    assert made["metadata"]["name"] == "pod-deployment"
    assert made["spec"]["targetCluster"] == {}
    assert len(made["spec"]["resourceSelectors"]) == 2


def test_a_watch_shows_what_is_there_and_then_what_changes(lab: Lab) -> None:
    watching = lab.run.start("search", "watched", "--watch")
    assert watching.stdout is not None
    line = watching.stdout.readline
    try:
        lab.put("member1", PODS, pod("watched", "shop", phase="Pending"))
        assert line().split()[:3] == ["CLUSTER", "NAMESPACE", "KIND"]
        assert line().split()[:5] == ["member1", "shop", "Pod", "watched", "Pending"]
        lab.put("member1", PODS, pod("watched", "shop"))
        assert line().split()[4] == "Running"

        async def remove() -> None:
            lab.caches.remove("member1", PODS, "shop", "watched")

        lab.background.run(remove())
        assert line().split()[4] == "<gone>"
    finally:
        watching.kill()
        watching.communicate()


@cases(
    ({"status": "Running"}, ["m", "-", "Pod", "a", "Running", "-"]),
    ({"creationTimestamp": "1970-01-01T00:00:00Z", "namespace": "n"}, ["m", "n", "Pod", "a", "-", "100s"]),
)
def test_a_row_has_a_dash_for_what_is_not_known(item: Obj, expected: list[str]) -> None:
    assert row({"cluster": "m", "kind": "Pod", "name": "a", **item}, 100.0, wide=False) == expected
