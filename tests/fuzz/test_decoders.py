"""Whatever is sent, a decoder returns a value or refuses with its own error: nothing else escapes it.

`make test` gives each a small budget; `make fuzz` runs them for long (KARMADA_FUZZ_EXAMPLES). A failure prints the
input, which then becomes an @example here.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.jsonpath import compile_path
from karmada.kube.objects.selectors import parse_fields, parse_labels
from karmada.kube.patch.apply import apply
from karmada.kube.patch.jsonpatch import Dialect, apply_json_patch
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.patch.strategic import apply_strategic_merge_patch
from karmada.kube.schema import protobuf
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.cel import BudgetExceeded, CelError, CompileError, compile_expression
from karmada.kube.schema.decode import duplicate_fields, normalize, parse_json
from karmada.kube.schema.yamlio import load_strict
from tests.support.objects import kube_object

budget = settings(max_examples=int(os.environ.get("KARMADA_FUZZ_EXAMPLES", "60")))

POD = GVK("", "v1", "Pod")
LIVE: dict[str, Any] = kube_object("v1", "Pod", "p", "d", uid="u", labels={"a": "b"}, finalizers=["e.com/x"]) | {
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}], "tolerations": []}
}

keys = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "labels",
        "finalizers",
        "spec",
        "containers",
        "image",
        "ports",
        "containerPort",
        "env",
        "value",
        "tolerations",
        "$patch",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$retainKeys",
        "status",
        "a",
        "/",
        "~0",
    ]
)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars | st.sampled_from(["v1", "Pod", "delete", "replace", "merge", "c", "1Gi", "2020-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)
objects = st.dictionaries(keys, values, max_size=6)


def alphabet(characters: str, pieces: str) -> st.SearchStrategy[str]:
    """Text made of what a grammar is made of, so that most of it gets past the first character."""
    words = st.sampled_from([*characters, *pieces.split()])
    return st.lists(words | st.text(max_size=3), max_size=25).map("".join)


def node() -> Any:
    found = Definitions.load().node_for(POD)
    assert found is not None
    return found


@budget
@given(st.binary(max_size=200) | alphabet('{}[]:,"\\ue0-.', 'true null "a" "\\u0022" 1e999').map(str.encode))
@example(b'{"a":1,"a":2}')
def test_json(body: bytes) -> None:
    try:
        parsed = parse_json(body)
        duplicate_fields(body, parsed)
        if isinstance(parsed, dict):
            normalize(node(), parsed)
    except ValueError:
        pass


@budget
@given(
    st.binary(max_size=200) | alphabet("{}[]:,-?&*!|>%@#'\"\n ", "a: <<: !!int 0x1 1_0 ~ ... --- &a *a").map(str.encode)
)
@example(b"? [a]\n: b")
def test_yaml(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        load_strict(body)


@budget
@given(objects)
def test_an_object_of_any_shape_decodes_or_is_refused(obj: dict[str, Any]) -> None:
    try:
        normalize(node(), obj)
        orjson.dumps(obj)
    except ValueError:
        pass


@budget
@given(st.binary(max_size=120), st.integers(0, 60), st.booleans())
def test_protobuf(noise: bytes, at: int, valid: bool) -> None:
    body = noise
    if valid:
        whole = protobuf.encode("v1", "Pod", copy_json(LIVE), Definitions.load())
        at = min(at, len(whole))
        body = whole[:at] + noise + whole[at + len(noise) :]
    with contextlib.suppress(ValueError):
        protobuf.decode(body, Definitions.load(), POD)


operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "bad"]),
        "path": st.lists(keys | st.sampled_from(["0", "-", "-1", "~2", ""]), max_size=4).map("/".join).map("/".__add__),
    },
    optional={"from": st.lists(keys, max_size=3).map("/".join), "value": values},
)


@budget
@given(st.lists(operations, max_size=5))
def test_a_json_patch(patch: list[Any]) -> None:
    with contextlib.suppress(ValueError, ApiError):
        apply_json_patch(copy_json(LIVE), patch, Dialect.LENIENT)


@budget
@given(objects)
def test_a_merge_patch(patch: dict[str, Any]) -> None:
    assert isinstance(apply_merge_patch(copy_json(LIVE), patch), dict)


@budget
@given(objects)
def test_a_strategic_merge_patch(patch: dict[str, Any]) -> None:
    with contextlib.suppress(ValueError, ApiError):
        apply_strategic_merge_patch(copy_json(LIVE), patch, node())


@budget
@given(objects)
def test_a_server_side_apply(config: dict[str, Any]) -> None:
    config = {**config, "apiVersion": "v1", "kind": "Pod"}
    with contextlib.suppress(ValueError, ApiError):
        apply(copy_json(LIVE), config, node(), manager="m", force=True, api_version="v1", now="2020-01-01T00:00:00Z")


@budget
@given(alphabet("=!,() <>", "a in notin == != x/y exists -1"))
def test_a_label_selector(text: str) -> None:
    try:
        selector = parse_labels(text)
    except ValueError:
        return
    selector.matches({"a": "1", "x/y": ""})


@budget
@given(alphabet("=!,\\ ", "metadata.name == != a"))
def test_a_field_selector(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_fields(text)


@budget
@given(
    alphabet(
        "+-*/%!<>=&|?:.,()[]{}'\"", "self self.a 1 2u 0x 1.5 'a' r'b' true null has( .all(x, size( in .map(x, @ &&"
    )
)
def test_an_expression(text: str) -> None:
    with contextlib.suppress(CompileError, CelError, BudgetExceeded):
        compile_expression(text, {"self"}).evaluate({"self": LIVE}, budget=10_000)


@budget
@given(alphabet("{}[].,:?@*$'\"()<>=!", ".a .. [0] [*] [?( @.a =='b' [-1:] range end {.a}"))
def test_a_json_path(text: str) -> None:
    with contextlib.suppress(ValueError):
        list(compile_path(text).find(LIVE))
