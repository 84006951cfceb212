"""ResourceInterpreterContext: the request to an interpreter webhook, and its response.

Never stored: the request goes out as a POST in JSON, the answer comes back in the same message.
"""

from __future__ import annotations

from typing import Literal

from karmada.api.common import Int32, LabelSelector, Raw, Struct
from karmada.api.work import AggregatedStatusItem, Component, ReplicaRequirements

API_VERSION = "config.karmada.io/v1alpha1"
KIND = "ResourceInterpreterContext"
VERSIONS = ("v1alpha1",)
"""Those that a webhook may accept."""

Operation = Literal[
    "InterpretReplica",
    "InterpretComponent",
    "ReviseReplica",
    "Retain",
    "AggregateStatus",
    "InterpretDependency",
    "InterpretStatus",
    "InterpretHealth",
]


class GroupVersionKind(Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class DependentObjectReference(Struct):
    """Something that a resource depends on: by name, or by labels when there is no name."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    label_selector: LabelSelector | None = None


class InterpreterRequest(Struct, kw_only=True):
    """What is to be interpreted, and the object."""

    uid: str
    kind: GroupVersionKind
    name: str
    namespace: str = ""
    operation: str
    """An Operation, or one of a later version."""
    object: Raw
    observed_object: Raw | None = None
    """For Retain: the object as it is in the cluster."""
    replicas: Int32 | None = None
    """For ReviseReplica."""
    aggregated_status: list[AggregatedStatusItem] = []
    """For AggregateStatus."""


class RequestStatus(Struct):
    """How a request ended."""

    message: str = ""
    code: Int32 = 0


class InterpreterResponse(Struct, kw_only=True):
    """The response to a request; which of the fields counts depends on the operation."""

    uid: str = ""
    """That of the request."""
    successful: bool = False
    status: RequestStatus | None = None
    patch: str | None = None
    """A JSON patch in base64."""
    patch_type: str | None = None
    """JSONPatch."""
    replica_requirements: ReplicaRequirements | None = None
    replicas: Int32 | None = None
    components: list[Component] | None = None
    dependencies: list[DependentObjectReference] | None = None
    raw_status: Raw | None = None
    healthy: bool | None = None


class ResourceInterpreterContext(Struct):
    api_version: str = ""
    kind: str = ""
    request: InterpreterRequest | None = None
    response: InterpreterResponse | None = None
