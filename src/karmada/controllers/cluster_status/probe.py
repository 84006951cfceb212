"""The probe: is a member's API server reachable, and is it ready?

It requests `/readyz`, or `/healthz` where that page does not exist. No response and codes outside 200 to 206 mean that
the cluster is not reachable; 200 is ready; anything between is a server that is reachable and not ready. The request
has a time-out of its own, far shorter than that of others: a server that needs longer for this is of no use to
workloads, and a worker is busy no longer than until the next probe is due. That this process could not run for a while,
on a machine that has too much to do, is no failure of a cluster.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from karmada.kube.client.limits import PROBE_BYTES
from karmada.kube.client.transport import Call, ConnectionFailed, RawResponse, Transport
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import with_timeout

READY = "Ready"
MOST_SECONDS = 10.0
_MOST_BYTES = 500
_STEPS = 4
"""In which the time-out is counted: while this process does not run, one of them passes."""


class Health(Enum):
    OFFLINE = "offline"
    UNHEALTHY = "unhealthy"
    HEALTHY = "healthy"


class Probed(NamedTuple):
    health: Health
    why: str = ""
    """The cause, for the log; the condition has only the standard message."""


def _ready(status: str, reason: str, message: str) -> Obj:
    return {"type": READY, "status": status, "reason": reason, "message": message}


CONDITIONS = {
    Health.OFFLINE: _ready("False", "ClusterNotReachable", "cluster is not reachable"),
    Health.UNHEALTHY: _ready(
        "False", "ClusterNotReady", "cluster is reachable but health endpoint responded without ok"
    ),
    Health.HEALTHY: _ready("True", "ClusterReady", "cluster is healthy and ready to accept workloads"),
}


def no_access(why: Exception) -> Obj:
    """Return the condition of a cluster whose settings do not allow a request."""
    return _ready("False", "StatusCollectionFailed", f"failed to create a ClusterClient: {why}")


def timeout_for(period: float) -> float:
    """Not the 32 seconds of other requests: a hanging probe must be over before the next one is due."""
    return min(MOST_SECONDS, period)


async def probe(transport: Transport, clock: Clock, timeout: float) -> Probed:
    try:
        answer = await with_timeout(clock, _request(transport), timeout, steps=_STEPS)
    except ConnectionFailed as error:
        return Probed(Health.OFFLINE, str(error))
    except TimeoutError:
        return Probed(Health.OFFLINE, f"no response within {timeout:g}s")
    code = answer.status
    if code == 200:
        return Probed(Health.HEALTHY)
    said = answer.body[:_MOST_BYTES].decode(errors="replace").strip()
    return Probed(Health.UNHEALTHY if 200 < code <= 206 else Health.OFFLINE, f"{code} {said}".strip())


async def _request(transport: Transport) -> RawResponse:
    answer = await transport.answer(Call("GET", "/readyz", most=PROBE_BYTES))
    if answer.status == 404:
        answer = await transport.answer(Call("GET", "/healthz", most=PROBE_BYTES))
    return answer
