"""The objects of a cluster in Pull mode: the rights of its agent in the control plane, and the agent in the cluster."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from karmada.api import well_known
from karmada.joining import objects
from karmada.joining.pull.certificates import Credentials
from karmada.kube.client.config import RestConfig
from karmada.kube.objects import meta, rbac
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
)
from karmada.kube.objects.types import Obj

ROLES: Final = GVR("rbac.authorization.k8s.io", "v1", "roles")
KUBECONFIG_SECRET: Final = "karmada-kubeconfig"
KUBECONFIG_KEY: Final = "karmada-kubeconfig"
KUBECONFIG_FOLDER: Final = "/etc/kubeconfig"
AGENT_ACCOUNT: Final = "karmada-agent-sa"
CONTROL_PLANE: Final = "karmada-apiserver"
"""Name of the control plane in kubeconfigs of agents."""
_OURS: Final = {well_known.SYSTEM: well_known.TRUE}
_APP: Final = {"app": well_known.AGENT}


class Placed(NamedTuple):
    """An object and the resource it is of."""

    gvr: GVR
    obj: Obj

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def namespace(self) -> str:
        return meta.namespace(self.obj)

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.obj['kind']}/{where}{self.name}"


# in the control plane


def agent_rights(cluster: str, namespace: str) -> list[Placed]:
    """Return what the agent of a cluster may do in the control plane; namespaces are not among them.

    Leases are limited to those of the cluster, so that no agent can keep another cluster alive.
    """
    space = well_known.execution_namespace(cluster)
    whole, secrets, works = (f"system:karmada:{cluster}:{part}" for part in ("agent", "agent-secret", "agent-work"))
    agent = rbac.user(well_known.agent_user(cluster))
    return [
        Placed(CLUSTER_ROLES, rbac.role(whole, _cluster_rules(cluster), labels=_OURS)),
        Placed(CLUSTER_ROLE_BINDINGS, rbac.binding(whole, agent, labels=_OURS)),
        Placed(ROLES, rbac.role(secrets, _secret_rules(cluster), namespace, labels=_OURS)),
        Placed(ROLES, rbac.role(works, _work_rules(), space, labels=_OURS)),
        Placed(ROLE_BINDINGS, rbac.binding(secrets, agent, namespace, labels=_OURS)),
        Placed(ROLE_BINDINGS, rbac.binding(works, agent, space, labels=_OURS)),
    ]


def agent_lease(cluster: str, namespace: str) -> Placed:
    """Return the lease by which the agents of a cluster elect their leader."""
    metadata = {"name": f"{well_known.AGENT}-{cluster}", "namespace": namespace}
    return Placed(LEASES, {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata})


def _cluster_rules(cluster: str) -> list[Obj]:
    leases = [cluster, f"{well_known.AGENT}-{cluster}"]
    interpreter = ["resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"]
    return [
        _rule("cluster.karmada.io", ["clusters"], ["get", "delete"], [cluster]),
        _rule("cluster.karmada.io", ["clusters"], ["create", "list", "watch"]),
        _rule("cluster.karmada.io", ["clusters/status"], ["update"], [cluster]),
        _rule("config.karmada.io", interpreter, ["get", "list", "watch"]),
        _rule("", ["namespaces"], ["get"]),
        _rule("coordination.k8s.io", ["leases"], ["create"]),
        _rule("coordination.k8s.io", ["leases"], ["get", "update"], leases),
        _rule("certificates.k8s.io", ["certificatesigningrequests"], ["get", "create"]),
        _rule("", ["services"], ["list", "watch"]),
    ]


def _secret_rules(cluster: str) -> list[Obj]:
    own = [cluster, well_known.impersonator_secret_name(cluster)]
    return [_rule("", ["secrets"], ["get", "patch"], own), _rule("", ["secrets"], ["create"])]


def _work_rules() -> list[Obj]:
    return [
        _rule("work.karmada.io", ["works"], ["get", "create", "list", "watch", "update", "delete"]),
        _rule("work.karmada.io", ["works/status"], ["patch", "update"]),
        _rule("", ["events"], ["patch", "create", "update"]),
    ]


def _rule(group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> Obj:
    rule: Obj = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return {**rule, "resourceNames": names} if names else rule


# in the cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """How the agent of a cluster is deployed in it."""

    cluster: str
    api_endpoint: str
    """Return the endpoint by which the control plane reaches the cluster, as far as it can."""
    image: str
    namespace: str = well_known.NAMESPACE_SYSTEM
    cluster_namespace: str = well_known.NAMESPACE_CLUSTER
    replicas: int = 1
    provider: str = ""
    region: str = ""
    zones: Sequence[str] = ()
    proxy_server_address: str = ""
    rotates_certificate: bool = False


def agent_kubeconfig(control: RestConfig, cluster: str, credentials: Credentials) -> bytes:
    """JSON, which is YAML."""

    def data(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    context = f"{cluster}@{CONTROL_PLANE}"
    user = {"client-certificate-data": data(credentials.certificate), "client-key-data": data(credentials.key)}
    server = {"certificate-authority-data": data(control.ca.data), "server": control.server}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTROL_PLANE, "cluster": server}],
        "users": [{"name": cluster, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": CONTROL_PLANE, "user": cluster}}],
        "current-context": context,
    }
    return orjson.dumps(config, option=orjson.OPT_INDENT_2)


def agent_objects(agent: Agent, kubeconfig: bytes) -> list[Placed]:
    """In the order of creation, after the namespace; the Deployment is the last."""
    where = agent.namespace
    secret = objects.credentials(where, KUBECONFIG_SECRET, {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()})
    return [
        Placed(SECRETS, secret),
        Placed(CLUSTER_ROLES, objects.everything_role(well_known.AGENT)),
        Placed(ACCOUNTS, objects.service_account(where, AGENT_ACCOUNT)),
        Placed(CLUSTER_ROLE_BINDINGS, objects.role_binding(well_known.AGENT, where, AGENT_ACCOUNT)),
        Placed(DEPLOYMENTS, agent_deployment(agent)),
    ]


def agents_own_objects(agent: Agent) -> list[Placed]:
    """Return what the agent creates in the cluster for the control plane: accounts in a namespace, and a right."""
    account = well_known.service_account_name(agent.cluster)
    role = well_known.cluster_role_name(account)
    return [
        Placed(NAMESPACES, objects.namespace(agent.cluster_namespace)),
        Placed(CLUSTER_ROLES, objects.everything_role(role)),
        Placed(CLUSTER_ROLE_BINDINGS, objects.role_binding(role, agent.cluster_namespace, account)),
    ]


def agent_command(agent: Agent) -> list[str]:
    """In another namespace than the usual one the agent has to know where the Secret is whose certificate it renews."""
    elsewhere = agent.namespace != well_known.NAMESPACE_SYSTEM
    controllers = "*,certRotation" if agent.rotates_certificate else "*"
    return [
        "/bin/karmada-agent",
        f"--karmada-kubeconfig={KUBECONFIG_FOLDER}/{KUBECONFIG_KEY}",
        f"--cluster-name={agent.cluster}",
        f"--cluster-api-endpoint={agent.api_endpoint}",
        f"--cluster-provider={agent.provider}",
        f"--cluster-region={agent.region}",
        f"--cluster-zones={','.join(agent.zones)}",
        f"--controllers={controllers}",
        f"--proxy-server-address={agent.proxy_server_address}",
        f"--leader-elect-resource-namespace={agent.namespace}",
        f"--cluster-namespace={agent.cluster_namespace}",
        "--cluster-status-update-frequency=10s",
        "--metrics-bind-address=:8080",
        "--health-probe-bind-address=0.0.0.0:10357",
        "--v=2",
        *([f"--karmada-kubeconfig-namespace={agent.namespace}"] if elsewhere else []),
    ]


def agent_deployment(agent: Agent) -> Obj:
    container: Obj = {
        "name": well_known.AGENT,
        "image": agent.image,
        "command": agent_command(agent),
        "ports": [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [{"name": "kubeconfig", "mountPath": KUBECONFIG_FOLDER}],
    }
    pod: Obj = {
        "serviceAccountName": AGENT_ACCOUNT,
        "containers": [container],
        "volumes": [{"name": "kubeconfig", "secret": {"secretName": KUBECONFIG_SECRET}}],
        "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}],
    }
    labels = {**_OURS, **_APP}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": well_known.AGENT, "namespace": agent.namespace, "labels": labels},
        "spec": {
            "replicas": agent.replicas,
            "selector": {"matchLabels": _APP},
            "template": {"metadata": {"labels": _APP}, "spec": pod},
        },
    }
