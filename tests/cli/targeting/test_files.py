"""-f, -k and -R: what files hold, and what is wrong with them."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from karmada.cli.targeting.connect import Failure
from karmada.cli.targeting.files import parse_objects, read_files, require_files
from tests.support.cases import cases

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def names(*filenames: str | Path, **flags: bool) -> list[tuple[str, str]]:
    return [
        (source.obj["metadata"]["name"], Path(source.name).name)
        for source in read_files([str(name) for name in filenames], **flags)  # type: ignore[arg-type]
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.yaml").write_text(CONFIG % "b")
    (tmp_path / "a.json").write_text('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}')
    (tmp_path / "c.txt").write_text(CONFIG % "c")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.yml").write_text(CONFIG % "d")
    return tmp_path


def test_a_directory_gives_its_manifests_in_order(folder: Path) -> None:
    assert names(folder) == [("a", "a.json"), ("b", "b.yaml")]
    assert names(folder, recursive=True) == [("a", "a.json"), ("b", "b.yaml"), ("d", "d.yml")]


def test_a_named_file_may_be_called_anything(folder: Path) -> None:
    assert names(folder / "c.txt") == [("c", "c.txt")]


def test_patterns_and_commas(folder: Path) -> None:
    assert names(folder / "*.yaml") == [("b", "b.yaml")]
    assert names(f"{folder}/b.yaml,{folder}/a.json") == [("b", "b.yaml"), ("a", "a.json")]


def test_every_document_and_every_item_of_a_list_is_an_object() -> None:
    text = f"""# a comment
---
{CONFIG % "one"}---
---  # empty
{CONFIG % "two"}
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: Secret, metadata: {{name: three}}}}
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {{name: four}}
"""
    found = parse_objects(text.encode(), "file")
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found] == [
        ("ConfigMap", "one"), ("ConfigMap", "two"), ("Secret", "three"), ("ConfigMap", "four"),
    ]  # fmt: skip


def test_json_values_may_follow_one_another() -> None:
    one = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"}}'
    found = parse_objects(one % b"a" + b"\n" + one % b"b", "file")
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b"]


def test_braces_may_begin_yaml() -> None:
    assert parse_objects(b"{apiVersion: v1, kind: ConfigMap}", "f") == [{"apiVersion": "v1", "kind": "ConfigMap"}]


@cases(
    (
        "a: 1\nb: [\n",
        "error parsing f: error converting YAML to JSON: yaml: line 2: did not find expected node content",
    ),
    (
        f"{CONFIG % 'a'}---\nkind: A\n  b: c\n",
        "error parsing f: error converting YAML to JSON: yaml: line 6: mapping values are not allowed in this context",
    ),
    ('{"a": ', "error parsing f: unexpected EOF"),
    ('{"a":' + "[" * 300 + "]" * 300 + "}", "error parsing f: json: exceeded max depth"),
    ('{"a":' + "[" * 20000 + "]" * 20000 + "}", "error parsing f: json: exceeded max depth"),
    ('{"a": 1,\n ]', "error parsing f: json: line 2: Expecting property name enclosed in double quotes"),
    (
        "hello",
        'unable to decode "f": json: cannot unmarshal string into Go value of type unstructured.detector',
    ),
    (
        "- a",
        'unable to decode "f": json: cannot unmarshal array into Go value of type unstructured.detector',
    ),
    ("apiVersion: v1\nb: c", 'unable to decode "f": Object \'Kind\' is missing in \'{"apiVersion":"v1","b":"c"}\''),
    (
        "kind: A",
        'error validating "f": error validating data: apiVersion not set; if you choose to ignore these errors, '
        "turn validation off with --validate=false",
    ),
    ("apiVersion: v1\nkind: A\nmetadata: []", ""),
    ("apiVersion: v1\nkind: A\nmetadata: text", 'unable to decode "f": metadata is not an object'),
)
def test_what_is_wrong_is_reported_with_file_and_line(text: str, refusal: str) -> None:
    if not refusal:
        parse_objects(text.encode(), "f")
        return
    with pytest.raises(Failure) as failed:
        parse_objects(text.encode(), "f")
    assert failed.value.message == f"error: {refusal}"


def test_what_is_not_there(tmp_path: Path) -> None:
    for word, refusal in (
        ("none.yaml", 'the path "none.yaml" does not exist'),
        ("none-*.yaml", 'the path "none-*.yaml" does not exist'),
        (str(tmp_path), f"error reading [{tmp_path}]: recognized file extensions are [.json .yaml .yml]"),
        ("http://127.0.0.1:1/x.yaml", 'unable to read URL "http://127.0.0.1:1/x.yaml": Connection refused'),
    ):
        with pytest.raises(Failure) as failed:
            read_files([word])
        assert failed.value.message == f"error: {refusal}"


def test_files_are_required_and_not_of_both_kinds() -> None:
    with pytest.raises(Failure, match="must specify one of -f and -k"):
        require_files((), "")
    with pytest.raises(Failure, match="only one of -f or -k can be specified"):
        read_files(["a"], "b")


# URLs


class Pages(BaseHTTPRequestHandler):
    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        code = {"/good.yaml": 200, "/busy.yaml": 503 if Pages.requests < 3 else 200}.get(self.path, 404)
        self.send_response(code)
        self.end_headers()
        self.wfile.write((CONFIG % "fetched").encode() if code == 200 else b"")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def pages() -> Iterator[str]:
    Pages.requests = 0
    server = HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_fetched_and_a_busy_server_is_retried(pages: str) -> None:
    assert names(f"{pages}/good.yaml") == [("fetched", "good.yaml")]
    assert names(f"{pages}/busy.yaml") == [("fetched", "busy.yaml")]
    assert Pages.requests == 3
    with pytest.raises(Failure, match="server reported 404 Not Found, status code=404"):
        read_files([f"{pages}/none.yaml"])


# kustomize


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_kustomize_is_run_or_else_the_one_in_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match="-k needs kustomize or kubectl, and neither is on PATH"):
        read_files([], "overlay")
    object_named = 'echo \'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\'$1-$2\'"}}\''
    program(tmp_path, "kubectl", object_named)
    assert [source.obj["metadata"]["name"] for source in read_files([], "overlay")] == ["kustomize-overlay"]
    program(tmp_path, "kustomize", object_named)
    assert [source.obj["metadata"]["name"] for source in read_files([], "overlay")] == ["build-overlay"]
    program(tmp_path, "kustomize", "echo 'Error: no kustomization here' >&2; exit 1")
    with pytest.raises(Failure) as failed:
        read_files([], "overlay")
    assert failed.value.message == "error: no kustomization here"
    logged = """E1115 12:00:00.000000 7 run.go:72] "command failed" err="no \\\\"kustomization\\\\" here" """
    program(tmp_path, "kustomize", f"echo '{logged}' >&2; exit 1")
    with pytest.raises(Failure) as failed:
        read_files([], "overlay")
    assert failed.value.message == 'error: no "kustomization" here'
