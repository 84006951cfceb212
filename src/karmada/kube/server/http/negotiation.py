"""Content negotiation: which form of the answer a client's Accept header asks for, and which body it may send.

Answers are JSON or YAML, plain or as Table or PartialObjectMetadata. Every client that prefers protobuf or CBOR also
lists JSON, so those clauses are passed over.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from karmada.kube.objects.errors import NotAcceptable

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"


class Form(NamedTuple):
    """media is JSON or YAML; transform is "", Table or PartialObjectMetadata; version that of meta.k8s.io."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"


PLAIN = Form()


class Clause(NamedTuple):
    media: str
    params: dict[str, str]
    quality: float


@lru_cache(maxsize=1024)
def parse_accept(header: str) -> tuple[Clause, ...]:
    """The clauses of an Accept header, best first; wildcards after exact types of the same quality."""
    clauses: list[Clause] = []
    for part in header.split(","):
        media, *raw = [piece.strip() for piece in part.split(";")]
        if not media:
            continue
        params = {key.strip(): value.strip() for key, _, value in (piece.partition("=") for piece in raw)}
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 0.0
        clauses.append(Clause(media.lower(), params, quality))
    order = sorted(enumerate(clauses), key=lambda item: (-item[1].quality, "*" in item[1].media, item[0]))
    return tuple(clause for _, clause in order if clause.quality > 0)


@lru_cache(maxsize=1024)
def negotiate(header: str, kind: str) -> Form:
    """`kind` says what the endpoint can turn into: "object", "list", "watch", or "" (no transforms)."""
    if not header:
        return PLAIN
    for clause in parse_accept(header):
        media = _media(clause.media)
        if media is None or (media == YAML and kind == "watch"):
            continue
        transform = clause.params.get("as", "")
        if not transform:
            return Form(media)
        version = clause.params.get("v", "v1")
        if clause.params.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1") and _can(transform, kind):
            return Form(media, "Table" if transform == "Table" else "PartialObjectMetadata", version)
    raise NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")


def _media(media: str) -> str | None:
    if media in (JSON, "*/*", "application/*"):
        return JSON
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return YAML
    return None


def _can(transform: str, kind: str) -> bool:
    if transform == "Table":
        return kind in ("object", "list", "watch")
    if transform == "PartialObjectMetadataList":
        return kind == "list"
    return transform == "PartialObjectMetadata" and kind in ("object", "watch")


def wants_pretty(pretty: str, user_agent: str) -> bool:
    if pretty:
        return pretty in ("1", "true")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))
