"""What an HTTP answer of an API server means, however it was fetched."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import ConnectionFailed, WatchEvent
from karmada.kube.objects.errors import ApiError, error_from_status
from karmada.kube.objects.types import Obj

LONGEST_PAUSE = 30.0
RETRY_SECONDS = 60.0
"""For how long a call that has no time-out is sent again."""
MAX_RETRIES = 10
_SAFE = "/:@!$&'()*+,;=-._~"
_SECONDS = re.compile(r"[0-9]{1,9}")
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
GENERIC_MESSAGES = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
"""Message of a response without a Status, by its code."""
_MESSAGES = {**GENERIC_MESSAGES, 413: "the request was too large"}


def fixed_headers(config: RestConfig) -> list[tuple[str, str]]:
    """Return what every request of a client carries, apart from its credentials."""
    system = os.uname()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(system.machine, system.machine)
    program = config.user_agent if "/" in config.user_agent else f"{config.user_agent}/v0"
    agent = f"{program} ({system.sysname.lower()}/{machine})"  # servers call a writer by what is before the slash
    encoding = "identity" if config.disable_compression else "gzip"
    return [("User-Agent", agent), *config.impersonate.headers(), ("Accept-Encoding", encoding)]


def target(path: str, query: Iterable[tuple[str, str]]) -> str:
    """Return a path and its query, escaped."""
    return quote(path, safe=_SAFE) + _encoded(tuple(query))


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Most requests of a client have the same few."""
    return f"?{urlencode(query)}" if query else ""


def parsed(content_type: str, body: bytes) -> Any:
    """Return the value of an answer; ValueError when it is not what it says it is."""
    if not body:
        return None
    if "json" not in content_type:
        return body.decode(errors="replace")
    answer = orjson.loads(body)
    if isinstance(answer, dict) and "items" in answer:
        _name_items(answer)
    return answer


def _name_items(answer: Obj) -> None:
    """Built-in lists leave apiVersion and kind of their items out; in place."""
    kind = str(answer.get("kind", "")).removesuffix("List")
    items = answer["items"]
    if items is None:
        answer["items"] = []
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("the server responded with a list whose items are no objects")
    if kind and items and "metadata" in items[0]:
        api_version = answer.get("apiVersion", "")
        for item in items:
            item.setdefault("apiVersion", api_version)
            item.setdefault("kind", kind)


def watch_event(base: str, line: bytes) -> WatchEvent:
    """Return the event of one line of a watch; ApiError when it is an ERROR event, ConnectionFailed when it is none."""
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if not isinstance(obj, dict) or (kind == "ERROR" and not _is_readable(obj)):
            raise TypeError("no object in it")
    except (ValueError, TypeError, LookupError) as error:
        raise ConnectionFailed(f"{base}: the watch sent what is no event: {error}") from error
    if kind == "ERROR":
        raise error_from_status(obj)
    return WatchEvent(kind, obj)


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; None when the response does not request a retry."""
    if status != 429 and status < 500:
        return None
    value = str(headers.get("Retry-After", ""))
    return float(value) if _SECONDS.fullmatch(value) else None


def warnings(headers: Iterable[str]) -> Iterator[str]:
    """Yield the texts of Warning headers."""
    for header in headers:
        for found in _WARNING.finditer(header):
            yield re.sub(r"\\(.)", r"\1", found[1])


def failure(base: str, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """Return the error of an answer that is none of the wanted ones."""
    if 300 <= status < 400:
        return ConnectionFailed(f"{base}: {elsewhere(status, headers)}")
    return refusal(status, headers, body)


def elsewhere(status: int, headers: Mapping[str, str]) -> str:
    try:
        host = urlsplit(str(headers.get("Location", ""))).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    return f"the server responded with {status} and points to {host or 'another path'}; redirects are not followed"


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the error of a response: its Status, or one made from its code alone."""
    status_object = status_of(body)
    if status_object is not None:
        return error_from_status(status_object, http_code=status)
    message = (
        _MESSAGES.get(status) or body.decode(errors="replace").strip()[:2048] or f"the server responded with {status}"
    )
    pause = retry_after(status, headers)
    details = {"retryAfterSeconds": int(pause)} if pause is not None else None
    return error_from_status({"code": status, "message": message, "details": details})


def status_of(body: bytes) -> Obj | None:
    """Return a Status, if the body is one in all that is read of it."""
    if body[:1] != b"{":
        return None
    try:
        status_object: Obj = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return status_object if status_object.get("kind") == "Status" and _is_readable(status_object) else None


def _is_readable(status: Obj) -> bool:
    parts = (status.get("details"), status.get("metadata"))
    return isinstance(status.get("code") or 0, int) and all(isinstance(part or {}, dict) for part in parts)
