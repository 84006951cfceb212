"""kubectl's JSONPath templates."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.jsonpath import JSONPathError
from karmada.kube.objects.jsonpath_template import go_text, parse, relaxed
from tests.support.cases import cases

OBJ: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "a.b/c": "true"}},
    "spec": {
        "replicas": 2,
        "paused": False,
        "containers": [
            {"name": "a", "image": "nginx", "ports": [{"port": 80}, {"port": 81}], "args": []},
            {"name": "b", "image": "busybox", "resources": {}, "weight": 1.5},
        ],
    },
}


@cases(
    ("{.metadata.name}", "web"),
    ("no braces", "no braces"),
    ("{.kind}/{.metadata.name}", "Deployment/web"),
    ("{$.kind} {@.kind}", "Deployment Deployment"),
    ("{ .kind }", "Deployment"),
    ("{.spec.replicas}{'\\t'}{.spec.paused}", "2\tfalse"),
    ('{.kind}{"\\n"}', "Deployment\n"),
    ("{.nothing}", ""),
    ("{.kind.kind}", ""),
    ("{.spec.containers[*].name}", "a b"),
    ("{.spec.containers[0].name}", "a"),
    ("{.spec.containers[].name}", "a"),
    ("{.spec.containers[-1].name}", "b"),
    ("{.spec.containers[0:1].name}", "a"),
    ("{.spec.containers[::2].name}", "a"),
    ("{.spec.containers[0,1].name}", "a b"),
    ("{.spec.containers[0]['name','image']}", "a nginx"),
    ("{.metadata['labels.app']}", "web"),
    ("{.metadata.labels.a\\.b/c}", "true"),
    ("{.metadata.labels['a\\.b/c']}", "true"),
    ('{.spec.containers[?(@.name=="b")].image}', "busybox"),
    ("{.spec.containers[?(@.name!='b')].image}", "nginx"),
    ("{.spec.containers[?(@.ports)].name}", "a"),
    ("{.spec.containers[?(@.ports[0].port>70)].name}", "a"),
    ("{.spec.containers[0].ports[?(@.port==81)]}", '{"port":81}'),
    ("{.spec.containers[0].ports[*].port}", "80 81"),
    ("{..port}", "80 81"),
    ("{.spec.containers[1].resources}", "{}"),
    ("{.spec.containers[0].args}", "[]"),
    ("{.spec.containers[1].weight}", "1.5"),
    ("{.metadata.labels}", '{"a.b/c":"true","app":"web"}'),
    ("{range .spec.containers[*]}{.name}={.image};{end}", "a=nginx;b=busybox;"),
    ("{range .spec.containers[*]}[{.name}: {range .ports[*]}{.port},{end}]{end}!", "[a: 80,81,][b: ]!"),
    ("{range .nothing}x{end}", ""),
    ("{1}{true}", "1true"),
    ("", ""),
)
def test_a_template_gives(template: str, text: str) -> None:
    assert parse(template).render(OBJ) == text


def test_the_object_itself_is_written_by_an_empty_path() -> None:
    assert parse("{}").render({"a": "<&>"}) == '{"a":"\\u003c\\u0026\\u003e"}'
    assert parse("{@}").render([1, None]) == "[1,null]"


@cases(
    ("{.metadata", "unclosed action"),
    ('{"x}', "unterminated quoted string"),
    ("{.spec.containers[a]}", "invalid array index a"),
    ("{.spec.containers[0}", "unterminated array"),
    ('{.spec.containers[?(@.name=~"a")].image}', "unrecognized character in action: U+007E '~'"),
    ("{.a[::0]}", "step must be > 0"),
)
def test_what_is_no_template_is_refused(template: str, error: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parse(template)
    assert str(caught.value) == error


@cases(
    ("{.spec.containers[5].name}", "array index out of bounds: index 5, length 2"),
    ("{.spec.containers[0:5].name}", "array index out of bounds: index 4, length 2"),
    ("{.spec[0]}", "map[string]interface {} is not array or slice"),
    ("{foo}", "unrecognized identifier foo"),
    ("{end}", "not in range, nothing to end"),
    ('{.spec.containers[0].ports[?(@.port=="80")]}', "incompatible types for comparison"),
    ("{.kind[?(@.a)]}", "Deployment is not array or slice and cannot be filtered"),
)
def test_what_leads_nowhere_is_reported(template: str, error: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parse(template).render(OBJ)
    assert str(caught.value) == error


def test_missing_fields_are_errors_only_for_who_wants_that() -> None:
    with pytest.raises(JSONPathError, match="nothing is not found"):
        parse("{.nothing}").render(OBJ, allow_missing=False)
    assert parse("{.spec.containers[*].weight}").render(OBJ, allow_missing=False) == "1.5"


def test_results_can_be_had_as_json() -> None:
    assert parse("{.spec.containers[*].name}").as_json(OBJ) == '[\n    "a",\n    "b"\n]\n'
    assert parse("{.kind}{.nothing}").as_json(OBJ) == '[\n    "Deployment"\n]\n[]\n'


@cases(
    ("metadata.name", "{.metadata.name}"),
    (".metadata.name", "{.metadata.name}"),
    ("{metadata.name}", "{.metadata.name}"),
    ("{.metadata.name}", "{.metadata.name}"),
    ("[0].x", "{[0].x}"),
    ("", ""),
)
def test_columns_may_leave_braces_and_dots_out(path: str, template: str) -> None:
    assert relaxed(path) == template


def test_a_path_with_unbalanced_braces_is_none() -> None:
    with pytest.raises(JSONPathError, match="unexpected path string"):
        relaxed("{.a")


@cases(
    (1.0, "1"), (1.5, "1.5"), (123456.0, "123456"), (1e6, "1e+06"), (1.5e-7, "1.5e-07"), (0.0001, "0.0001"),
    (12345678, "12345678"), (True, "true"), (None, "<nil>"), (-2.25, "-2.25"), (float("inf"), "+Inf"),
)  # fmt: skip
def test_numbers_are_written_as_go_writes_them(value: Any, text: str) -> None:
    assert go_text(value) == text
