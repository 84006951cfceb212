"""ClusterRole aggregation: a role with an aggregationRule has the rules of all roles its selectors match."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.kinds.rbac import aggregate
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvrs import CLUSTER_ROLES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key

_EVERYTHING = Key("", "")


def _all(_role: Obj) -> tuple[Key, ...]:
    return (_EVERYTHING,)


class ClusterRoleAggregation(Reconciler):
    """Any role may feed any aggregating one, so all that aggregate are reconciled together, under one key.

    Changes that come together, as all roles do at the start, cost one reconcile.
    """

    name = "clusterrole-aggregation"
    watches = (Watch(CLUSTER_ROLES, map_to=_all),)

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._roles = informers.of(CLUSTER_ROLES)

    async def reconcile(self, _key: Key) -> Result:
        everything = self._roles.list()
        for role in everything:
            rules = aggregate(role, everything)
            if rules is not None:
                await self._client.update(CLUSTER_ROLES, {**copy_json(role), "rules": rules})
        return Done
