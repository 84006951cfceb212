"""How much of what a member or its agent says is kept in a Cluster: its strings, lists and maps are bounded.

A member chooses its version, the groups it serves and the resources its nodes have. Each viewer of Clusters is sent
them, so strings are cut at 256 characters and lists after what no real cluster reaches. Cutting, not refusing: a member
that reports nonsense in one field is still watched by all the others.
"""

from __future__ import annotations

from typing import Any, Final

LONGEST_TEXT: Final = 256
_LONGEST_MESSAGE: Final = 32768
"""As Kubernetes bounds the message of a condition."""
_LONGEST_LIST: Final = 256
_MOST_VERSIONS: Final = 2048
"""Groups with versions that a cluster serves."""
_MOST_KINDS: Final = 8192
"""Kinds that a cluster serves, over all groups."""


def bounded_text(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text, cut with an ellipsis where it is too long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def bounded_status(status: Any) -> Any:
    """Return a Cluster's status, or a part of it, without what is too long or too much; values may have wrong types."""
    if not isinstance(status, dict):
        return bounded(status)
    found = {key: bounded(value) for key, value in status.items() if key != "apiEnablements"}
    enablements = status.get("apiEnablements")
    if isinstance(enablements, list):
        found["apiEnablements"] = bounded_enablements(enablements)
    elif enablements is not None:
        found["apiEnablements"] = enablements
    return found


def bounded_enablements(entries: list[Any]) -> list[Any]:
    """Return the groups and versions that a cluster serves: the very list if none of it is too long or too much."""
    kept, room = [], _MOST_KINDS
    for entry in entries[:_MOST_VERSIONS]:
        if isinstance(entry, dict) and isinstance(entry.get("resources"), list):
            kinds = [bounded(kind) for kind in entry["resources"][:room]]
            room -= len(kinds)
            rest = {key: bounded(value) for key, value in entry.items() if key != "resources"}
            entry = {**rest, "resources": kinds}
        kept.append(entry)
    return entries if kept == entries else kept


def bounded(value: Any, key: str = "") -> Any:
    """Return a value of JSON with its strings, lists and maps bounded; names that are too long are left out of maps."""
    if isinstance(value, str):
        return bounded_text(value, _LONGEST_MESSAGE if key == "message" else LONGEST_TEXT)
    if isinstance(value, list):
        return [bounded(item) for item in value[:_LONGEST_LIST]]
    if isinstance(value, dict):
        names = [name for name in value if len(name) <= LONGEST_TEXT][:_LONGEST_LIST]
        return {name: bounded(value[name], name) for name in names}
    return value
