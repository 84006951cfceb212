"""Used amounts grow when an object is admitted, not only when a quota controller counts the objects again.

So `kubectl describe quota` right after a create shows it, and several servers admit against the same numbers. What a
failed write leaves counted is corrected by the quota controller.
"""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.kinds import checks
from karmada.kube.kinds.pod_amounts import Usage
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvrs import QUOTAS
from karmada.kube.objects.quantity import ZERO
from karmada.kube.objects.types import Obj

_TRIES = 20


async def record_usage(client: Client, quota: Obj, extra: Usage) -> None:
    """Add `extra` to the quota's status.used; nothing for a quota that no longer exists."""
    metadata = quota["metadata"]
    for _ in range(_TRIES):
        try:
            live = await client.get(QUOTAS, metadata["name"], metadata["namespace"])
            await client.update_status(QUOTAS, _grown(live, extra))
        except NotFound:
            return
        except Conflict:
            continue
        return
    raise Conflict.stale(QUOTAS.group_resource, metadata["name"])


def _grown(quota: Obj, extra: Usage) -> Obj:
    new: Obj = copy_json(dict(quota))
    used = new["status"]["used"]
    for name, amount in extra.items():
        used[name] = str((checks.quantity(used.get(name, "0")) or ZERO) + amount)
    return new
