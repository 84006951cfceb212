"""Compare an answer with the expected one, in which placeholders stand for what differs from run to run.

An expected string is a pattern: `<uid1>` matches a uid, the same one wherever `<uid1>` stands, and no other placeholder
matches that uid. null and absent are different; the order of keys is not compared.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_ABSENT = object()
_PLACEHOLDER = re.compile(
    r"<(uid\d+|rv\d+|list-rv|continue|n|time|microtime|suffix|ip|port|jwt|certificate|address|age|prefix|hash)>"
)
_MATCHES = {
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "rv": r"\d+",
    "list-rv": r"\d+",
    "continue": r".+",
    "n": r"\d+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "suffix": r"[a-z0-9]+",
    "ip": r"[0-9a-f.:]+",
    "port": r"\d+",
    "jwt": r"[\w-]+\.[\w-]+\.[\w-]+",
    "certificate": r"[\w+/=\s-]+",
    "address": r"[\w.:/\[\]-]+",
    "age": r"(?:\d+[smhdy])+|<invalid>",
    "prefix": r"\S*",
    "hash": r"\S+",
}
_NEAR = datetime.timedelta(days=1)


class Difference(NamedTuple):
    """Where an answer differs: `status`, `headers.Warning[0]`, `body.metadata.uid`, …"""

    where: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.where}\n      expected {self.expected}\n      got      {self.got}"


@dataclass
class Bindings:
    """Which uid or resource version each numbered placeholder of a case stands for; one to one."""

    values: dict[str, str] = field(default_factory=dict)

    def bind(self, name: str, value: str) -> bool:
        if name in self.values:
            return self.values[name] == value
        kind = name.rstrip("0123456789")
        if any(other.rstrip("0123456789") == kind and bound == value for other, bound in self.values.items()):
            return False
        self.values[name] = value
        return True


def compare(expected: dict[str, Any], got: dict[str, Any], bindings: Bindings, path: str) -> list[Difference]:
    """All differences between two answers (status, headers, body) to a request for `path`."""
    wanted, had = _without_excluded(expected, path), _without_excluded(got, path)
    return list(_differences(wanted, had, "", bindings))


def _differences(expected: Any, got: Any, where: str, bindings: Bindings) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(got, dict):
        if where == "body" and expected.get("kind") != got.get("kind"):
            yield Difference(where, _shown(expected), _shown(got))
            return
        expected = _named_as(got, expected, bindings)
        for key in sorted(expected.keys() | got.keys()):
            inner = f"{where}.{key}" if where else key
            yield from _differences(expected.get(key, _ABSENT), got.get(key, _ABSENT), inner, bindings)
    elif isinstance(expected, list) and isinstance(got, list):
        if where.endswith("managedFields"):
            expected, got = sorted(expected, key=_entry_order), sorted(got, key=_entry_order)
        for index in range(max(len(expected), len(got))):
            wanted, had = (entries[index] if index < len(entries) else _ABSENT for entries in (expected, got))
            yield from _differences(wanted, had, f"{where}[{index}]", bindings)
    elif not _same(expected, got, bindings):
        yield Difference(where, _shown(expected), _shown(got))


def _named_as(got: dict[str, Any], expected: dict[str, Any], bindings: Bindings) -> dict[str, Any]:
    """The expected mapping with keys that hold placeholders (`k:{"uid":"<uid1>"}`) named as in the answer."""
    names = {
        key: next((name for name in got if name not in expected and _same(key, name, bindings)), key)
        for key in expected
        if _PLACEHOLDER.search(key)
    }
    return {names.get(key, key): value for key, value in expected.items()} if names else expected


def _entry_order(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry.get("operation", ""), entry.get("manager", ""), entry.get("subresource", "")


def _same(expected: Any, got: Any, bindings: Bindings) -> bool:
    if isinstance(expected, str) and _PLACEHOLDER.search(expected):
        if not isinstance(got, str | int) or isinstance(got, bool):
            return False
        return _matches(expected, str(got), bindings)
    return type(expected) is type(got) and bool(expected == got)


def _matches(pattern: str, text: str, bindings: Bindings) -> bool:
    """Does a string with placeholders describe `text`? Numbered placeholders are bound on the way."""
    names = _PLACEHOLDER.findall(pattern)
    literals = _PLACEHOLDER.split(pattern)[::2]
    regex = re.escape(literals[0])
    for name, literal in zip(names, literals[1:], strict=True):
        regex += f"({_MATCHES[name.rstrip('0123456789')]})" + re.escape(literal)
    found = re.fullmatch(regex, text)
    return found is not None and all(
        _fits(name, value, bindings) for name, value in zip(names, found.groups(), strict=True)
    )


def _fits(name: str, value: str, bindings: Bindings) -> bool:
    if name in {"time", "microtime"}:
        moment = datetime.datetime.fromisoformat(value)
        return abs(moment - datetime.datetime.now(datetime.UTC)) < _NEAR
    return bindings.bind(name, value) if name[-1].isdigit() else True


def _shown(value: Any) -> str:
    return "nothing" if value is _ABSENT else repr(value)


def _without_excluded(answer: dict[str, Any], path: str) -> dict[str, Any]:
    """The answer without what the form excludes from comparison, since it is no promise of the API."""
    if path.startswith("/metrics"):
        headers = {**answer["headers"], "Content-Type": answer["headers"].get("Content-Type", "").split(";")[0]}
        return {**answer, "headers": headers}
    body = answer["body"]
    if "/configmaps" in path:
        body = _without_root_certificate_note(body)
    if path.startswith("/.well-known/openid-configuration") and isinstance(body, dict):
        return {**answer, "body": {k: v for k, v in body.items() if k != "id_token_signing_alg_values_supported"}}
    return {**answer, "body": _without_descriptions(body)}


def _without_root_certificate_note(body: Any) -> Any:
    """ConfigMaps without the annotation that explains kube-root-ca.crt, whose words are free."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("items"), list):
        return {**body, "items": [_without_root_certificate_note(item) for item in body["items"]]}
    metadata = body.get("metadata") or {}
    if metadata.get("name") != "kube-root-ca.crt":
        return body
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != "kubernetes.io/description"}
    return {**body, "metadata": {**metadata, "annotations": kept}}


def _without_descriptions(body: Any) -> Any:
    if isinstance(body, list):
        return [_without_descriptions(entry) for entry in body]
    if not isinstance(body, dict):
        return body
    if body.get("kind") == "Table" and isinstance(body.get("columnDefinitions"), list):
        columns = [{k: v for k, v in column.items() if k != "description"} for column in body["columnDefinitions"]]
        return {**body, "columnDefinitions": columns}
    if isinstance(body.get("object"), dict):  # a watch event
        return {**body, "object": _without_descriptions(body["object"])}
    return body
