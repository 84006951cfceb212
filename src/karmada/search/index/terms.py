"""What of an object can be searched: words for free text, and tokens that stand for its labels, fields and owners.

Values of `data`, `stringData` and `binaryData` are in neither: an index of Secrets must not contain what they protect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from karmada.kube.objects.types import Obj

LABEL, FIELD, OWNER = 0, 1, 2
"""The spaces of keys."""
LONGEST_VALUE = 256
LONGEST_ANNOTATION = 1024
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
UNREAD = frozenset(("metadata", "data", "stringData", "binaryData", "apiVersion", "kind"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


class Pair(NamedTuple):
    """A label, a field or an owner (its kind and name)."""

    space: int
    key: str
    value: str

    @property
    def token(self) -> str:
        """Return one word of the index: a digest of the key, which all its values share, and one of the value."""
        return _key_token(self.space, self.key) + _digest(self.value, 10)

    @property
    def key_token(self) -> str:
        """Return how the tokens of all values of the key begin."""
        return _key_token(self.space, self.key)


class Words(NamedTuple):
    """One column of the index each, from the most telling to the least."""

    name: str
    images: str
    labels: str
    messages: str
    place: str
    rest: str
    tokens: str


def words(obj: Obj, cluster: str) -> Words:
    metadata = obj.get("metadata") or {}
    labels: dict[str, str] = metadata.get("labels") or {}
    fields = dict(_fields(obj))
    pairs = [(LABEL, key, value) for key, value in labels.items()]
    pairs += [(FIELD, key, value) for key, value in fields.items()]
    pairs += [owner_pair(owner.get("kind"), owner.get("name")) for owner in metadata.get("ownerReferences") or ()]
    return Words(
        name=metadata.get("name") or "",
        images=" ".join(sorted(set(_images(obj)))),
        labels=" ".join(f"{key} {value}" for key, value in labels.items()),
        messages=" ".join(_messages(obj)),
        place=f"{obj.get('kind')} {metadata.get('namespace') or ''} {cluster}",
        rest=" ".join((*_annotations(metadata), *_addresses(fields))),
        tokens=" ".join([_token(*pair) for pair in pairs]),
    )


def owner_pair(kind: Any, name: Any) -> Pair:
    return Pair(OWNER, str(kind).lower(), str(name))


@lru_cache(maxsize=32_768)
def _token(space: int, key: str, value: str) -> str:
    return Pair(space, key, value).token


@lru_cache(maxsize=8_192)
def _key_token(space: int, key: str) -> str:
    return "qx" + _digest(f"{space}{key}", 5)


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()


# fields


def _fields(obj: Obj) -> Iterator[tuple[str, str]]:
    """Scalars at the top and directly below (`type`, `spec.nodeName`, `status.phase`), which are no timestamps."""
    for key, value in obj.items():
        if key in UNREAD:
            continue
        if isinstance(value, dict):
            for inner, scalar in value.items():
                if (text := _scalar(scalar)) is not None:
                    yield f"{key}.{inner}", text
        elif (text := _scalar(value)) is not None:
            yield key, text


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or not value or len(value) > LONGEST_VALUE or _TIME.match(value):
        return None
    return value


# words


def _images(obj: Obj) -> Iterator[str]:
    spec = obj.get("spec")
    while isinstance(spec, dict):
        for group in ("initContainers", "containers", "ephemeralContainers"):
            for container in _dicts(spec.get(group)):
                if image := container.get("image"):
                    yield str(image)
        job = spec.get("jobTemplate")
        below = (job.get("spec") if isinstance(job, dict) else spec.get("template")) or {}
        spec = below.get("spec") if isinstance(below, dict) and not isinstance(job, dict) else below or None


def _messages(obj: Obj) -> Iterator[str]:
    """Why something is as it is: phases, reasons and messages of statuses, conditions, containers and Events."""
    status = obj.get("status")
    for part in (obj, status):
        if isinstance(part, dict):
            yield from _texts(part, "phase", "reason", "message", "note")
    if not isinstance(status, dict):
        return
    for condition in _dicts(status.get("conditions")):
        yield from _texts(condition, "reason", "message")
    for group in ("initContainerStatuses", "containerStatuses"):
        for container in _dicts(status.get(group)):
            for state in _dicts(list((container.get("state") or {}).values())):
                yield from _texts(state, "reason", "message")


def _annotations(metadata: Obj) -> Iterator[str]:
    for key, value in (metadata.get("annotations") or {}).items():
        if key != _APPLIED:
            yield key
            yield str(value)[:LONGEST_ANNOTATION]


def _addresses(fields: dict[str, str]) -> Iterator[str]:
    """Fields that people paste from somewhere else: nodes, addresses."""
    for key in ("spec.nodeName", "status.podIP", "status.hostIP", "spec.clusterIP", "spec.externalName"):
        if key in fields:
            yield fields[key]


def _texts(part: Obj, *keys: str) -> Iterator[str]:
    for key in keys:
        if isinstance(value := part.get(key), str) and value:
            yield value


def _dicts(items: Any) -> Iterator[Obj]:
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else iter(())
