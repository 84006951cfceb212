"""The kinds of faults, as plain data: what `karmadactl sim fail` sends and a fleet stores.

Faults of requests (`RequestFault`) are injected at the HTTP gate and select requests; all others change the cluster
itself while they last.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from karmada.kube.objects.types import Obj
from karmada.kube.server.http.request import Request
from karmada.kube.sim.behaviours import Rule

CONTROL_PLANE_USERS = r"^system:serviceaccount:karmada-cluster:"
"""The users as which a multi-cluster control plane calls its members."""
_READS = ("get", "list", "watch")
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Turn = Annotated[float, msgspec.Meta(gt=0)]


class Matched(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Which requests: empty fields match all. Resources are named like `deployments.apps` or `pods`."""

    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    users: str = ""
    """A regular expression, searched in the name of the caller."""
    agents: str = ""
    """A regular expression, searched in the User-Agent."""
    percent: Annotated[float, msgspec.Meta(gt=0, le=100)] = 100.0

    def __post_init__(self) -> None:
        for field in ("users", "agents"):
            try:
                re.compile(getattr(self, field))
            except re.error as error:
                raise ValueError(f"{field} is not a regular expression: {error}") from None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        return re.compile(self.users), re.compile(self.agents)

    def matches(self, request: Request) -> bool:
        info = request.info
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.resources and str(info.group_resource) not in self.resources:
            return False
        users, agents = self._patterns
        return bool(users.search(request.user.name) and agents.search(request.headers.get("User-Agent", "")))


class Slow(Matched, frozen=True, tag="slow", kw_only=True):
    """Every response takes this much longer."""

    seconds: Seconds = 2.0
    jitter: Seconds = 0.0


class Errors(Matched, frozen=True, tag="errors", kw_only=True):
    """Requests fail with an error."""

    code: Literal[401, 403, 409, 413, 429, 500, 503, 504] = 500
    retry_after: Annotated[int, msgspec.Meta(ge=0)] = 0


class ReadOnly(Matched, frozen=True, tag="read-only", kw_only=True):
    """The store takes no writes."""


class BlackHole(Matched, frozen=True, tag="black-hole", kw_only=True):
    """Requests are accepted and get no response; open watches send nothing any more."""


class Partition(Matched, frozen=True, tag="partition", kw_only=True):
    """Some clients are cut off: those of a multi-cluster control plane, unless others are named."""

    users: str = CONTROL_PLANE_USERS
    how: Literal["hang", "refuse", "watches"] = "hang"
    """No response, a closed connection, or only watches that send nothing."""


class Watches(Matched, frozen=True, tag="watches", kw_only=True):
    """Watches are cut at their next event, send nothing any more, or cannot resume from their resourceVersion."""

    how: Literal["cut", "stall", "expire"] = "cut"


class Unhealthy(msgspec.Struct, frozen=True, tag="unhealthy", kw_only=True, forbid_unknown_fields=True):
    """/readyz (or another page) returns this code while everything else works; 2xx comes without an ok."""

    pages: tuple[str, ...] = ("/readyz",)
    code: Annotated[int, msgspec.Meta(ge=201, le=599)] = 500


class Unavailable(msgspec.Struct, frozen=True, tag="unavailable", kw_only=True, forbid_unknown_fields=True):
    """A kind is not served: `deployments.apps`, or all of a group-version such as `batch/v1`."""

    what: tuple[str, ...]


class Down(msgspec.Struct, frozen=True, tag="down", kw_only=True, forbid_unknown_fields=True):
    """Nothing listens."""


class Flap(msgspec.Struct, frozen=True, tag="flap", kw_only=True, forbid_unknown_fields=True):
    """Down and up again, in turns."""

    up: Turn = 10.0
    down: Turn = 10.0


class NodeLost(msgspec.Struct, frozen=True, tag="node", kw_only=True, forbid_unknown_fields=True):
    """Nodes stop reporting: those named, those of a pool or a zone."""

    nodes: tuple[str, ...] = ()
    pool: str = ""
    zone: str = ""


class Pressure(msgspec.Struct, frozen=True, tag="pressure", kw_only=True, forbid_unknown_fields=True):
    """Nodes run short of memory, disk or process ids."""

    nodes: tuple[str, ...] = ()
    pool: str = ""
    zone: str = ""
    condition: Literal["MemoryPressure", "DiskPressure", "PIDPressure"] = "MemoryPressure"


class Pods(msgspec.Struct, frozen=True, tag="pods", kw_only=True, forbid_unknown_fields=True):
    """Pods fail: images that cannot be pulled, crashes, failing probes."""

    rule: Rule


class Isolated(msgspec.Struct, frozen=True, tag="isolate", kw_only=True, forbid_unknown_fields=True):
    """Pods that run as processes are cut off: their connections to the outside, and those through Services to them."""

    namespace: str = ""
    labels: dict[str, str] = {}
    to: str = ""
    """A regular expression, searched in host:port of the other side; empty: all, also Services to the pod."""
    how: Literal["hang", "refuse"] = "hang"

    def __post_init__(self) -> None:
        try:
            re.compile(self.to)
        except re.error as error:
            raise ValueError(f"to is not a regular expression: {error}") from None

    def matches(self, pod: Obj | None, peer: str) -> bool:
        """Return whether it cuts a connection of this pod; `peer` is empty for connections to the pod."""
        if pod is None:
            return False
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        return (
            self.namespace in ("", metadata.get("namespace"))
            and all(labels.get(key) == value for key, value in self.labels.items())
            and (not self.to or bool(peer and re.search(self.to, peer)))
        )


class Paused(msgspec.Struct, frozen=True, tag="pause", kw_only=True, forbid_unknown_fields=True):
    """A controller, the scheduler or the kubelets stop working."""

    component: str


class Clock(msgspec.Struct, frozen=True, tag="clock", kw_only=True, forbid_unknown_fields=True):
    """The cluster's clock jumps, or runs at another rate."""

    rate: Annotated[float, msgspec.Meta(ge=0.001, le=1e6)] = 1.0
    skip: Annotated[float, msgspec.Meta(ge=-3e8, le=3e8)] = 0.0


RequestFault = Slow | Errors | ReadOnly | BlackHole | Partition | Watches | Unhealthy | Unavailable
Fault = RequestFault | Down | Flap | NodeLost | Pressure | Pods | Isolated | Paused | Clock


def read(data: object) -> Fault:
    """Return a fault from its description; msgspec.ValidationError names what is wrong with it."""
    found: Fault = msgspec.convert(data, Fault)
    return found


def write(fault: Fault) -> object:
    return msgspec.to_builtins(fault)


def is_write(request: Request) -> bool:
    return request.info.is_resource and request.info.verb not in _READS
