"""Waiting until a Deployment runs as it should, and why it does not."""

from __future__ import annotations

from karmada.joining.join import JoinError
from karmada.joining.pull.objects import Placed
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj


def is_rolled_out(deployment: Obj) -> bool:
    """Return whether every replica is of the current template and available."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = spec.get("replicas", 1)
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return observed and all(count == wanted for count in counts)


async def wait_for_rollout(client: Client, deployment: Placed, *, seconds: float, clock: Clock) -> None:
    """JoinError, with what is wrong with the pods, when it takes longer."""
    place = f"{deployment.namespace}/{deployment.name}"

    def look(found: Obj | None) -> bool | None:
        if found is None:
            raise JoinError(f"Deployment {place} was deleted while it was rolled out")
        return True if is_rolled_out(found) else None

    gvr, name, namespace = deployment.gvr, deployment.name, deployment.namespace
    try:
        await wait_for(client, gvr, name, namespace, look, clock=clock, seconds=seconds)
    except TimeoutError:
        problems = await _problems(client, deployment)
        raise JoinError(
            f"Deployment {place} is not ready after {format_duration(seconds)}: {'; '.join(problems)}"
        ) from None


async def _problems(client: Client, deployment: Placed) -> list[str]:
    selector = ",".join(f"{k}={v}" for k, v in deployment.obj["spec"]["selector"]["matchLabels"].items())
    pods = (await client.list_all(PODS, deployment.namespace, label_selector=selector)).items
    return [f"pod {pod['metadata']['name']}: {problem_of(pod)}" for pod in pods] or ["it has no pods"]


def problem_of(pod: Obj) -> str:
    """Why a pod is not ready, in a few words."""
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            for entry in (state.get("waiting"), state.get("terminated")):
                if entry:
                    parts = (entry.get("reason"), entry.get("message"))
                    return ": ".join(part.strip() for part in parts if part) or "not running"
    for entry in status.get("conditions") or ():
        if entry.get("status") == "False" and entry.get("message"):
            return str(entry["message"])
    return str(status.get("phase") or "Pending")
