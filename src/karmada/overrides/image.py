"""Image references, and the overrider that changes a part of them.

A reference is `[registry/]repository[:tag|@digest]`. Parsing is strict: what container runtimes would refuse is an
error, because a wrong image that is passed on fails much later and far away. What comes out is not checked again: an
overrider may well make nonsense of an image, and then does what it says.

The first part of a name is a registry only when it looks like a host (a dot, a port, or localhost); nothing is ever
added that was not there. With both a tag and a digest the digest is dropped, whatever is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.overrides.containers import CONTAINERS, Change, nested_list, replaced
from karmada.overrides.errors import CannotApply
from karmada.overrides.plaintext import patched

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = rf"{_PART}(?:/{_PART})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"

_reference = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?(?P<path>{_PATH}))(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
).fullmatch
_is_tag = re.compile(_TAG).fullmatch
_is_digest = re.compile(_DIGEST).fullmatch
_algorithm_form = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*").fullmatch
_lower_hex = re.compile(r"[0-9a-f]+").fullmatch

_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_LONGEST_PATH: Final = 255


class Image(NamedTuple):
    """Parts that are absent are empty."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        registry = f"{self.registry}/" if self.registry else ""
        version = f":{self.tag}" if self.tag else f"@{self.digest}" if self.digest else ""
        return f"{registry}{self.repository}{version}"


def parse_image(text: str) -> Image:
    """Return the parts of a reference; ValueError when it is none."""
    match = _reference(text)
    if match is None:
        raise ValueError(_why_not(text))
    if len(match["path"]) > _LONGEST_PATH:
        raise ValueError(f"repository name must not be more than {_LONGEST_PATH} characters")
    digest = match["digest"] or ""
    if digest:
        _check_digest(digest)
    name, tag = match["name"], match["tag"] or ""
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, repository = first, rest
    else:
        registry, repository = "", name
    return Image(registry, repository, tag, "" if tag else digest)


def _why_not(text: str) -> str:
    if not text:
        return "repository name must have at least one component"
    if _reference(text.lower()) is not None:
        return "repository name must be lowercase"
    return "invalid reference format"


def _check_digest(digest: str) -> None:
    algorithm, _, checksum = digest.partition(":")
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        known_form = _algorithm_form(algorithm) is not None
        raise ValueError("unsupported digest algorithm" if known_form else "invalid checksum digest format")
    if len(checksum) != length:
        raise ValueError("invalid checksum digest length")
    if _lower_hex(checksum) is None:
        raise ValueError("invalid checksum digest format")


# parts


def _version(image: Image, text: str) -> Image:
    """As a tag if it can be one, else as a digest; what can be neither changes nothing."""
    if _is_tag(text):
        return image._replace(tag=text, digest="")
    if _is_digest(text):
        return image._replace(tag="", digest=text)
    return image


def _without_version(image: Image, _value: str) -> Image:
    return image._replace(tag="") if image.tag else image._replace(digest="")


_Edit = Callable[[Image, str], Image]
_EDITS: Final[dict[str, dict[str, _Edit]]] = {
    "Registry": {
        "add": lambda image, value: image._replace(registry=image.registry + value),
        "replace": lambda image, value: image._replace(registry=value),
        "remove": lambda image, _value: image._replace(registry=""),
    },
    "Repository": {
        "add": lambda image, value: image._replace(repository=image.repository + value),
        "replace": lambda image, value: image._replace(repository=value),
        "remove": lambda image, _value: image._replace(repository=""),
    },
    "Tag": {
        "add": lambda image, value: _version(image, (image.tag or image.digest) + value),
        "replace": _version,
        "remove": _without_version,
    },
}


@lru_cache(maxsize=4096)
def rewritten(text: str, component: str, operator: str, value: str) -> str:
    """Return an image with one part changed; CannotApply when it is none or the change is not known."""
    edits = _EDITS.get(component)
    if edits is None:
        raise CannotApply(f"unsupported image component({component})")
    edit = edits.get(operator)
    if edit is None:
        raise CannotApply(f"unsupported operator({operator})")
    try:
        image = parse_image(text)
    except ValueError as error:
        raise CannotApply(f"failed to parse image value({text}), error: {error}") from None
    return str(edit(image, value))


# the overrider


def image_change(overrider: Obj) -> Change:
    component, operator = overrider.get("component") or "", overrider.get("operator") or ""
    value, predicate = overrider.get("value") or "", overrider.get("predicate")

    def rewrite(text: str) -> str:
        return rewritten(text, component, operator, value)

    if predicate is None:
        return lambda obj: _in_containers(obj, rewrite)
    path = predicate.get("path") or ""
    return lambda obj: _at(obj, path, rewrite)


def _in_containers(obj: Obj, rewrite: Callable[[str], str]) -> Obj:
    kind = obj["kind"]
    path = CONTAINERS.get(kind)
    if path is None:
        return obj
    try:
        containers = nested_list(obj, path)
        if not containers:
            return obj
        images = [_image_of(container) for container in containers]
    except CannotApply as error:
        raise CannotApply(f"failed to convert {kind} from unstructured object: {error}") from None
    new = [rewrite(image) for image in images]
    if new == images:
        return obj
    return replaced(
        obj, path, [{**container, "image": image} for container, image in zip(containers, new, strict=True)]
    )


def _image_of(container: Any) -> str:
    image = container.get("image") if isinstance(container, dict) else container
    if not isinstance(container, dict) or not (image is None or isinstance(image, str)):
        raise CannotApply(f"cannot read the image of a container from {image!r}")
    return image or ""


def _at(obj: Obj, path: str, rewrite: Callable[[str], str]) -> Obj:
    try:
        image = _text_at(obj, path)
    except CannotApply as error:
        raise CannotApply(f"failed to obtain imageValue with predicate path({path}), error: {error}") from None
    new = rewrite(image)
    if new == image:
        return obj
    changed: Obj = patched(obj, [{"op": "replace", "path": path, "value": new}])
    return changed


def _text_at(obj: Obj, path: str) -> str:
    """Read as a plain path: escapes mean nothing, and slashes at the ends are ignored."""
    if not path.startswith("/"):
        raise CannotApply("imagePath should be start with / character")
    parts = path.strip("/").split("/")
    value: Any = obj
    for part in parts[:-1]:
        value = _below(value, part)
        if not isinstance(value, (dict, list)):
            raise CannotApply(f"path({part}) of rawObj's type is not map[string]interface{{}} and []interface{{}}")
    last = parts[-1]
    image = value.get(last) if isinstance(value, dict) else _below(value, last)
    if not isinstance(image, str):
        raise CannotApply(f"failed to convert path({last}) to string")
    return image


def _below(value: Any, part: str) -> Any:
    """Return the maps below a path; of lists only elements that are maps count."""
    if isinstance(value, dict):
        return value.get(part)
    if not part.isascii() or not part.isdecimal():
        raise CannotApply(f"path({part}) of rawObj's is not number")
    index = int(part)
    if index >= len(value):
        raise CannotApply(f"path({part}) of rawObj's is out of range")
    found = value[index]
    if not isinstance(found, dict):
        raise CannotApply(f"path({part}) of rawObj's type is not map[string]interface{{}} and []interface{{}}")
    return found
