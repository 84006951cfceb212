"""What is encoded is read alike by an independent implementation of protobuf.

Google's library gets message descriptors that are made here from the table of wire numbers and the schemas' types; what
it reads from an encoded object is compared with the object, field by field.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import parse_duration_ns
from karmada.kube.schema.builtin import Definitions, versions
from karmada.kube.schema.decode import normalize
from karmada.kube.schema.node import Node
from karmada.kube.schema.protobuf import decode, encode, envelope
from karmada.kube.schema.protobuf_encoder import message_for
from karmada.kube.schema.wire import message_of, rules_of, wire_table
from tests.support.arbitrary_objects import values

DEFS = Definitions.load()
KINDS = sorted(gvk for gvk, name in DEFS.kinds().items() if message_of(name) in wire_table())
FieldProto = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "string": FieldProto.TYPE_STRING,
    "boolean": FieldProto.TYPE_BOOL,
    "integer": FieldProto.TYPE_INT64,
    "number": FieldProto.TYPE_DOUBLE,
}
LEAVES = {
    "time": (("seconds", 1, FieldProto.TYPE_INT64), ("nanos", 2, FieldProto.TYPE_INT32)),
    "quantity": (("string", 1, FieldProto.TYPE_STRING),),
    "int-or-string": (
        ("type", 1, FieldProto.TYPE_INT64),
        ("int", 2, FieldProto.TYPE_INT32),
        ("str", 3, FieldProto.TYPE_STRING),
    ),
    "json": (("raw", 1, FieldProto.TYPE_BYTES),),
    "duration": (("ns", 1, FieldProto.TYPE_INT64),),
}
SAME_FORM = {"micro-time": "time", "fields-v1": "json"}


class Descriptors:
    """Message classes of Google's library, one for each pair of a schema and a message."""

    def __init__(self) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(name="kinds.proto", package="k", syntax="proto2")
        self._names: dict[tuple[int, str], str] = {}
        self._nodes: list[Node] = []
        for name, fields in LEAVES.items():
            message = self._message(name.replace("-", "_"))
            for field, number, kind in fields:
                message.field.add(name=field, number=number, type=kind, label=FieldProto.LABEL_OPTIONAL)
        strings = self._message("strings")
        strings.field.add(name="items", number=1, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_REPEATED)

    def _message(self, name: str) -> descriptor_pb2.DescriptorProto:
        return self._file.message_type.add(name=name)

    def add(self, node: Node, message: str) -> str:
        known = self._names.get((id(node), message))
        if known is not None:
            return known
        name = self._names[id(node), message] = f"m{len(self._names)}"
        self._nodes.append(node)  # its id stays its own
        proto = self._message(name)
        for entry in wire_table()[message]:
            if entry.rule == "i":
                inner = self.add(node, entry.message)
                self._refer(proto.field.add(name=entry.name, number=entry.number), inner, FieldProto.LABEL_OPTIONAL)
            elif entry.name in node.properties:
                self._field(proto, node.properties[entry.name], entry.name, entry.number, entry.rule)
        return name

    def _field(self, proto: Any, node: Node, name: str, number: int, rule: str) -> None:
        field = proto.field.add(name=name.replace("$", "_").replace("-", "_"), number=number)
        field.label = FieldProto.LABEL_OPTIONAL
        if node.values is not None:
            entry = self._message(f"{proto.name}_{number}_entry")
            entry.field.add(name="key", number=1, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_OPTIONAL)
            self._field(entry, node.values, "value", 2, "w" if node.values.items is not None else "")
            self._refer(field, entry.name, FieldProto.LABEL_REPEATED)
        elif rule == "w":
            self._refer(field, "strings", FieldProto.LABEL_OPTIONAL)
        else:
            label = FieldProto.LABEL_OPTIONAL if node.items is None else FieldProto.LABEL_REPEATED
            self._single(field, node.items or node, label)

    def _single(self, field: Any, node: Node, label: Any) -> None:
        if node.alternative is not None:
            self._refer(field, self._union(node), label)
        elif node.special == "bytes":
            field.type, field.label = FieldProto.TYPE_BYTES, label
        elif node.special:
            self._refer(field, SAME_FORM.get(node.special, node.special).replace("-", "_"), label)
        elif node.type == "object":
            self._refer(field, self.add(node, message_of(node.definition)), label)
        else:
            field.type, field.label = SCALARS[node.type], label

    def _union(self, node: Node) -> str:
        key = id(node), node.special
        if key not in self._names:
            name = self._names[key] = f"u{len(self._names)}"
            self._nodes.append(node)
            assert node.alternative is not None
            schema = self.add(node.alternative, message_of(node.alternative.definition))
            union = self._message(name)
            if node.special == "schema-or-bool":
                union.field.add(name="allows", number=1, type=FieldProto.TYPE_BOOL, label=FieldProto.LABEL_OPTIONAL)
                self._refer(union.field.add(name="schema", number=2), schema, FieldProto.LABEL_OPTIONAL)
            else:
                self._refer(union.field.add(name="schema", number=1), schema, FieldProto.LABEL_OPTIONAL)
                others = union.field.add(name="others", number=2, label=FieldProto.LABEL_REPEATED)
                if node.special == "schema-or-array":
                    self._refer(others, schema, FieldProto.LABEL_REPEATED)
                else:
                    others.type = FieldProto.TYPE_STRING
        return self._names[key]

    @staticmethod
    def _refer(field: Any, name: str, label: Any) -> None:
        field.type, field.label, field.type_name = FieldProto.TYPE_MESSAGE, label, f".k.{name}"

    def classes(self) -> dict[str, Any]:
        pool = descriptor_pool.DescriptorPool()
        pool.Add(self._file)
        found = pool.FindFileByName("kinds.proto")
        return {name: message_factory.GetMessageClass(kind) for name, kind in found.message_types_by_name.items()}


def all_classes() -> dict[GVK, Any]:
    descriptors = Descriptors()
    names = {gvk: descriptors.add(DEFS.node(DEFS.kinds()[gvk]), message_of(DEFS.kinds()[gvk])) for gvk in KINDS}
    classes = descriptors.classes()
    return {gvk: classes[name] for gvk, name in names.items()}


CLASSES = all_classes()


def shown(message: Message, node: Node, name: str) -> dict[str, Any]:
    """The JSON object of a message that Google's library has read; nothing in it may be unknown."""
    assert not len(UnknownFieldSet(message)), name
    found: dict[str, Any] = {}
    present = {descriptor.number: value for descriptor, value in message.ListFields()}
    for entry in wire_table()[name]:
        value = present.get(entry.number)
        if value is None:
            continue
        if entry.rule == "i":
            found |= shown(value, node, entry.message)
        else:
            found[entry.name] = shown_field(value, node.properties[entry.name], entry.rule)
    return found


def shown_field(value: Any, node: Node, rule: str) -> Any:
    if node.values is not None:
        wrapped = "w" if node.values.items is not None else ""
        return {entry.key: shown_field(entry.value, node.values, wrapped) for entry in value}
    if rule == "w":
        return list(value.items)
    if node.items is not None:
        return [shown_one(item, node.items) for item in value]
    return shown_one(value, node)


def shown_one(value: Any, node: Node) -> Any:
    if node.alternative is not None:
        return shown_union(value, node.alternative)
    if node.special:
        return value if node.special == "bytes" else tuple(getattr(value, f.name) for f, _ in value.ListFields())
    return shown(value, node, message_of(node.definition)) if node.type == "object" else value


def shown_union(value: Any, schema: Node) -> Any:
    if value.HasField("schema"):
        return shown(value.schema, schema, message_of(schema.definition))
    if "allows" in value.DESCRIPTOR.fields_by_name:
        return value.allows
    return [o if isinstance(o, str) else shown(o, schema, message_of(schema.definition)) for o in value.others]


def comparable(value: Any, node: Node) -> Any:
    """A JSON value with its leaves in the form in which `shown` gives them."""
    if node.values is not None:
        return {key: comparable(v, node.values) for key, v in value.items()}
    if node.items is not None:
        return [comparable(v, node.items) for v in value]
    if node.alternative is not None:
        return value
    if node.special:
        return leaf(value, node.special)
    if node.type == "object":
        known = {key: v for key, v in value.items() if key in rules_of(message_of(node.definition)) and v is not None}
        return {
            key: comparable(v, node.properties[key])
            for key, v in known.items()
            if v not in ([], {}) or is_struct(node.properties[key])
        }
    return value


def is_struct(node: Node) -> bool:
    return node.items is None and node.values is None


def leaf(value: Any, special: str) -> Any:
    if special == "bytes":
        return base64.b64decode(value)
    if special in ("json", "fields-v1"):
        return (orjson.dumps(value),)
    if special == "quantity":
        return (value,)
    if special == "duration":
        return (parse_duration_ns(value),)
    if special == "int-or-string":
        return (1, 0, value) if isinstance(value, str) else (0, value, "")
    moment = datetime.fromisoformat(value).astimezone(UTC)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()), moment.microsecond * 1000


def read(gvk: GVK, obj: dict[str, Any]) -> dict[str, Any]:
    node = DEFS.node(DEFS.kinds()[gvk])
    message = message_for(node)
    assert message is not None
    return shown(CLASSES[gvk].FromString(message.encode(obj)), node, message_of(node.definition))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_an_independent_reader_finds_what_was_encoded(data: st.DataObject) -> None:
    gvk = data.draw(st.sampled_from(KINDS))
    node = DEFS.node(DEFS.kinds()[gvk])
    obj = data.draw(values(node, 4))
    normalize(node, obj)
    assert read(gvk, obj) == comparable(obj, node)


def test_a_long_text_a_large_number_and_a_long_list_are_read_alike() -> None:
    containers = [{"name": f"c{i}", "image": "i" * 300, "command": ["x" * 70000, ""]} for i in range(200)]
    spec = {"containers": containers, "priority": -(2**31), "activeDeadlineSeconds": 2**62}
    pod = {"metadata": {"labels": {"k" * 300: "v" * 300}}, "spec": spec}
    assert read(GVK("", "v1", "Pod"), pod) == pod


def test_null_is_not_written() -> None:
    obj = {"metadata": {"name": "a", "creationTimestamp": None, "labels": {"a": None}}, "data": None}
    assert read(GVK("", "v1", "ConfigMap"), obj) == {"metadata": {"name": "a"}}


def test_an_empty_struct_is_written_where_it_has_a_meaning() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    assert read(GVK("", "v1", "Pod"), pod) == pod


def test_the_envelope_names_the_kind() -> None:
    obj = {"metadata": {"name": "a"}}
    node = DEFS.node_for(GVK("", "v1", "ConfigMap"))
    message = message_for(node) if node is not None else None
    assert message is not None
    body = envelope("v1", "ConfigMap", message.encode(obj))
    assert body == encode("v1", "ConfigMap", obj, DEFS)
    assert decode(body, DEFS) == ("v1", "ConfigMap", {"apiVersion": "v1", "kind": "ConfigMap", **obj})


def reachable(node: Node, seen: dict[int, Node]) -> None:
    if id(node) in seen:
        return
    seen[id(node)] = node
    for child in (*node.properties.values(), node.values, node.items, node.alternative):
        if child is not None:
            reachable(child, seen)


@pytest.mark.parametrize("version", ["1.36", "1.32"])
def test_every_served_kind_has_its_message_with_all_fields(version: str) -> None:
    assert version in versions()
    definitions = Definitions.load(version)
    names = set()
    for resource in builtin_resources(definitions):
        kinds = [resource.gvk, *(sub.kind for sub in resource.subresources.values() if sub.kind is not None)]
        if "list" in resource.verbs:
            kinds.append(GVK(*resource.gvk.group_version, resource.list_kind))
        names |= {definitions.kinds()[gvk] for gvk in kinds if not gvk.kind.endswith("Options")}
    seen: dict[int, Node] = {}
    for name in names:
        reachable(definitions.node(name), seen)
    structs = {node.definition: node for node in seen.values() if node.properties and not node.special}
    missing = {
        name: sorted(set(node.properties) - {"apiVersion", "kind"} - set(rules_of(message_of(name))))
        for name, node in structs.items()
    }
    assert {name: fields for name, fields in missing.items() if fields} == {}
    assert len(structs) > 400
