"""Searches on the index: what is found, in which order, page by page, within what may be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS
from karmada.kube.objects.selectors import parse_fields, parse_labels
from karmada.kube.objects.types import Obj
from karmada.search.index import searching
from karmada.search.index.database import Database, Named
from karmada.search.index.query import Position, Query, check
from karmada.search.index.searching import namespaces, search
from karmada.search.index.terms import words
from karmada.search.pending import Source
from tests.support.cached import KINDS, pod
from tests.support.cases import cases

ONE, TWO = Source("member1", PODS), Source("member2", PODS)


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name}]}


def fill(database: Database, source: Source, *objects: Obj) -> None:
    kind = KINDS[source.gvr].gvk.kind
    named = [
        (Named(obj["metadata"]["namespace"], obj["metadata"]["name"]), words({"kind": kind, **obj}, source.cluster))
        for obj in objects
    ]
    database.apply(source, kind, named, ())


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    fill(
        database,
        ONE,
        pod("web-1", "shop", labels={"app": "web", "tier": "front"}),
        pod("web-2", "shop", labels={"app": "web"}, phase="Failed"),
        pod("db-0", "data", labels={"app": "db", "tier": "back"}, image="postgres:16", annotations={"note": "web"}),
    )
    fill(database, TWO, pod("web-1", "shop", labels={"app": "web"}, **owned("ReplicaSet", "web-5d")))
    replica_set = {"metadata": {"name": "web-5d", "namespace": "shop", **owned("Deployment", "web")}}
    database.apply(
        Source("member2", DEPLOYMENTS._replace(resource="replicasets")),
        "ReplicaSet",
        [(Named("shop", "web-5d"), words({"kind": "ReplicaSet", **replica_set}, "member2"))],
        (),
    )
    yield database
    database.close()


def found(database: Database, query: Query, **scope: frozenset[str]) -> list[str]:
    sources = {n: scope.get(source.cluster) for n, (source, _) in database.sources().items()}
    return [f"{hit.source.cluster}/{hit.name}" for hit in search(database, query, sources).hits]


ALL = ["member1/db-0", "member1/web-1", "member1/web-2", "member2/web-1", "member2/web-5d"]


@cases(
    (Query(), ALL),
    (Query(text="web-1"), ["member1/web-1", "member2/web-1"]),
    (Query(text="WEB-1 member2"), ["member2/web-1"]),
    (Query(text="post"), ["member1/db-0"]),
    (Query(text="postgres:16"), ["member1/db-0"]),
    (Query(text="postgres:17"), []),
    (Query(text="failed"), ["member1/web-2"]),
    (Query(text="web -failed -member2"), ["member1/db-0", "member1/web-1"]),
    (Query(text='"web 1"'), ["member1/web-1", "member2/web-1"]),
    (Query(text="-web"), []),
    (Query(text="-failed", namespace="shop"), ["member1/web-1", "member2/web-1", "member2/web-5d"]),
    (Query(text="da"), []),
    (Query(text="dat"), ["member1/db-0"]),
    (Query(text="postgres:1"), []),
    (Query(text="web_1"), ["member1/web-1", "member2/web-1"]),
    (Query(text="!!!"), []),
    (Query(text="nothing"), []),
    (Query(namespace="data"), ["member1/db-0"]),
    (Query(labels=parse_labels("app=web")), ["member1/web-1", "member1/web-2", "member2/web-1"]),
    (Query(labels=parse_labels("app in (db,none)")), ["member1/db-0"]),
    (Query(labels=parse_labels("tier")), ["member1/db-0", "member1/web-1"]),
    (Query(labels=parse_labels("!tier,app")), ["member1/web-2", "member2/web-1"]),
    (Query(labels=parse_labels("app!=web")), ["member1/db-0", "member2/web-5d"]),
    (Query(labels=parse_labels("tier notin (front),app")), ["member1/db-0", "member1/web-2", "member2/web-1"]),
    (Query(labels=parse_labels("app=web"), text="nginx failed"), ["member1/web-2"]),
    (Query(fields=parse_fields("status.phase=Failed")), ["member1/web-2"]),
    (Query(fields=parse_fields("status.phase!=Running")), ["member1/web-2", "member2/web-5d"]),
    (Query(fields=parse_fields("spec.nodeName=")), ["member2/web-5d"]),
    (Query(fields=parse_fields("spec.nodeName!=,metadata.name=db-0")), ["member1/db-0"]),
    (Query(fields=parse_fields("metadata.namespace!=shop")), ["member1/db-0"]),
    (Query(owner=("replicaset", "web-5d")), ["member2/web-1"]),
    (Query(owner=("Deployment", "web")), ["member2/web-1", "member2/web-5d"]),
    (Query(owner=("Deployment", "other")), []),
    ids=repr,
)
def test_objects_that_meet_all_conditions_are_found(query: Query, expected: list[str], database: Database) -> None:
    assert sorted(found(database, query)) == expected


def test_without_a_text_the_order_is_by_cluster_kind_namespace_and_name(database: Database) -> None:
    assert found(database, Query()) == ALL


def test_an_object_whose_name_matches_comes_before_one_that_mentions_it(database: Database) -> None:
    assert found(database, Query(text="web"))[-1] == "member1/db-0"


def test_only_the_namespaces_that_may_be_seen_are_searched(database: Database) -> None:
    assert found(database, Query(text="web"), member1=frozenset(("data",)), member2=frozenset()) == ["member1/db-0"]


def test_the_namespaces_in_which_objects_match_are_listed(database: Database) -> None:
    number = database.source_id(ONE)
    assert number is not None
    assert sorted(namespaces(database, Query(text="postgres"), [number])) == [(number, "data")]


@pytest.mark.parametrize("ranked", [searching.RANKED, 0], ids=["ranked", "by name"])
@pytest.mark.parametrize("text", ["", "web"])
def test_pages_together_are_the_whole_in_its_order(
    database: Database, text: str, ranked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "RANKED", ranked)
    query = Query(text=text, limit=2)
    scope = dict.fromkeys(database.sources())
    names = []
    while True:
        page = search(database, query, scope)
        names += [hit.id for hit in page.hits]
        if page.next is None:
            break
        query = replace(query, after=Position.decode(page.next.encode()))
    assert names == [hit.id for hit in search(database, Query(text=text), scope).hits]


def test_what_changed_is_found_as_it_is_now_and_what_is_gone_is_not_found(database: Database) -> None:
    fill(database, ONE, pod("web-1", "shop", labels={"app": "api"}, image="httpd"))
    database.apply(ONE, "Pod", (), [Named("shop", "web-2"), Named("shop", "never-there")])
    assert found(database, Query(labels=parse_labels("app=web"))) == ["member2/web-1"]
    assert found(database, Query(text="httpd")) == ["member1/web-1"]
    assert found(database, Query(text="failed")) == []


@cases("", "bm9uc2Vuc2U", "!", "WzFd", "W251bGwsMSwyLDMsNCw1XQ")
def test_a_position_that_no_search_returned_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not returned by a search"):
        Position.decode(text)


@cases(
    (
        Query(fields=parse_fields("spec.template.spec.nodeName=x")),
        '"spec.template.spec.nodeName" cannot be searched',
    ),
    (Query(fields=parse_fields("data.password=x")), '"data.password" cannot be searched'),
    (Query(fields=parse_fields("metadata.uid=x")), '"metadata.uid" cannot be searched'),
    (Query(text="a " * 17), "a text may have at most 16 words"),
    (Query(labels=parse_labels("weight>3")), '"weight>3" cannot be searched: use ='),
)
def test_what_the_index_cannot_select_by_is_refused_by_name(query: Query, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        check(query)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_text_breaks_the_syntax_of_the_index(text: str) -> None:
    database = _empty()
    assert len(search(database, Query(text=text), {1: None}).hits) <= 1


_LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "c"]))
_PHASES = st.sampled_from(["Running", "Failed", ""])
_REQUIREMENT = st.one_of(
    st.builds("{}={}".format, st.sampled_from(["app", "tier"]), st.sampled_from("abc")),
    st.builds("{}!={}".format, st.sampled_from(["app", "tier"]), st.sampled_from("abc")),
    st.builds("{} in (a,{})".format, st.sampled_from(["app", "tier"]), st.sampled_from("bc")),
    st.builds("{} notin (a,{})".format, st.sampled_from(["app", "tier"]), st.sampled_from("bc")),
    st.sampled_from(["app", "!app", "tier", "!tier"]),
)
_FIELDS = st.builds("status.phase{}{}".format, st.sampled_from(["=", "!="]), _PHASES)


@given(
    st.lists(st.tuples(_LABELS, _PHASES), max_size=8),
    st.lists(_REQUIREMENT, max_size=3).map(",".join),
    st.lists(_FIELDS, max_size=2).map(",".join),
)
@settings(max_examples=60, deadline=None)
def test_selectors_select_what_they_select_in_lists(
    objects: list[tuple[dict[str, str], str]], labels: str, fields: str
) -> None:
    database = Database()
    pods = [pod(f"pod-{n}", labels=given, phase=phase) for n, (given, phase) in enumerate(objects)]
    fill(database, ONE, *pods)
    query = Query(labels=parse_labels(labels), fields=parse_fields(fields))
    expected = [
        f"member1/pod-{n}"
        for n, (given, phase) in enumerate(objects)
        if query.labels.matches(given) and query.fields.matches({"status.phase": phase}.__getitem__)
    ]
    assert found(database, query) == expected
    database.close()


_made: list[Database] = []


def _empty() -> Database:
    if not _made:
        _made.append(Database())
        fill(_made[0], ONE, pod("web-1"))
    return _made[0]
