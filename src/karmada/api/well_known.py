"""Names that several parts agree on: namespaces, labels, annotations, finalizers, taints, and names made from others.

Grouped by what they are put on or say; each constant is named after its use, not after its text.
"""

from __future__ import annotations

from functools import lru_cache

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.names import short_hash

# Namespaces.

NAMESPACE_SYSTEM = "karmada-system"
"""Where the control plane's own components and settings are."""
NAMESPACE_CLUSTER = "karmada-cluster"
"""Where the leases and credentials of member clusters are."""
EXECUTION_PREFIX = "karmada-es-"


def execution_namespace(cluster: str) -> str:
    """Where the Works for a cluster are."""
    return EXECUTION_PREFIX + cluster


def cluster_of_namespace(namespace: str) -> str | None:
    """The cluster whose Works are in a namespace; None for other namespaces."""
    return namespace.removeprefix(EXECUTION_PREFIX) if namespace.startswith(EXECUTION_PREFIX) else None


def is_reserved_namespace(namespace: str) -> bool:
    """Whether nothing in a namespace is ever propagated."""
    return namespace in (NAMESPACE_SYSTEM, NAMESPACE_CLUSTER) or namespace.startswith(EXECUTION_PREFIX)


# Users, groups and rights by which clusters register in Pull mode and their agents work.

BOOTSTRAP_GROUP = "system:bootstrappers:karmada:default-cluster-token"
"""The group of bootstrap tokens that clusters register with."""
AGENT_GROUP = "system:karmada:agents"
AGENT_USER_PREFIX = "system:karmada:agent:"
RBAC_GENERATOR = f"{AGENT_USER_PREFIX}rbac-generator"
"""Creates the rights of an agent while its cluster registers."""
APPROVE_AGENT, APPROVE_SELF = "clusteragent", "selfclusteragent"
"""Subresources of signing requests: who may create them gets agents' certificates, or its own renewed."""
AGENT = "karmada-agent"


def agent_user(cluster: str) -> str:
    """The user that the agent of a cluster is in the control plane."""
    return AGENT_USER_PREFIX + cluster


def cluster_of_agent(user: str) -> str | None:
    """The cluster whose agent a user is; None for other users."""
    if user == RBAC_GENERATOR or not user.startswith(AGENT_USER_PREFIX):
        return None
    return user.removeprefix(AGENT_USER_PREFIX)


# Labels that carry the permanent id of an object, on itself and on what was made from it.

POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_ID = "clusterpropagationpolicy.karmada.io/permanent-id"
BINDING_ID = "resourcebinding.karmada.io/permanent-id"
CLUSTER_BINDING_ID = "clusterresourcebinding.karmada.io/permanent-id"
WORK_ID = "work.karmada.io/permanent-id"
MULTICLUSTER_SERVICE_ID = "multiclusterservice.karmada.io/permanent-id"

# Labels on member objects and on the control plane's own.

MANAGED = "karmada.io/managed"
"""On everything that was put into a member cluster from here; "true"."""
SYSTEM = "karmada.io/system"
"""On what belongs to the control plane itself; "true"."""
TRUE = "true"
BOOTSTRAPPING = "karmada.io/bootstrapping"

# Labels on templates.

DELETION_PROTECTED = "resourcetemplate.karmada.io/deletion-protected"
DELETION_PROTECTED_ALWAYS = "Always"
RETAIN_REPLICAS = "resourcetemplate.karmada.io/retain-replicas"
"""The replicas in member clusters are not ours to change; "true"."""
CLAIMED_BY = "resourcetemplate.karmada.io/claimed-by"
"""Who has the template to itself: policies leave it alone."""
BINDING_MANAGED_BY = "binding.karmada.io/managed-by"
SKIP_AUTO_PROPAGATION = "namespace.karmada.io/skip-auto-propagation"
DEPENDED_BY_PREFIX = "resourcebinding.karmada.io/depended-by-"

# Labels (and, for claimed Services and their bindings, annotations) that say what a Work was made for.

MULTICLUSTER_SERVICE_NAMESPACE = "multiclusterservice.karmada.io/namespace"
MULTICLUSTER_SERVICE_NAME = "multiclusterservice.karmada.io/name"
ENDPOINT_SLICE_NAMESPACE = "endpointslice.karmada.io/namespace"
ENDPOINT_SLICE_NAME = "endpointslice.karmada.io/name"
ENDPOINT_SLICE_WORK_MANAGED_BY = "endpointslice.karmada.io/managed-by"
QUOTA_NAMESPACE = "federatedresourcequota.karmada.io/namespace"
QUOTA_NAME = "federatedresourcequota.karmada.io/name"
INGRESS_NAMESPACE = "multiclusteringress.karmada.io/namespace"
INGRESS_NAME = "multiclusteringress.karmada.io/name"
ENDPOINT_SLICE_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINT_SLICE_DISPATCHER = "endpointslice-dispatch-controller.karmada.io"
ENDPOINT_SLICE_CONTROLLER = "endpointslice-controller.karmada.io"

# Annotations that say where an object comes from.

POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace"
POLICY_NAME = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_NAME = "clusterpropagationpolicy.karmada.io/name"
BINDING_NAMESPACE = "resourcebinding.karmada.io/namespace"
BINDING_NAME = "resourcebinding.karmada.io/name"
CLUSTER_BINDING_NAME = "clusterresourcebinding.karmada.io/name"
WORK_NAMESPACE = "work.karmada.io/namespace"
WORK_NAME = "work.karmada.io/name"
TEMPLATE_UID = "resourcetemplate.karmada.io/uid"
TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation"
PROVISION_CLUSTER = "endpointslice.karmada.io/provision-cluster"
CACHED_FROM_CLUSTER = "resource.karmada.io/cached-from-cluster"
QUERY_FROM_CLUSTER = "resource.karmada.io/query-from-cluster"

# Annotations that say how an object is treated, or what was done to it.

CONFLICT_RESOLUTION = "work.karmada.io/conflict-resolution"
CONFLICT_OVERWRITE = "overwrite"
CONFLICT_ABORT = "abort"
MANAGED_ANNOTATIONS = "resourcetemplate.karmada.io/managed-annotations"
MANAGED_LABELS = "resourcetemplate.karmada.io/managed-labels"
APPLIED_PLACEMENT = "policy.karmada.io/applied-placement"
APPLIED_OVERRIDES = "policy.karmada.io/applied-overrides"
APPLIED_CLUSTER_OVERRIDES = "policy.karmada.io/applied-cluster-overrides"
DEPENDENCIES = "resourcebinding.karmada.io/dependencies"
INTERNAL_SELECTOR = "internal.karmada.io/selector"
INTERNAL_NAMESPACE = "internal.karmada.io/namespace"

# What is taken off an object that a member cluster keeps when it is no longer managed from here.

RELEASED_LABELS = (BINDING_ID, WORK_ID, MANAGED)
RELEASED_ANNOTATIONS = (
    MANAGED_ANNOTATIONS, MANAGED_LABELS, BINDING_NAMESPACE, BINDING_NAME, TEMPLATE_UID, TEMPLATE_GENERATION,
    WORK_NAME, WORK_NAMESPACE,
)  # fmt: skip
POLICY_CLAIM_LABELS = (POLICY_ID,)
POLICY_CLAIM_ANNOTATIONS = (POLICY_NAMESPACE, POLICY_NAME)
"""Off objects with a namespace, besides the above."""
CLUSTER_POLICY_CLAIM_LABELS = (CLUSTER_POLICY_ID,)
CLUSTER_POLICY_CLAIM_ANNOTATIONS = (CLUSTER_POLICY_NAME,)
"""Off objects without a namespace, besides the above."""

# Finalizers.

CLUSTER_FINALIZER = "karmada.io/cluster-controller"
EXECUTION_FINALIZER = "karmada.io/execution-controller"
BINDING_FINALIZER = "karmada.io/binding-controller"
CLUSTER_BINDING_FINALIZER = "karmada.io/cluster-resource-binding-controller"
DEPENDENCIES_FINALIZER = "karmada.io/binding-dependencies-distributor"
POLICY_FINALIZER = "karmada.io/propagation-policy-controller"
CLUSTER_POLICY_FINALIZER = "karmada.io/cluster-propagation-policy-controller"
MULTICLUSTER_SERVICE_FINALIZER = "karmada.io/multiclusterservice-controller"
ENDPOINT_SLICE_FINALIZER = "karmada.io/endpointslice-controller"
ENDPOINT_SLICE_DISPATCH_FINALIZER = "karmada.io/mcs-endpointslice-dispatch-controller"

# Taints of clusters.

TAINT_NOT_READY = "cluster.karmada.io/not-ready"
TAINT_UNREACHABLE = "cluster.karmada.io/unreachable"
TAINT_UNSCHEDULABLE = "cluster.karmada.io/unschedulable"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

CLUSTER_ID_PROPERTY = "cluster.clusterset.k8s.io"
"""The ClusterProperty of a member whose value is its id."""
DEFAULT_SCHEDULER = "default-scheduler"
ESTIMATOR_PREFIX = "karmada-scheduler-estimator"

# Names made from others.


def _dotted(name: str) -> str:
    """Names of RBAC objects have colons, which most names must not have."""
    return name.replace(":", ".")


def binding_name(kind: str, name: str) -> str:
    """The binding of a template."""
    return f"{_dotted(name)}-{kind}".lower()


@lru_cache(maxsize=1024)
def work_name(kind: str, name: str, namespace: str = "") -> str:
    """The Work of a template, in every execution namespace it gets one. Kept: it is the same for each cluster."""
    readable = _dotted(name).lower()
    hashed = f"{namespace}-{readable}-{kind}" if namespace else f"{readable}-{kind}"
    return f"{readable}-{short_hash(hashed.lower())}"


def depended_by_label(namespace: str, name: str) -> str:
    """The label of a binding that follows another one: that of the binding with this name."""
    return DEPENDED_BY_PREFIX + short_hash(f"{namespace}/{name}" if namespace else name)


def generated_policy_name(namespace: str, name: str, gvk: GVK) -> str:
    """The policy that a command makes for one resource."""
    return f"{_dotted(name)}-{short_hash(f'{namespace}{gvk.group}/{gvk.version}, Kind={gvk.kind}')}".lower()


def impersonator_secret_name(cluster: str) -> str:
    return f"{cluster}-impersonator"


def service_account_name(cluster: str) -> str:
    """By which the control plane works in a member cluster."""
    return f"karmada-{cluster}"


def cluster_role_name(service_account: str) -> str:
    """What that account may do there."""
    return f"karmada-controller-manager:{service_account}"


def derived_service_name(service: str) -> str:
    """The Service behind an imported one."""
    return f"derived-{service}"


def imported_slice_name(cluster: str, endpoint_slice: str) -> str:
    """An EndpointSlice of another cluster."""
    return f"imported-{cluster}-{endpoint_slice}"


def estimator_name(cluster: str, prefix: str = ESTIMATOR_PREFIX) -> str:
    """The Service and Deployment of a cluster's estimator."""
    return f"{prefix}-{cluster}"
