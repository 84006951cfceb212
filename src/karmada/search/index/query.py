"""A search as requested: free text and exact conditions, and how both are written in SQL. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from karmada.kube.objects.base64url import b64url, b64url_decode
from karmada.kube.objects.selectors import FieldSelector, LabelSelector
from karmada.search.index.terms import FIELD, LABEL, UNREAD, Pair, owner_pair

MOST_RESULTS: Final = 500
DEFAULT_RESULTS: Final = 100
MOST_WORDS: Final = 16
SHORTEST_BEGINNING: Final = 3
"""Characters: shorter beginnings are those of too many words to look all of them up."""
_PARTS: Final = re.compile(r"[^\W_]+")
_FIELD: Final = re.compile(r"[A-Za-z]\w*(\.\w+)?")
_NEGATIONS: Final = frozenset(("!=", "notin", "!"))
_OPERATORS: Final = _NEGATIONS | {"=", "==", "in", "exists"}
_COLUMNS: Final = {"metadata.name": "o.name", "metadata.namespace": "o.namespace"}


class Position(NamedTuple):
    """Where a page ended. `score` None: its order is that of names, not of how well objects match."""

    score: float | None
    cluster: str
    kind: str
    source: int
    namespace: str
    name: str

    def encode(self) -> str:
        return b64url(orjson.dumps(list(self)))

    @classmethod
    def decode(cls, text: str) -> Position:
        """ValueError for what is none."""
        try:
            score, cluster, kind, source, namespace, name = orjson.loads(b64url_decode(text))
        except (ValueError, TypeError) as error:
            raise ValueError("it was not returned by a search") from error
        texts = all(isinstance(part, str) for part in (cluster, kind, namespace, name))
        if not texts or not isinstance(source, int) or not isinstance(score, float | None):
            raise ValueError("it was not returned by a search")
        return cls(score, cluster, kind, source, namespace, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """All that is set must hold."""

    text: str = ""
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    owner: tuple[str, str] | None = None
    """Kind and name of an owner, of which objects are owned directly or through others."""
    namespace: str = ""
    limit: int = DEFAULT_RESULTS
    after: Position | None = None


class Condition(NamedTuple):
    sql: str
    values: tuple[Any, ...]


class Matches(NamedTuple):
    """Expressions of FTS5: those that must match, and those that must not."""

    wanted: list[str]
    unwanted: list[str]


# free text


def words_of(text: str) -> Matches:
    """Return the search for a text of words, of which each must occur, as the beginning of one.

    `-word` must not occur; "quoted text" is one word. A word that the tokenizer splits (`web-1`, `nginx:1.27`) is a
    phrase: its parts must follow each other.
    """
    found = Matches([], [])
    for word in _words(text):
        without = word.startswith("-") and len(word) > 1
        plain = word[1:] if without else word
        parts = _PARTS.findall(plain)
        if parts:
            begins = "*" if len(parts[-1]) >= SHORTEST_BEGINNING else ""
            (found.unwanted if without else found.wanted).append(f'"{_quoted(plain)}"{begins}')
    return found


def says_nothing(query: Query) -> bool:
    """Return whether nothing can match: a text without a word that could occur, or a selector of nothing."""
    return bool(query.text.strip() and not any(words_of(query.text))) or query.labels.nothing


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, posix=True)
    except ValueError:  # an apostrophe or a single quote is a character like others
        return text.split()


def _quoted(word: str) -> str:
    return word.replace('"', '""').replace("\0", " ")


# exact conditions


def tokens(query: Query) -> Matches:
    """Return the tokens of labels and fields; ValueError for operators that the index cannot select by."""
    found = Matches([], [])
    for requirement in query.labels.requirements:
        key, op, values = requirement
        if op not in _OPERATORS:
            raise ValueError(f'"{requirement}" cannot be searched: use =, !=, in, notin, or the key alone')
        (found.unwanted if op in _NEGATIONS else found.wanted).append(_any(LABEL, key, values))
    for path, op, value in query.fields.requirements:
        if path not in _COLUMNS:
            negative = (op == "!=") != (value == "")
            (found.unwanted if negative else found.wanted).append(_any(FIELD, path, (value,) if value else ()))
    return found


def conditions(query: Query) -> list[Condition]:
    """On the columns of `objects o`."""
    found = []
    for path, op, value in query.fields.requirements:
        if path in _COLUMNS:
            found.append(Condition(f"{_COLUMNS[path]} {'<>' if op == '!=' else '='} ?", (value,)))
    if query.namespace:
        found.append(Condition("o.namespace = ?", (query.namespace,)))
    if query.owner is not None:
        found.append(_owned(owner_pair(*query.owner)))
    return found


def matched(query: Query) -> tuple[str, list[Condition]]:
    """Return the expression that objects must match, empty for none, and all other conditions."""
    words, exact = words_of(query.text), tokens(query)
    where = conditions(query)
    for refused in (*words.unwanted, *exact.unwanted):
        where.append(Condition("o.id NOT IN (SELECT rowid FROM words WHERE words MATCH ?)", (refused,)))
    return " AND ".join((*words.wanted, *exact.wanted)), where


def check(query: Query) -> None:
    """ValueError that names what cannot be searched by."""
    tokens(query)
    if len(_words(query.text)) > MOST_WORDS:
        raise ValueError(f"a text may have at most {MOST_WORDS} words")
    for path, _, _ in query.fields.requirements:
        if path not in _COLUMNS and (not _FIELD.fullmatch(path) or path.partition(".")[0] in UNREAD):
            raise ValueError(
                f'"{path}" cannot be searched: use metadata.name, metadata.namespace, or a field at the top of objects'
                " or one level below, such as spec.nodeName or status.phase"
            )


def _any(space: int, key: str, values: Sequence[str]) -> str:
    """Return one of the values; without any, the key with whatever value."""
    if not values:
        return f"tokens : {Pair(space, key, '').key_token} *"
    return f"tokens : ({' OR '.join(Pair(space, key, value).token for value in values)})"


def _owned(owner: Pair) -> Condition:
    """Select by the owner, or by what it owns in the same namespace of the same cluster."""
    direct = "SELECT rowid FROM words WHERE words MATCH ?"
    through = (
        "SELECT words.rowid FROM owned CROSS JOIN objects parent ON parent.id = owned.id"
        " CROSS JOIN sources above ON above.id = parent.source"
        " CROSS JOIN words ON words MATCH owner_token(above.kind, parent.name)"
        " CROSS JOIN objects child ON child.id = words.rowid AND child.namespace = parent.namespace"
        " CROSS JOIN sources below ON below.id = child.source AND below.cluster = above.cluster"
    )
    sql = f"o.id IN (WITH RECURSIVE owned (id) AS ({direct} UNION {through}) SELECT id FROM owned)"
    return Condition(sql, (owner.token,))


def marks(values: Collection[Any]) -> str:
    return ", ".join(["?"] * len(values))
