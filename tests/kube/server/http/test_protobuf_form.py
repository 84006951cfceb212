"""Answers in protobuf: envelopes, lists in time slices, frames of a watch."""

from __future__ import annotations

import pytest

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import NotAcceptable
from karmada.kube.runtime import time_slice
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.protobuf import MAGIC, decode
from karmada.kube.schema.protowire import chunks
from karmada.kube.schema.wire import rules_of, wire_table
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.results import ListResult
from tests.support.counting import counted_turns

DEFS = Definitions.load()
FORM = ProtobufForm(DEFS)
CONFIG_MAPS: Resource = next(r for r in builtin_resources(DEFS) if r.plural == "configmaps")


async def test_a_long_list_is_encoded_while_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 0.0)
    objects = [{"metadata": {"name": f"c{i}"}, "data": {"a": "b"}} for i in range(20)]
    with counted_turns() as turns:
        body = await FORM.list(ListResult(CONFIG_MAPS, {"resourceVersion": "7"}), objects)
    assert turns.count > 10
    _, kind, listed = decode(body, DEFS)
    assert (kind, listed["metadata"], listed["items"]) == ("ConfigMapList", {"resourceVersion": "7"}, objects)


def test_every_list_message_has_its_metadata_and_items_where_lists_are_encoded() -> None:
    lists = [name for name in wire_table() if name.endswith("List") and "items" in rules_of(name)]
    assert len(lists) > 40
    for name in lists:
        assert [(field.name, field.number) for field in wire_table()[name]] == [("metadata", 1), ("items", 2)], name


def test_a_watch_event_has_a_length_and_no_envelope_of_its_own() -> None:
    framed = FORM.event("ADDED", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert int.from_bytes(framed[:4], "big") == len(framed) - 4
    (type_number, kind), (object_number, raw) = chunks(framed, 4)
    assert (type_number, kind, object_number) == (1, b"ADDED", 2)
    [(_, body)] = chunks(raw)
    assert body.startswith(MAGIC)
    assert decode(body, DEFS)[2]["metadata"] == {"name": "a"}


def test_a_kind_without_a_message_is_not_acceptable() -> None:
    with pytest.raises(NotAcceptable, match="has no protobuf form; request JSON"):
        FORM.object({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {}})
