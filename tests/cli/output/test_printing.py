"""-o: JSON, YAML, KYAML, names, templates and columns, and that kubectl writes the very same."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karmada.cli.output import columns as tables
from karmada.cli.output import documents
from karmada.cli.output.printing import printer, qualified_name
from karmada.cli.targeting.connect import Failure
from karmada.kube.objects.go_json import to_json
from karmada.kube.objects.go_values import go_value
from karmada.kube.schema.yamlio import load_yaml
from tests.support.cases import cases
from tests.support.objects import kube_object

WEB: dict[str, Any] = kube_object(
    "apps/v1", "Deployment", "web", managedFields=[{"manager": "m"}], labels={"app": "web"}
) | {"spec": {"replicas": 2, "list": ["a", "b"]}}
LIST = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [WEB, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}],
}
AWKWARD = {
    "A": "x", "a9": "x", "a10": "x", "colon": "a:b", "b60": "1:20", "dash": "- x", "dash2": "-", "exp": "1e3",
    "hash": "a #b", "hex": "0x1f", "oct": "0o17", "und": "1_000", "tilde": "~", "q": "?", "star": "*x", "tab": "a\tb",
    "long": "The quick brown fox jumps over the lazy dog and then goes on and on until the line is longer than it may",
    "long2": "The quick brown fox: jumps over the lazy dog and then goes on and on until the line is longer than that",
    "multi": "line one\nline two\n", "multi2": "line one\nline two", "trail": "trail \nx", "end": "trailing ",
    "quotes": "a: b <x> & 'q' \"d\"", "bell": "é中 \a", "yes": "yes", "off": "off", "null": "null",
    "date": "2024-01-01",
    "time": "2024-01-01T00:00:00Z", "empty": "", "num": "12", "float": "1.5", "inf": ".inf", "merge": "<<", "true": "x",
}  # fmt: skip
"""Text that YAML, Go or HTML could take for something else."""


KYAML = """---
{
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: {
    labels: {
      app: "web",
    },
    name: "web",
  },
  spec: {
    list: [
      "a",
      "b",
    ],
    replicas: 2,
  },
}
"""


# formats


def test_without_a_format_what_was_done_is_reported() -> None:
    assert printer("")(WEB) == "deployment.apps/web created\n"
    assert printer("", did="configured (dry run)")(WEB) == "deployment.apps/web configured (dry run)\n"
    assert printer("")(LIST) == "deployment.apps/web created\npod/p created\n"


def test_names_have_their_kind_and_group() -> None:
    assert printer("name")(LIST) == "deployment.apps/web\npod/p\n"
    assert qualified_name({"kind": "Pod", "metadata": {"name": "a"}, "apiVersion": "v1"}) == "pod/a"


def test_whole_objects_are_shown_without_who_wrote_what() -> None:
    assert json.loads(printer("json")(LIST))["items"][0]["metadata"] == {"name": "web", "labels": {"app": "web"}}
    assert json.loads(printer("json", managed_fields=True)(WEB)) == WEB
    assert WEB["metadata"]["managedFields"], "what is shown is not changed"


def test_documents_are_parted() -> None:
    write = printer("yaml")
    first, second = write(WEB), write(WEB)
    assert second == f"---\n{first}"
    assert len(list(yaml.safe_load_all(first + second))) == 2


@cases(
    ("jsonpath={.metadata.name}", "web"),
    ("jsonpath-as-json={.spec.replicas}", "[\n    2\n]\n"),
    ("go-template={{.metadata.name}}!", "web!"),
    ("template={{.kind}}", "Deployment"),
    ("custom-columns=N:.metadata.name,L:spec.list,X:.nope", "N     L       X\nweb   [a b]   <none>\n"),
    ("custom-columns=L:.spec.list[*]", "L\na,b\n"),
    ("kyaml", KYAML),
)  # fmt: skip
def test_a_format_gives(output: str, text: str) -> None:
    assert printer(output)(WEB) == text


def test_columns_have_one_header() -> None:
    write = printer("custom-columns=NAME:.metadata.name")
    assert (write(WEB), write(LIST)) == ("NAME\nweb\n", "web\np\n")
    assert printer("custom-columns=NAME:.metadata.name", no_headers=True)(WEB) == "web\n"


def test_templates_may_come_from_files_or_from_a_flag(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{{.kind}}")
    (tmp_path / "p").write_text("{.kind}")
    (tmp_path / "c").write_text("NAME  KIND\nmetadata.name  kind\n")
    assert (
        printer(f"go-template-file={tmp_path}/t")(WEB) == printer("templatefile", f"{tmp_path}/t")(WEB) == "Deployment"
    )
    assert printer(f"jsonpath-file={tmp_path}/p")(WEB) == "Deployment"
    assert printer("jsonpath", "{.kind}")(WEB) == printer("", "{{.kind}}")(WEB) == "Deployment"
    assert printer(f"custom-columns-file={tmp_path}/c")(WEB) == "NAME   KIND\nweb    Deployment\n"


@cases(
    (
        "foo",
        'error: unable to match a printer suitable for the output format "foo", allowed formats are: custom-',
    ),
    ("json=x", 'error: unable to match a printer suitable for the output format "json=x"'),
    ("jsonpath", "error: template format specified but no template given"),
    ("go-template=", "error: template format specified but no template given"),
    ("jsonpath={.a", "error: error parsing jsonpath {.a, unclosed action"),
    ("go-template={{.a", "error: error parsing template {{.a, template: output:1: unclosed action"),
    ("custom-columns", "error: custom-columns format specified but no custom columns given"),
    ("custom-columns=A", "error: unexpected custom-columns spec: A, expected <header>:<json-path-expr>"),
    (
        "go-template-file=/nowhere",
        "error: error reading --template /nowhere, open /nowhere: no such file or directory",
    ),
)
def test_what_is_no_format_is_refused(output: str, error: str) -> None:
    with pytest.raises(Failure) as caught:
        printer(output)
    assert caught.value.message.startswith(error)


@cases(
    (
        "jsonpath={.spec[0]}",
        'error: error executing jsonpath "{.spec[0]}": Error executing template: map[string]interface',
    ),
    (
        "go-template={{.kind.x}}",
        'error: error executing template "{{.kind.x}}": template: output:1:7: executing "output"',
    ),
)
def test_what_fails_with_an_object_is_reported(output: str, error: str) -> None:
    with pytest.raises(Failure) as caught:
        printer(output)(WEB)
    assert caught.value.message.startswith(error)


# text


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")))
KEYS = st.text(min_size=1, max_size=5, alphabet="abc01.-~")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    document = {"a": value, **AWKWARD}
    assert load_yaml(documents.to_yaml(document)) == document
    assert load_yaml(documents.to_kyaml(document)) == document
    assert json.loads(to_json(document)) == document


def test_values_are_written_as_go_writes_them() -> None:
    assert go_value({"b": [1, None, True], "a": {}}) == "map[a:map[] b:[1 <nil> true]]"


@cases(
    ([], ""),
    ([["NAME", "AGE"], ["web", "1d"]], "NAME   AGE\nweb    1d\n"),
    ([["A", "B"], ["x", "y"]], "A     B\nx     y\n"),
    ([["a-long-name", ""], ["b", "c"]], "a-long-name   \nb             c\n"),
    ([["one"]], "one\n"),
    ([["a", "b", "c"], ["only"], ["d", "e-e-e-e", "f"]], "a     b     c\nonly\nd     e-e-e-e   f\n"),
)
def test_columns_are_aligned(rows: list[list[str]], text: str) -> None:
    assert tables.columns(rows) == text


def test_a_cell_is_one_line_and_commands_no_terminal() -> None:
    assert tables.first_line("one\ntwo") == "one..."
    assert tables.first_line("\x1b[31mred") == "^[[31mred"


def test_columns_that_are_still_coming_never_become_narrower() -> None:
    growing = tables.Growing()
    assert growing.lines([["NAME", "AGE"], ["a-long-name", "1d"]]) == "NAME          AGE\na-long-name   1d\n"
    assert growing.lines([["b", "2d"]]) == "b             2d\n"
    assert growing.lines([["a-longer-name-yet", "2d"]]) == "a-longer-name-yet   2d\n"
    assert growing.lines([]) == ""


# kubectl


@pytest.fixture(scope="module")
def kubectl() -> str:
    path = shutil.which("kubectl")
    if path is None:
        pytest.skip("kubectl is not on PATH")
    return path


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects") / "web.json"
    obj = {**WEB, "metadata": {"name": "web", "annotations": AWKWARD, "labels": {"x": "y"}}}
    path.write_text(json.dumps(obj))
    return path


@cases(
    "json", "yaml", "name", "jsonpath={.metadata.annotations}", "jsonpath={.spec.list[*]}",
    "jsonpath-as-json={.spec}",
    'jsonpath={range .spec.list[*]}{@}{"\\n"}{end}', "go-template={{range .spec.list}}{{.}} {{end}}",
    "go-template={{.metadata.labels}}", 'go-template={{printf "%6.2f" 3.14159}}',
)  # fmt: skip
def test_kubectl_writes_the_same(output: str, kubectl: str, manifest: Path) -> None:
    command = [kubectl, "label", "--local", "-f", str(manifest), "x=y", "--overwrite", "-o", output]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printer(output)(json.loads(manifest.read_text())) == printed.stdout


def test_a_template_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\xff")
    with pytest.raises(Failure, match=f"error: error reading --template {tmp_path}/p, it is not UTF-8"):
        printer(f"jsonpath-file={tmp_path}/p")
