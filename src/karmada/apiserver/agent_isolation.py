"""What an agent may not do beyond its own cluster, where RBAC alone would let it.

The roles of an agent cannot limit a create to a name, nor a list to one object, and those that other programs create
may be wider than ours. So whoever has the certificate of one cluster's agent (in another company, at the edge) gets:

 - of Clusters its own: a list or watch of all is one of that, a create must be of its name, with an id that is new;
 - of execution namespaces its own, with all that is in them, and Events nowhere else;
 - of Leases those of its cluster and of its election, of signing requests those it made, for itself only;
 - of the Secrets with clusters' credentials its own two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from karmada.api import well_known
from karmada.api.cluster_bounds import bounded
from karmada.apiserver.cluster_resource import CLUSTERS
from karmada.kube.kinds.resource import Reader
from karmada.kube.kinds.signing_requests import requested_user
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, Attributes, Plugin
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query, Request

LEASES: Final = GroupResource("coordination.k8s.io", "leases")
SECRETS: Final = GroupResource("", "secrets")
SIGNING_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")
EVENTS: Final = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
_READS: Final = ("get", "list", "watch")
_CHECKED: Final = frozenset({CLUSTERS, LEASES, SECRETS, SIGNING_REQUESTS})


def cluster_of(user: User) -> str | None:
    """Return the cluster whose agent a user is."""
    if well_known.AGENT_GROUP not in user.groups or user.is_master:
        return None
    return well_known.cluster_of_agent(user.name)


class AgentIsolation(Plugin):
    """`restrict` is for every request, the plug-in for what is created."""

    name = "AgentIsolation"
    mutates = False

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    # requests

    def restrict(self, request: Request) -> None:
        """Refuse or narrow a request of an agent, in place."""
        info = request.info
        if well_known.AGENT_GROUP not in request.user.groups or not info.is_resource:
            return  # most requests are not of agents
        cluster = cluster_of(request.user)
        if cluster is None:
            return
        resource = info.group_resource
        if well_known.cluster_of_namespace(info.namespace) not in (None, cluster):
            raise _refused(resource, info.name, request.user, cluster)
        if resource in EVENTS and info.verb not in _READS and info.namespace != well_known.execution_namespace(cluster):
            raise _refused(resource, info.name, request.user, cluster)
        if resource == CLUSTERS and info.verb in ("list", "watch") and info.name in ("", cluster):
            _narrow(request, cluster)
        elif info.name and not self._is_own(resource, info.namespace, info.name, request.user, cluster):
            raise _refused(resource, info.name, request.user, cluster)

    def _is_own(self, resource: GroupResource, namespace: str, name: str, user: User, cluster: str) -> bool:
        if resource == CLUSTERS:
            return name == cluster
        if resource == SECRETS:
            return name in _own_secrets(cluster)
        if resource == LEASES:
            return _is_own_lease(namespace, name, cluster)
        if resource == SIGNING_REQUESTS:
            found = self._reader.get(SIGNING_REQUESTS, "", name)
            return found is None or found["spec"].get("username") == user.name
        return True

    # creates

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation == CREATE and not attributes.subresource and attributes.group_resource in _CHECKED

    async def validate(self, attributes: Attributes) -> None:
        cluster, obj, resource = cluster_of(attributes.user), attributes.obj, attributes.group_resource
        if cluster is None or obj is None:
            return
        name = meta.name(obj)
        if resource == LEASES:
            own = _is_own_lease(attributes.namespace, name, cluster)
        elif resource == SECRETS:
            own = name in _own_secrets(cluster)
        elif resource == SIGNING_REQUESTS:
            own = requested_user(obj) == attributes.user.name
        else:
            own = name == cluster
            _check_lengths(obj)
            self._check_id(obj, cluster)
        if not own:
            raise _refused(resource, name, attributes.user, cluster)

    def _check_id(self, obj: Obj, cluster: str) -> None:
        """Agents see no other Cluster, so they cannot check this themselves."""
        wanted = (obj.get("spec") or {}).get("id")
        if wanted and any(other["spec"].get("id") == wanted for other in self._reader.list(CLUSTERS)):
            why = f"the cluster ID {wanted} or the cluster name {cluster} has been registered"
            raise Forbidden.of(CLUSTERS, meta.name(obj), why)


def _check_lengths(cluster: Obj) -> None:
    """Refuse a cluster whose place or id is too long: the scheduler and each viewer get them."""
    spec = cluster.get("spec") or {}
    for field in ("id", "provider", "region", "zone", "zones"):
        if bounded(spec.get(field)) != spec.get(field):
            raise Forbidden.of(CLUSTERS, meta.name(cluster), f"spec.{field} is too long")


def _own_secrets(cluster: str) -> tuple[str, str]:
    return cluster, well_known.impersonator_secret_name(cluster)


def _is_own_lease(namespace: str, name: str, cluster: str) -> bool:
    own = namespace == well_known.NAMESPACE_CLUSTER and name == cluster
    return own or name == f"{well_known.AGENT}-{cluster}"


def _narrow(request: Request, cluster: str) -> None:
    own = f"metadata.name={cluster}"
    given = request.query.get("fieldSelector")
    values = {key: request.query.all(key) for key, _ in request.query.items()}
    request.query = Query({**values, "fieldSelector": [f"{given},{own}" if given else own]})
    request.info = replace(request.info, name=cluster)


def _refused(resource: GroupResource, name: str, user: User, cluster: str) -> Forbidden:
    why = f'user "{user.name}" is the agent of cluster {cluster} and has rights to what is its own only'
    return Forbidden.of(resource, name, why)
