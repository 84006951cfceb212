"""How many seats a request takes: by the objects that it looks at, how each is matched, and in what form it is written.

Before a request is carried out that is an estimate, by the number of objects there are. Afterwards its flow is charged
for what it was: who was given more waits the longer for the next seat, who was given less does not.
"""

from __future__ import annotations

from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ListResult, Result

MOST = 10
"""Seats of one request at most, as in Kubernetes."""
SEAT = 4_000
"""Objects whose bytes are sent as they are, for one seat: some 50 ms for each seat."""
_PARSED, _YAML = 10, 100
"""What it costs to write an object in another form, in times of sending its bytes."""
_USUAL = 2_048
"""Bytes of an object for which that is so."""
_LOOKS = 8
"""Objects of a list by which its size is judged."""
_MANY = frozenset({"list", "watch", "deletecollection"})


def estimated(request: Request, count: int) -> int:
    """Return the seats of a request for a resource of which there are so many objects."""
    limit = _limit(request)
    shown = count if _requirements(request) or not limit else min(count, limit)
    return _seats(_matching(request, count) + shown * _form(request))


def actual(request: Request, result: Result | None, count: int) -> int:
    """Return the seats that a request should have had, by its result."""
    if not isinstance(result, ListResult):
        return _seats(_matching(request, count))
    entries = result.entries
    number = len(entries if result.objects is None else result.objects)
    some = entries[:: max(1, number // _LOOKS)][:_LOOKS]
    size = sum(entry.weight for entry in some) / max(1, len(some))
    return _seats(_matching(request, count) + number * _form(request) * max(1.0, size / _USUAL))


def reads_many(request: Request) -> bool:
    """Return whether a request looks at all objects of a resource."""
    if request.info.verb not in _MANY or request.info.name:
        return False
    return request.info.verb != "watch" or request.query.get("resourceVersion") in ("", "0")


def _seats(units: float) -> int:
    return min(MOST, 1 + int(units / SEAT))


def _matching(request: Request, count: int) -> int:
    return count * _requirements(request)


def _requirements(request: Request) -> int:
    texts = (request.query.get("labelSelector"), request.query.get("fieldSelector"))
    return sum(text.count(",") + 1 for text in texts if text)


def _form(request: Request) -> int:
    accept = request.headers.get("Accept", "")
    if "yaml" in accept:
        return _YAML
    return _PARSED if "as=" in accept or "protobuf" in accept else 1


def _limit(request: Request) -> int:
    text = request.query.get("limit")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
