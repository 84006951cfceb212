"""What the published schemas of built-in types lack: wire numbers and the rule for empty values.

protobuf_fields.txt has one line a message: its name, then `field=NUMBER` with at most one letter for the rule:

    o   held by value and left out of JSON when empty (a struct is never left out)
    p   held by pointer: what was written is kept, also 0, false and {}
    (none)  held by value and always written
    w   as none, and the list is wrapped in a message of its own

`field=NUMBERi:MESSAGE` is a message whose fields stand in the JSON object of its parent. Everything else (types, lists,
maps) comes from the schema. `message_of` turns the name of a definition into the name of its message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_FIELD = re.compile(r"([^= ]+)=([0-9]+)([opwi]?)(?::([A-Za-z0-9.]+))?")


class WireField(NamedTuple):
    name: str
    number: int
    rule: str
    message: str
    """The inlined message, when the rule is i."""


@lru_cache(maxsize=1)
def wire_table() -> dict[str, tuple[WireField, ...]]:
    """Return every known message and its fields, in order of their numbers."""
    text = files("karmada.kube.schema").joinpath("protobuf_fields.txt").read_text("utf-8")
    table = {}
    for line in text.splitlines():
        message, _, fields = line.partition(" ")
        table[message] = tuple(
            WireField(name, int(number), rule, inlined) for name, number, rule, inlined in _FIELD.findall(fields)
        )
    return table


def message_of(definition: str) -> str:
    """apps.v1.Deployment for io.k8s.api.apps.v1.Deployment."""
    return ".".join(definition.rsplit(".", 3)[-3:])


def rules_of(message: str) -> dict[str, str]:
    """Return the rule of every JSON field of a message, inlined messages included; empty for an unknown message."""
    rules: dict[str, str] = {}
    for field in wire_table().get(message, ()):
        if field.rule == "i":
            rules.update(rules_of(field.message))
        else:
            rules[field.name] = field.rule
    return rules
