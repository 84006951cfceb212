"""Why a workload does not become ready: its pods' conditions, events and last log lines, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada.joining.pull.rollout import is_rolled_out, problem_of
from karmada.kube.client.client import Client, resource_path
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import EVENTS, PODS
from karmada.kube.objects.types import Obj

LOG_LINES: Final = 10
MOST_EVENTS: Final = 5
_OWNERS: Final = ("Deployment", "ReplicaSet", "StatefulSet")
_ADVICE: Final[Mapping[str, str]] = {
    "ErrImagePull": "name a registry that has the image (--private-image-registry) or the image itself "
    "(--COMPONENT-image), and how to log in there (--image-pull-secrets)",
    "ErrImageNeverPull": "load the image into the nodes, or say --image-pull-policy IfNotPresent",
    "InvalidImageName": "correct the image (--COMPONENT-image)",
    "FailedScheduling": "add a node, or free what its message names; a volume needs a storage class "
    "(--storage-classes-name)",
    "FailedCreate": "the namespace refuses its pods: see its quotas and its Pod Security level",
    "FailedMount": "its message names what is missing; running init again puts Secrets back",
    "CrashLoopBackOff": "its last log lines say why it ends; flags are added with --COMPONENT-extra-args",
    "RunContainerError": "its image has not the program: name another image (--COMPONENT-image)",
    "Unhealthy": "it runs, but does not answer its probe; its log says what it waits for",
}
_ALIASES: Final = {
    "ImagePullBackOff": "ErrImagePull",
    "Failed": "ErrImagePull",
    "BackOff": "CrashLoopBackOff",
    "StartError": "RunContainerError",
    "CreateContainerError": "RunContainerError",
    "Error": "CrashLoopBackOff",
}


def is_ready(workload: Obj) -> bool:
    """Return whether all replicas of a Deployment or StatefulSet are of its current template and available."""
    if workload["kind"] != "StatefulSet":
        return is_rolled_out(workload)
    spec, status = workload["spec"], workload.get("status") or {}
    wanted = spec.get("replicas", 1)
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "readyReplicas")]
    return status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 0) and all(
        count == wanted for count in counts
    )


def is_pod_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def summary(workload: Obj, pods: Sequence[Obj]) -> str:
    """Return what is awaited, in one line."""
    wanted = workload["spec"].get("replicas", 1)
    ready = sum(map(is_pod_ready, pods))
    waiting = [pod for pod in pods if not is_pod_ready(pod)]
    if not waiting:
        return f"{ready} of {wanted} pods ready"
    first = waiting[0]
    return f"{ready} of {wanted} pods ready; {first['metadata']['name']}: {problem_of(first)}"


def advice(reasons: Sequence[str]) -> str:
    """Return what to do, by the first reason that is known."""
    for reason in reasons:
        found = _ADVICE.get(_ALIASES.get(reason, reason))
        if found:
            return found
    return "see its events and logs in the host cluster"


async def pods_of(client: Client, workload: Obj) -> list[Obj]:
    selector = ",".join(f"{key}={text}" for key, text in workload["spec"]["selector"]["matchLabels"].items())
    return (await client.list_all(PODS, workload["metadata"]["namespace"], label_selector=selector)).items


async def explain(client: Client, workload: Obj) -> str:
    """Several lines: every pod that is not ready with its events and log, and what to do."""
    namespace = workload["metadata"]["namespace"]
    pods = await pods_of(client, workload)
    events = (await client.list_all(EVENTS, namespace)).items
    waiting = [pod for pod in pods if not is_pod_ready(pod)]
    reasons: list[str] = []
    lines = []
    for pod in waiting:
        name = pod["metadata"]["name"]
        own = [event for event in events if event["involvedObject"].get("name") == name]
        reasons += [*_reasons(pod), *_warnings(own)]
        lines += [f"pod {name}: {problem_of(pod)}", *map(_event_line, own[-MOST_EVENTS:])]
        lines += [f"  log: {line}" for line in await last_lines(client, pod)]
    if not pods:
        owners = [event for event in events if _is_of(event, workload)]
        reasons += _warnings(owners)
        lines += ["it has no pods", *map(_event_line, owners[-MOST_EVENTS:])]
    return "\n".join([*lines, f"What to do: {advice(reasons)}."])


def _is_of(event: Obj, workload: Obj) -> bool:
    involved = event["involvedObject"]
    return involved.get("kind") in _OWNERS and str(involved.get("name", "")).startswith(workload["metadata"]["name"])


def _reasons(pod: Obj) -> list[str]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    found = []
    for status in statuses:
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            found += [entry["reason"] for entry in state.values() if entry and entry.get("reason")]
    return found


def _warnings(events: Sequence[Obj]) -> list[str]:
    return [event["reason"] for event in reversed(events) if event.get("type") == "Warning"]


def _event_line(event: Obj) -> str:
    return f"  event: {event.get('type')} {event.get('reason')}: {event.get('message')}"


async def last_lines(client: Client, pod: Obj) -> list[str]:
    """Return the last lines of the container's last run; empty when there is no log."""
    metadata = pod["metadata"]
    path = resource_path(PODS, metadata["namespace"], metadata["name"], "log")
    query = {"tailLines": str(LOG_LINES)}
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if any((status.get("state") or {}).get("waiting") and status.get("restartCount") for status in statuses):
        query["previous"] = "true"
    if not any(status.get("containerID") or status.get("restartCount") for status in statuses):
        return []
    try:
        stream = client.transport.stream(Call("GET", path, query))
        content = b"".join([piece async for piece in stream])
    except (ApiError, ConnectionFailed):
        return []
    return content.decode(errors="replace").splitlines()


def condition(obj: Obj, kind: str) -> dict[str, Any]:
    """Return a condition of an object; empty when it has none of that type."""
    found = ((obj.get("status") or {}).get("conditions")) or ()
    return next((each for each in found if each["type"] == kind), {})
