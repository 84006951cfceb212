"""How nodes, namespaces, configuration, events and what governs access look in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from karmada.kube.kinds.tables.columns import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Column,
    Printer,
    count,
    dig,
    field,
    number,
    of,
    quantity_text,
    selector_text,
    since,
)
from karmada.kube.objects import meta
from karmada.kube.objects.times import human_duration
from karmada.kube.objects.types import Obj

# --- nodes -----------------------------------------------------------------------------------------------------------

_READINESS: Mapping[Any, str] = {"True": "Ready"}
_ROLE_PREFIX = "node-role.kubernetes.io/"


def _node_status(node: Obj) -> str:
    ready = meta.get_condition(dig(node, "status", "conditions"), "Ready")
    state = "Unknown" if ready is None else _READINESS.get(ready.get("status"), "NotReady")
    return f"{state},SchedulingDisabled" if dig(node, "spec", "unschedulable") else state


def _roles(node: Obj) -> str:
    labels = meta.labels(node)
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(role for role in roles if role)) or NONE


def _node_address(kind: str) -> Callable[[Obj], str]:
    def rule(node: Obj) -> str:
        addresses = dig(node, "status", "addresses") or ()
        return next((each["address"] for each in addresses if each.get("type") == kind), NONE)

    return rule


def _kernel(node: Obj) -> str:
    info = dig(node, "status", "nodeInfo") or {}
    kernel, architecture = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


def _or_unknown(path: str) -> Callable[[Obj], str]:
    read = field(path)
    return lambda obj: read(obj, 0) or UNKNOWN


NODE = Printer([
    NAME,
    Column("Status", of(_node_status), "Whether the node is ready and takes pods"),
    Column("Roles", of(_roles), "What the node is for"),
    AGE,
    Column("Version", field("status.nodeInfo.kubeletVersion"), "The version of its kubelet"),
    Column("Internal-IP", of(_node_address("InternalIP")), "Its address inside the cluster", wide=True),
    Column("External-IP", of(_node_address("ExternalIP")), "Its address outside of the cluster", wide=True),
    Column("OS-Image", of(_or_unknown("status.nodeInfo.osImage")), "Its operating system", wide=True),
    Column("Kernel-Version", of(_kernel), "Its kernel", wide=True),
    Column("Container-Runtime", of(_or_unknown("status.nodeInfo.containerRuntimeVersion")), "Its runtime", wide=True),
])  # fmt: skip


# --- configuration ---------------------------------------------------------------------------------------------------

NAMESPACE = Printer([NAME, Column("Status", field("status.phase"), "The phase of the namespace"), AGE])


def _config_entries(config_map: Obj) -> int:
    return len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())


CONFIG_MAP = Printer([NAME, Column("Data", of(_config_entries), "How many entries it has"), AGE])
SECRET = Printer([
    NAME,
    Column("Type", field("type"), "What the secret is for"),
    Column("Data", count("data"), "How many entries it has"),
    AGE,
])  # fmt: skip
SERVICE_ACCOUNT = Printer([NAME, AGE])


def _quota(limits: bool) -> Callable[[Obj], str]:
    """used/hard of the resources whose names do, or do not, begin with "limits."."""

    def rule(quota: Obj) -> str:
        hard: Obj = dig(quota, "status", "hard") or {}
        used: Obj = dig(quota, "status", "used") or {}
        return ", ".join(
            f"{name}: {quantity_text(used.get(name))}/{quantity_text(hard[name])}"
            for name in sorted(hard)
            if name.startswith("limits.") is limits
        )

    return rule


RESOURCE_QUOTA = Printer([
    NAME,
    Column("Request", of(_quota(False)), "Used and allowed amounts"),
    Column("Limit", of(_quota(True)), "Used and allowed limits"),
    AGE,
])  # fmt: skip

LEASE = Printer([NAME, Column("Holder", field("spec.holderIdentity"), "Who holds the lease"), AGE])
PRIORITY_CLASS = Printer([
    NAME,
    Column("Value", number("value"), "The priority of pods in the class", type="integer"),
    Column("Global-Default", field("globalDefault", False), "Whether pods without a class get it", type="boolean"),
    AGE,
    Column("PreemptionPolicy", field("preemptionPolicy"), "Whether its pods may drive out others"),
])  # fmt: skip
RUNTIME_CLASS = Printer([NAME, Column("Handler", field("handler"), "What runs its pods"), AGE])


# --- events ----------------------------------------------------------------------------------------------------------


def _either(event: Obj, core: str, modern: str) -> Any:
    """Return a field by its name in the core group or in events.k8s.io."""
    value = event.get(core)
    return event.get(modern) if value is None else value


def _event_object(event: Obj) -> Obj:
    return _either(event, "involvedObject", "regarding") or {}


def _first_seen(event: Obj, now: float) -> str:
    return since(_either(event, "firstTimestamp", "deprecatedFirstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Obj, now: float) -> str:
    if event.get("series"):
        return since(event["series"].get("lastObservedTime"), now)
    last = _either(event, "lastTimestamp", "deprecatedLastTimestamp")
    return since(last, now) if last else _first_seen(event, now)


def _event_count(event: Obj) -> int:
    if event.get("series"):
        return event["series"].get("count") or 0
    return _either(event, "count", "deprecatedCount") or 1


def _event_target(event: Obj) -> str:
    target = _event_object(event)
    kind = (target.get("kind") or "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def _event_source(event: Obj) -> str:
    source: Obj = _either(event, "source", "deprecatedSource") or {}
    component = source.get("component") or _either(event, "reportingComponent", "reportingController") or ""
    host = source.get("host") or event.get("reportingInstance")
    return f"{component}, {host}" if host else component


def _event_message(event: Obj) -> str:
    return (_either(event, "message", "note") or "").strip()


EVENT = Printer([
    Column("Last Seen", _last_seen, "The time since it last happened"),
    Column("Type", field("type"), "Normal or Warning"),
    Column("Reason", field("reason"), "What happened, in one word"),
    Column("Object", of(_event_target), "What it happened to"),
    Column("Subobject", of(lambda o: _event_object(o).get("fieldPath") or ""), "The part it happened to", wide=True),
    Column("Source", of(_event_source), "Who reports it", wide=True),
    Column("Message", of(_event_message), "What happened, in words"),
    Column("First Seen", _first_seen, "The time since it first happened", wide=True),
    Column("Count", of(_event_count), "How often it happened", wide=True),
    Column("Name", NAME.cell, NAME.description, format="name", wide=True),
])  # fmt: skip


# --- access ----------------------------------------------------------------------------------------------------------


def _role(binding: Obj) -> str:
    role: Obj = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def text(subject: Obj) -> str:
        name = subject.get("name") or ""
        return f"{subject.get('namespace') or ''}/{name}" if kind == "ServiceAccount" else name

    def rule(binding: Obj) -> str:
        return ", ".join(text(each) for each in binding.get("subjects") or () if each.get("kind") == kind)

    return of(rule)


ROLE_BINDING = Printer([
    NAME,
    Column("Role", of(_role), "The role that is given"),
    AGE,
    Column("Users", _subjects("User"), "The users that have it", wide=True),
    Column("Groups", _subjects("Group"), "The groups that have it", wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), "The service accounts that have it", wide=True),
])  # fmt: skip


def _csr_condition(request: Obj) -> str:
    present = {each.get("type") for each in dig(request, "status", "conditions") or ()}
    states = [next((state for state in ("Denied", "Approved") if state in present), "Pending")]
    if "Failed" in present:
        states.append("Failed")
    if dig(request, "status", "certificate"):
        states.append("Issued")
    return ",".join(states)


def _requested_duration(request: Obj) -> str:
    seconds = dig(request, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


CERTIFICATE_SIGNING_REQUEST = Printer([
    NAME,
    AGE,
    Column("SignerName", field("spec.signerName", NONE), "Who is to sign"),
    Column("Requestor", field("spec.username"), "User who made the request"),
    Column("RequestedDuration", of(_requested_duration), "How long the certificate is to be valid"),
    Column("Condition", of(_csr_condition), "How far the request is"),
])  # fmt: skip


# --- extensions of the API -------------------------------------------------------------------------------------------

WEBHOOKS = Printer([NAME, Column("Webhooks", count("webhooks"), "How many webhooks it has", type="integer"), AGE])


def _param_kind(policy: Obj) -> str:
    kind = dig(policy, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: Obj) -> str:
    reference: Obj = dig(binding, "spec", "paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return selector_text(reference["selector"]) if "selector" in reference else UNSET


def _policy(rules: str) -> Printer:
    return Printer([
        NAME,
        Column(rules, count(f"spec.{rules.lower()}"), "How many rules it has", type="integer"),
        Column("ParamKind", of(_param_kind), "The kind of its parameters"),
        AGE,
    ])  # fmt: skip


POLICY_BINDING = Printer([
    NAME,
    Column("PolicyName", field("spec.policyName"), "The policy that is put to use"),
    Column("ParamRef", of(_param_ref), "The parameters it is used with"),
    AGE,
])  # fmt: skip

CUSTOM_RESOURCE_DEFINITION = Printer([NAME, CREATED_AT])


def _api_service(api_service: Obj) -> str:
    service = dig(api_service, "spec", "service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(api_service: Obj) -> str:
    condition = meta.get_condition(dig(api_service, "status", "conditions"), "Available")
    if condition is None:
        return "Unknown"
    status = str(condition.get("status") or "Unknown")
    return status if status == "True" else f"{status} ({condition.get('reason') or ''})"


API_SERVICE = Printer([
    NAME,
    Column("Service", of(_api_service), "What serves the version"),
    Column("Available", of(_available), "Whether it can be reached"),
    AGE,
])  # fmt: skip


# --- health and flow control -----------------------------------------------------------------------------------------


def _health(component: Obj) -> Obj:
    return meta.get_condition(component.get("conditions"), "Healthy") or {}


_HEALTH: Mapping[Any, str] = {"True": "Healthy", None: "Unknown"}

COMPONENT_STATUS = Printer([
    NAME,
    Column("Status", of(lambda o: _HEALTH.get(_health(o).get("status"), "Unhealthy")), "Whether it is healthy"),
    Column("Message", of(lambda o: _health(o).get("message") or ""), "What it says"),
    Column("Error", of(lambda o: _health(o).get("error") or ""), "What is wrong"),
])  # fmt: skip

STATUS = Printer([
    Column("Status", field("status"), "Success or Failure"),
    Column("Reason", field("reason"), "Why, in one word"),
    Column("Message", field("message"), "Why, in words"),
])  # fmt: skip


def _missing_level(schema: Obj) -> str:
    dangling = meta.get_condition(dig(schema, "status", "conditions"), "Dangling")
    return str(dangling.get("status")) if dangling else "?"


FLOW_SCHEMA = Printer([
    NAME,
    Column("PriorityLevel", field("spec.priorityLevelConfiguration.name"), "The level its requests get"),
    Column("MatchingPrecedence", number("spec.matchingPrecedence"), "Its place among the schemas"),
    Column("DistinguisherMethod", field("spec.distinguisherMethod.type", NONE), "How requests are divided into flows"),
    AGE,
    Column("MissingPL", of(_missing_level), "Whether its level does not exist"),
])  # fmt: skip

_QUEUING = "spec.limited.limitResponse.queuing"
PRIORITY_LEVEL = Printer([
    NAME,
    Column("Type", field("spec.type"), "Exempt or Limited"),
    Column("NominalConcurrencyShares", field("spec.limited.nominalConcurrencyShares", NONE), "Its share of the server"),
    Column("Queues", field(f"{_QUEUING}.queues", NONE), "How many queues it has"),
    Column("HandSize", field(f"{_QUEUING}.handSize", NONE), "Queues that one flow may use"),
    Column("QueueLengthLimit", field(f"{_QUEUING}.queueLengthLimit", NONE), "Requests that may wait in a queue"),
    AGE,
])  # fmt: skip

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

PRINTERS = {
    ("", "Node"): NODE,
    ("", "Namespace"): NAMESPACE,
    ("", "ConfigMap"): CONFIG_MAP,
    ("", "Secret"): SECRET,
    ("", "ServiceAccount"): SERVICE_ACCOUNT,
    ("", "ResourceQuota"): RESOURCE_QUOTA,
    ("", "Event"): EVENT,
    ("events.k8s.io", "Event"): EVENT,
    ("", "ComponentStatus"): COMPONENT_STATUS,
    ("", "Status"): STATUS,
    ("coordination.k8s.io", "Lease"): LEASE,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
    ("node.k8s.io", "RuntimeClass"): RUNTIME_CLASS,
    (_RBAC, "RoleBinding"): ROLE_BINDING,
    (_RBAC, "ClusterRoleBinding"): ROLE_BINDING,
    ("certificates.k8s.io", "CertificateSigningRequest"): CERTIFICATE_SIGNING_REQUEST,
    (_ADMISSION, "MutatingWebhookConfiguration"): WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): WEBHOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _policy("Validations"),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): POLICY_BINDING,
    (_ADMISSION, "MutatingAdmissionPolicy"): _policy("Mutations"),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): POLICY_BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CUSTOM_RESOURCE_DEFINITION,
    ("apiregistration.k8s.io", "APIService"): API_SERVICE,
    (_FLOW, "FlowSchema"): FLOW_SCHEMA,
    (_FLOW, "PriorityLevelConfiguration"): PRIORITY_LEVEL,
}
