"""JSONPath: what columns, scale paths and selectable fields need."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.jsonpath import JSONPathError, compile_path
from tests.support.cases import cases

OBJECT: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"a.b/c": "dotted", "plain": "x"}},
    "spec": {"replicas": 3, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}], "on": True},
    "status": {
        "conditions": [
            {"type": "Available", "status": "False"},
            {"type": "Ready", "status": "True", "weight": 2},
            {"type": "Quo'ted", "status": "Unknown"},
        ],
        "null": None,
    },
}


@cases(
    (".metadata.name", ["web"]), ("metadata.name", ["web"]), ("$.metadata.name", ["web"]),
    ("{.metadata.name}", ["web"]),
    ("$", [OBJECT]), (".", [OBJECT]), ("", [OBJECT]), ("['metadata']['name']", ["web"]),
    ('["metadata"].name', ["web"]),
    (r".metadata.labels['a\.b/c']", ["dotted"]), (".metadata['labels.plain']", ["x"]),
    (r".metadata.labels.a\.b/c", ["dotted"]),
    ("$['metadata'].['name']", ["web"]),
    (".spec.ports[0].port", [80]), (".spec.ports[-1].name", ["https"]), (".spec.ports[5].name", []),
    (".spec.ports[*].port", [80, 443]), (".spec.ports[:1].port", [80]), (".spec.ports[1:].port", [443]),
    (".spec.ports[0,1].name", ["http", "https"]),
    (".spec['replicas','on']", [3, True]), (".metadata.labels.*", ["dotted", "x"]), ("..port", [80, 443]),
    ("$..ports[0].name", ["http"]),
    ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
    (".status.conditions[?(@.type=='Ready')].status", ["True"]),
    ('.status.conditions[?( @.type != "Ready" )].status', ["False", "Unknown"]),
    (".status.conditions[?(@.weight)].type", ["Ready"]), (".status.conditions[?(@.weight>1)].type", ["Ready"]),
    (".status.conditions[?(@.weight>=2)].type", ["Ready"]), (".status.conditions[?(@.weight<2)].type", []),
    (".status.conditions[?(@.weight<=2.5)].type", ["Ready"]), (".status.conditions[?(@.weight=='2')].type", []),
    (r".status.conditions[?(@.type=='Quo\'ted')].status", ["Unknown"]),
    (".spec.ports[?(@.port==@.port)].name", ["http", "https"]), (".spec[?(@.x==1)]", []),
    (".status.null", [None]), (".status.absent", []), (".metadata.name.deeper", []), (".spec.replicas[0]", []),
)  # fmt: skip
def test_a_path_finds_its_values(path: str, found: list[Any]) -> None:
    compiled = compile_path(path)
    assert compiled.find(OBJECT) == found
    assert compiled.first(OBJECT) == (found[0] if found else None)


@cases(
    ".a[", ".a]", ".a[x]", ".a[?@.b==1]", ".a[::0]", ".a[::-1]", "{.a", ".a['b",
)  # fmt: skip
def test_bad_syntax_is_a_value_error(path: str) -> None:
    with pytest.raises(JSONPathError):
        compile_path(path)


@cases(".metadata name", ".spec.ports[5]", ".spec.ports[?(@.port>'a')]", "..[0].type", ".spec.ports[0:9]")
def test_a_path_that_cannot_be_followed_finds_nothing(path: str) -> None:
    assert compile_path(path).find(OBJECT) == []


@cases(
    (".spec.replicas", ("spec", "replicas")), (r".a['b\.c']", ("a", "b.c")), (".a[0]", None), (".a.*", None),
    ("$", ()),
)  # fmt: skip
def test_a_path_of_plain_fields_returns_them(path: str, fields: tuple[str, ...] | None) -> None:
    assert compile_path(path).fields == fields
