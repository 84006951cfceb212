"""config.karmada.io: how the control plane is taught to understand kinds of resources."""

from __future__ import annotations

from typing import Annotated

from karmada.api.common import Int32, Struct, keywords
from karmada.api.kind import AGE, Column, Resource, kind
from karmada.api.policy import ReplicaSchedulingSpec

V1ALPHA1 = "config.karmada.io/v1alpha1"


class CustomizationTarget(Struct):
    """A kind of resources."""

    api_version: str
    """Its group and version."""
    kind: str
    """Its kind."""


class LuaCustomization(Struct):
    """A function, written in Lua."""

    lua_script: str
    """The whole function; it may use others that stand in the same script."""


class CustomizationRules(Struct):
    """The operations on a kind, each implemented by a function."""

    retention: LuaCustomization | None = None
    """Which values the cluster's own changes keep: Retain(desiredObj, observedObj) returns the object to apply."""
    replica_resource: LuaCustomization | None = None
    """How many replicas a resource has, and what one needs: GetReplicas(obj) returns the number and the needs.
    ReplicasCount(obj), an older form, returns the number alone."""
    component_resource: LuaCustomization | None = None
    """What kinds of Pods make up a resource: GetComponents(obj) returns a list of components."""
    replica_revision: LuaCustomization | None = None
    """How the number of replicas is changed: ReviseReplica(obj, desiredReplica) returns the changed object."""
    status_reflection: LuaCustomization | None = None
    """What of the status in a cluster is of interest: ReflectStatus(observedObj) returns it."""
    status_aggregation: LuaCustomization | None = None
    """How the statuses of all clusters become one: AggregateStatus(desiredObj, statusItems) returns the object with
    its status."""
    health_interpretation: LuaCustomization | None = None
    """Whether a resource is healthy: InterpretHealth(observedObj) returns true or false."""
    dependency_interpretation: LuaCustomization | None = None
    """What a resource depends on: GetDependencies(desiredObj) returns a list of references."""


class ResourceInterpreterCustomizationSpec(Struct):
    """The kind and the operations on it."""

    target: CustomizationTarget
    """The kind."""
    customizations: CustomizationRules
    """The operations."""


@kind(
    V1ALPHA1,
    plural="resourceinterpretercustomizations",
    scope="Cluster",
    short=["ric"],
    columns=[
        Column("TARGET-API-VERSION", ".spec.target.apiVersion"),
        Column("TARGET-KIND", ".spec.target.kind"),
        AGE,
    ],
    subresources=(),
)
class ResourceInterpreterCustomization(Resource, kw_only=True):
    """The operations on one kind of resources, as Lua functions. It comes before interpreter webhooks and
    before what is built in.
    """

    spec: ResourceInterpreterCustomizationSpec
    """The kind and the operations on it."""


class ServiceReference(Struct):
    """A Service that answers."""

    namespace: str
    """The namespace of the Service."""
    name: str
    """The name of the Service."""
    path: str | None = None
    """The path of the requests."""
    port: Int32 | None = None
    """The port of the Service; 443 by default."""


class WebhookClientConfig(Struct):
    """How a webhook is reached: by a URL or by a Service."""

    url: str | None = None
    """Its URL, with the scheme https. Not together with service."""
    service: ServiceReference | None = None
    """Its Service. Not together with url."""
    ca_bundle: Annotated[str, keywords(format="byte")] = ""
    """The certificates, in PEM and then base64, that its own certificate is checked with; when empty, those that the
    system trusts."""


class RuleWithOperations(Struct):
    """Which operations a webhook handles for which kinds."""

    operations: list[str]
    """The operations: InterpretReplica, InterpretComponent, ReviseReplica, Retain, AggregateStatus,
    InterpretDependency, InterpretStatus, InterpretHealth, or * for all."""
    api_groups: list[str]
    """The groups of the kinds; an empty string for the core group, * for all."""
    api_versions: list[str]
    """The versions of the kinds, or * for all."""
    kinds: list[str]
    """The kinds, or * for all."""


class ResourceInterpreterWebhook(Struct):
    """A webhook that interprets kinds of resources."""

    name: str
    """The webhook's name, in the form of a domain name."""
    client_config: WebhookClientConfig
    """How it is reached."""
    interpreter_context_versions: list[str]
    """The versions of ResourceInterpreterContext it understands, the best first."""
    rules: list[RuleWithOperations] = []
    """Which operations it handles for which kinds."""
    timeout_seconds: Int32 | None = None
    """The timeout of a request, from 1 to 30 seconds."""


@kind(V1ALPHA1, plural="resourceinterpreterwebhookconfigurations", scope="Cluster")
class ResourceInterpreterWebhookConfiguration(Resource, kw_only=True):
    """Webhooks that interpret kinds of resources."""

    webhooks: list[ResourceInterpreterWebhook]
    """The webhooks."""


@kind(V1ALPHA1, plural="replicaschedulingpolicies", scope="Cluster")
class ReplicaSchedulingPolicy(Resource, kw_only=True):
    """When replicas are moved away from clusters that are too full: an older kind."""

    spec: ReplicaSchedulingSpec
    """How replicas are divided."""
