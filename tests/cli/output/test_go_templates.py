"""Go's text/template over JSON data."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.cli.output.gotemplate import TemplateError, parse
from tests.support.cases import cases

OBJ: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web", "x": "y"}},
    "spec": {"replicas": 2, "paused": False, "items": [{"name": "a"}, {"name": "b"}]},
    "secret": "aGVsbG8=",
}


@cases(
    ("{{.metadata.name}}", "web"),
    ("{{ .metadata.name\n}}", "web"),
    ("{{$.kind}}", "Deployment"),
    ("{{.foo}} {{.foo.bar}}", "<no value> <no value>"),
    ("{{.spec.replicas}}{{.spec.paused}}", "2false"),
    ("{{.metadata.labels}}", "map[app:web x:y]"),
    ("{{.spec.items}}", "[map[name:a] map[name:b]]"),
    # control
    ("{{range .spec.items}}{{.name}} {{end}}", "a b "),
    ("{{range $i, $e := .spec.items}}{{$i}}={{$e.name}};{{end}}", "0=a;1=b;"),
    ("{{range $k, $v := .metadata.labels}}{{$k}}={{$v}},{{end}}", "app=web,x=y,"),
    ("{{range .nope}}x{{else}}none{{end}}", "none"),
    ("{{range .spec.items}}{{$.kind}}{{end}}", "DeploymentDeployment"),
    ("{{range .spec.items}}{{if eq .name \"b\"}}{{break}}{{end}}{{.name}}{{end}}", "a"),
    ("{{range .spec.items}}{{if eq .name \"a\"}}{{continue}}{{end}}{{.name}}{{end}}", "b"),
    ("{{range 3}}{{.}}{{end}}", "012"),
    ("{{if .spec.paused}}p{{else if .spec.replicas}}r{{else}}n{{end}}", "r"),
    ("{{if not .spec.paused}}on{{end}}", "on"),
    ("{{with .metadata}}{{.name}}{{else}}none{{end}}", "web"),
    ("{{with .nope}}x{{else with .kind}}{{.}}{{end}}", "Deployment"),
    ("{{with $m := .metadata}}{{$m.name}}{{end}}", "web"),
    ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"),
    ("{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21"),
    ("{{define \"x\"}}[{{.}}]{{end}}{{template \"x\" .kind}}", "[Deployment]"),
    ("{{block \"y\" .metadata}}{{.name}}{{end}}", "web"),
    # blanks
    ("a {{- \" b \" -}} c", "a b c"),
    ("x\n{{- /* nothing */ -}}\n y", "xy"),
    ("{{/* c */}}x", "x"),
    # functions
    ("{{len .spec.items}}{{len \"é\"}}", "22"),
    ("{{(index .spec.items 1).name}}", "b"),
    ("{{index .metadata \"labels\" \"app\"}}", "web"),
    ("{{index .metadata.labels \"nope\"}}", "<no value>"),
    ("{{slice \"abcdef\" 1 3}}", "bc"),
    ("{{and .kind .foo}}|{{or .foo .kind}}|{{and 1 0 .x.y}}", "<no value>|Deployment|0"),
    ("{{print 1 2 \"a\" \"b\" 3}}", "1 2ab3"),
    ("{{println \"a\" 1}}", "a 1\n"),
    ("{{.metadata.name | printf \"%-5s|\"}}", "web  |"),
    ("{{printf \"%5.2f|%05d|%x|%t|%q|%v|%%\" 3.14159 42 255 true \"q\" .kind}}",
     " 3.14|00042|ff|true|\"q\"|Deployment|%"),
    ("{{printf \"%s\"}} {{printf \"a\" 1}}", "%!s(MISSING) a%!(EXTRA int=1)"),
    ("{{html \"<a>\"}}{{js \"it's\"}}{{urlquery \"a b&c\"}}", "&lt;a&gt;it\\'sa+b%26c"),
    ("{{.secret | base64decode}}", "hello"),
    ("{{eq .kind \"a\" \"Deployment\"}}{{ne 1 2}}{{lt 1 2}}{{le 2 2}}{{gt 1 2}}{{ge 1.5 1}}",
     "truetruetruetruefalsetrue"),
    ("{{eq .spec.replicas 2.0}}", "true"),
    ("{{eq .foo nil}}", "true"),
    ("{{`raw \"x\"`}}{{'a'}}{{0x10}}{{1.5}}{{1000000.0}}", "raw \"x\"97161.51e+06"),
    ("{{if and (eq .kind \"Deployment\") (gt (len .spec.items) 1)}}ok{{end}}", "ok"),
)  # fmt: skip
def test_a_template_gives(template: str, text: str) -> None:
    assert parse(template).render(OBJ) == text


@cases(
    ("{{.foo", "template: output:1: unclosed action"),
    ('x\n{{ "a }}', "template: output:2: unterminated quoted string"),
    ("{{nofunc}}", 'template: output:1: function "nofunc" not defined'),
    ("{{$y}}", 'template: output:1: undefined variable "$y"'),
    ("{{end}}", "template: output:1: unexpected {{end}}"),
    ("{{if .x}}", "template: output:1: unexpected EOF"),
    ("{{}}", "template: output:1: missing value for command"),
    ("{{break}}", "template: output:1: {{break}} outside {{range}}"),
    ("{{1 | 2}}", "template: output:1: non executable command in pipeline stage 2"),
)
def test_what_is_no_template_is_refused(template: str, error: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(template)
    assert str(caught.value) == error


@cases(
    ("{{.metadata.name.x}}", "1:11 output <.metadata.name.x>", "can't evaluate field x in type interface {}"),
    ("{{len 3}}", "1:2 output <len 3>", "error calling len: len of type int"),
    ("{{index .spec.items 9}}", "1:2 output <index .spec.items 9>", "error calling index: index out of range: 9"),
    ('\n{{template "nope"}}', '2:11 output <{{template "nope"}}>', 'template "nope" not defined'),
    ('{{eq 1 "a"}}', '1:2 output <eq 1 "a">', "error calling eq: incompatible types for comparison"),
    ("{{range .kind}}{{end}}", "1:8 output <.kind>", "range can't iterate over Deployment"),
    ('{{define "x"}}{{.a.b}}{{end}}{{template "x" .}}', "1:18 x <.a.b>", 'map has no entry for key "a"'),
)  # fmt: skip
def test_what_cannot_be_executed_is_reported_with_its_place(template: str, place: str, error: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(template).render(OBJ, allow_missing=False)
    at, name, source = place.split(" ", 2)
    assert str(caught.value) == f'template: output:{at}: executing "{name}" at {source}: {error}'


def test_a_template_that_calls_itself_ends() -> None:
    with pytest.raises(TemplateError, match="exceeded maximum template depth"):
        parse('{{define "x"}}{{template "x"}}{{end}}{{template "x"}}').render({})


def test_missing_fields_are_errors_only_for_who_wants_that() -> None:
    with pytest.raises(TemplateError, match='map has no entry for key "foo"'):
        parse("{{.foo}}").render(OBJ, allow_missing=False)
