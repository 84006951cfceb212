"""Whether a container is started again, and after which pause."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.sim.kubelet.run import Container

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
CALM_SECONDS = 600.0
"""A container that ran this long starts with a short back-off again."""
_RESOURCE_KINDS = ("limits", "requests")


def pause_before(restarts: int, ran: float) -> float:
    """Seconds from a container's end to its next start, when it was restarted so often before."""
    if restarts == 0 or ran >= CALM_SECONDS:
        return 0.0
    return BackOff(FIRST_PAUSE, LONGEST_PAUSE).pause(restarts - 1)


def restart_policy(pod: Obj, container: Container) -> str:
    return str(container.spec.get("restartPolicy") or pod["spec"].get("restartPolicy") or "Always")


def is_meant_to_end(pod: Obj, container: Container) -> bool:
    """Init containers are, and those that are not always started again."""
    return container.role == "init" or (container.role == "main" and restart_policy(pod, container) != "Always")


def restarts(pod: Obj, container: Container) -> bool:
    """Return whether a container that has ended is started again."""
    if container.role == "ephemeral":
        return False
    policy = restart_policy(pod, container)
    if container.role == "init":
        return container.exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and container.exit_code != 0)


def restarts_on_resize(container: Container) -> bool:
    """Return whether a resource that changed is one whose change the container does not survive."""
    policies = {p["resourceName"]: p["restartPolicy"] for p in container.spec.get("resizePolicy") or ()}
    if "RestartContainer" not in policies.values():
        return False
    before, after = container.resources or {}, container.spec.get("resources") or {}
    return any(
        policy == "RestartContainer"
        and any((before.get(kind) or {}).get(name) != (after.get(kind) or {}).get(name) for kind in _RESOURCE_KINDS)
        for name, policy in policies.items()
    )
