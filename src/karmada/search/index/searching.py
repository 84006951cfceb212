"""Runs a query on the index, within what the caller may see.

Objects are ordered by how well they match. Where that means little (no text, or more than RANKED objects match, which
would take long to compare) the order is by cluster, kind, namespace and name, and the walk ends with the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from karmada.search.index.database import Database
from karmada.search.index.query import Condition, Position, Query, marks, matched, says_nothing
from karmada.search.pending import Source

RANKED: Final = 5_000
_WEIGHTS: Final = "10.0, 4.0, 4.0, 3.0, 1.0, 1.0, 0.0"
"""Weights of the columns of `words`: name, images, labels, messages, place, rest, tokens."""


class Hit(NamedTuple):
    id: int
    source: Source
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Page:
    hits: tuple[Hit, ...]
    next: Position | None


Scope = Mapping[int, frozenset[str] | None]
"""Sources by their ids, each with the namespaces that may be seen of it; None for all."""


def search(database: Database, query: Query, scope: Scope, ids: Sequence[int] | None = None) -> Page:
    """`ids` limits it to these objects, all of them on one page."""
    if not scope or says_nothing(query):
        return Page((), None)
    if ids is not None:
        query = replace(query, limit=len(ids), after=None)
    match, where = matched(query)
    where.append(_within(scope))
    if ids is not None:
        where.append(Condition(f"o.id IN ({marks(ids)})", tuple(ids)))
    if match and _is_ranked(database, query, match):
        return _page(database, query, *_ranked(query, match, where))
    if match:
        where.append(_matching(match))
    return _page(database, query, *_walked(query, where))


def namespaces(database: Database, query: Query, sources: Sequence[int]) -> list[tuple[int, str]]:
    """In which namespaces of these sources objects match."""
    if not sources or says_nothing(query):
        return []
    match, where = matched(query)
    where.append(_within(dict.fromkeys(sources)))
    if match:
        where.append(_matching(match))
    sql = f"SELECT DISTINCT o.source, o.namespace FROM objects o WHERE {_all(where)}"
    return database.connection.execute(sql, _values(where)).fetchall()


def _matching(match: str) -> Condition:
    return Condition("o.id IN (SELECT rowid FROM words WHERE words MATCH ?)", (match,))


def _is_ranked(database: Database, query: Query, match: str) -> bool:
    if query.after is not None:
        return query.after.score is not None
    sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    return int(database.connection.execute(sql, (match, RANKED + 1)).fetchone()[0]) <= RANKED


def _ranked(query: Query, match: str, where: list[Condition]) -> tuple[str, tuple[Any, ...]]:
    """Equal scores, which are frequent among replicas, are in the order of names."""
    order = "score, cluster, kind, source, namespace, name"
    inner = (
        f"SELECT o.id AS id, s.cluster AS cluster, s.kind AS kind, o.source AS source, o.namespace AS namespace,"
        f" o.name AS name, bm25(words, {_WEIGHTS}) AS score FROM words JOIN objects o ON o.id = words.rowid"
        f" JOIN sources s ON s.id = o.source WHERE words MATCH ? AND {_all(where)}"
    )
    after = f" WHERE ({order}) > ({marks(query.after)})" if query.after else ""
    sql = f"SELECT id, score, cluster, kind, source, namespace, name FROM ({inner}){after} ORDER BY {order} LIMIT ?"
    return sql, (match, *_values(where), *(query.after or ()), query.limit + 1)


def _walked(query: Query, where: list[Condition]) -> tuple[str, tuple[Any, ...]]:
    """CROSS JOIN keeps the order of the loops: sources, then their objects by name, which is the order wanted."""
    order = "s.cluster, s.kind, s.id, o.namespace, o.name"
    if query.after is not None:
        where = [*where, Condition(f"({order}) > ({marks(query.after[1:])})", query.after[1:])]
    sql = (
        "SELECT o.id, NULL, s.cluster, s.kind, s.id, o.namespace, o.name FROM sources s CROSS JOIN objects o"
        f" ON o.source = s.id WHERE {_all(where)} ORDER BY {order} LIMIT ?"
    )
    return sql, (*_values(where), query.limit + 1)


def _page(database: Database, query: Query, sql: str, values: tuple[Any, ...]) -> Page:
    rows = database.connection.execute(sql, values).fetchall()
    sources = database.sources()
    hits = tuple(Hit(row[0], *sources[row[4]], row[5], row[6]) for row in rows[: query.limit])
    return Page(hits, Position(*rows[query.limit - 1][1:]) if len(rows) > query.limit else None)


def _within(scope: Scope) -> Condition:
    whole = [source for source, seen in scope.items() if seen is None]
    parts = [Condition(f"+o.source IN ({marks(whole)})", tuple(whole))]
    for source, seen in scope.items():
        if seen is not None:
            parts.append(Condition(f"+o.source = ? AND o.namespace IN ({marks(seen)})", (source, *sorted(seen))))
    return Condition(f"({' OR '.join(f'({part.sql})' for part in parts)})", _values(parts))


def _all(where: Sequence[Condition]) -> str:
    return " AND ".join(condition.sql for condition in where)


def _values(where: Sequence[Condition]) -> tuple[Any, ...]:
    return tuple(value for condition in where for value in condition.values)
