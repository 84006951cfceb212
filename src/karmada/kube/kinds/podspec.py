"""Defaults and rules of a PodSpec, shared by Pods and every kind with a pod template.

Defaults are filled in at least twice on every write, so they are flat code over plain dicts: one pass over containers
and volumes, no schema walk. Empty strings count as absent, as on the wire. The rules of containers and volumes have
modules of their own; what only Pods must satisfy is in pods.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from karmada.kube.kinds import checks
from karmada.kube.kinds.checks import canonical_quantity, canonical_resources
from karmada.kube.kinds.container_rules import containers, resources
from karmada.kube.kinds.filling import fill
from karmada.kube.kinds.images import default_pull_policy
from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.kinds.security_rules import app_armor, identities, seccomp
from karmada.kube.kinds.volume_rules import volumes
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, duplicate, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.memo import Recognised
from karmada.kube.objects.types import Obj

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_SPEC_DEFAULTS = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))


def containers_of(spec: Obj) -> Iterator[Obj]:
    """Init containers, containers and ephemeral containers, in this order."""
    for key in _CONTAINER_LISTS:
        yield from spec.get(key) or ()


def default_template(template: Obj) -> None:
    """Fill in the defaults of a PodTemplateSpec."""
    default_pod_spec(template.setdefault("spec", {}))


_POD_LEVEL = ("cpu", "memory")


def default_pod_resources(spec: Obj) -> None:
    """Fill in requests of the pod as a whole: what its containers request together, else the pod's limits."""
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in pod_resources({**spec, "overhead": None}, "requests").items():
        if name in _POD_LEVEL:
            requests.setdefault(name, str(amount))
    for name, amount in (resources.get("limits") or {}).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def default_pod_spec(spec: Obj) -> None:
    for key, value in _SPEC_DEFAULTS:
        if not spec.get(key):
            spec[key] = value
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for key in _CONTAINER_LISTS:
        for container in spec.get(key) or ():
            default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    if spec.get("overhead"):
        canonical_resources(spec["overhead"])
    if spec.get("resources"):
        _default_resources(spec["resources"])


def default_container(container: Obj) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = default_pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif resources:
        _default_resources(resources)
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_references(source)
    for key in _PROBES:
        if key in container:
            _default_probe(container[key])
    if container.get("lifecycle"):
        _default_lifecycle(container["lifecycle"])


def _default_lifecycle(lifecycle: Obj) -> None:
    for handler in ("postStart", "preStop"):
        action = lifecycle.get(handler)
        if action and action.get("httpGet") is not None:
            _default_http(action["httpGet"])


def _default_resources(resources: Obj) -> None:
    canonical_resources(resources.get("limits"))
    canonical_resources(resources.get("requests"))


def _default_references(source: Obj) -> None:
    field = source.get("fieldRef")
    if field is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    resource = source.get("resourceFieldRef")
    if resource is not None and not resource.get("divisor"):
        resource["divisor"] = "0"
    file = source.get("fileKeyRef")
    if file is not None and file.get("optional") is None:
        file["optional"] = False


def _default_probe(probe: Obj) -> None:
    for key, value in _PROBE_DEFAULTS:
        if not probe.get(key):
            probe[key] = value
    if probe.get("httpGet") is not None:
        _default_http(probe["httpGet"])
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(action: Obj) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


# --- volumes


def _mode(source: Obj) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    for item in source.get("items") or ():
        _default_references(item)


def _projected(source: Obj) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    for part in source.get("sources") or ():
        token = part.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        for item in (part.get("downwardAPI") or {}).get("items") or ():
            field = item.get("fieldRef")
            if field is not None and not field.get("apiVersion"):
                field["apiVersion"] = "v1"


def _host_path(source: Obj) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _ephemeral(source: Obj) -> None:
    claim = (source.get("volumeClaimTemplate") or {}).get("spec")
    if claim is not None:
        if not claim.get("volumeMode"):
            claim["volumeMode"] = "Filesystem"
        if claim.get("resources"):
            _default_resources(claim["resources"])


def _empty_dir(source: Obj) -> None:
    if source.get("sizeLimit") is not None:
        source["sizeLimit"] = canonical_quantity(source["sizeLimit"])


def _image(source: Obj) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = default_pull_policy(source.get("reference") or "")


_VOLUME_SOURCES: dict[str, Callable[[Obj], None]] = {
    "secret": _mode,
    "configMap": _mode,
    "downwardAPI": _mode,
    "projected": _projected,
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "image": _image,
    "iscsi": partial(fill, iscsiInterface="default"),
    "rbd": partial(fill, pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "azureDisk": partial(fill, cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False),
    "scaleIO": partial(fill, storageMode="ThinProvisioned", fsType="xfs"),
}


def default_volume_source(source: Obj) -> None:
    """Fill in the part that Pods' volumes and PersistentVolumes have in common."""
    for key, value in source.items():
        default = _VOLUME_SOURCES.get(key)
        if default is not None and isinstance(value, dict):
            default(value)


def default_volume(volume: Obj) -> None:
    default_volume_source(volume)
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}


# --- what holds for Pods but not for templates


def default_pod_only(spec: Obj) -> None:
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    host_network = spec.get("hostNetwork")
    for container in containers_of(spec):
        resources = container.get("resources")
        if resources and resources.get("limits"):
            requests = resources.get("requests")
            if requests is None:
                requests = resources["requests"] = {}
            for name, amount in resources["limits"].items():
                requests.setdefault(name, amount)
        if host_network:
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")
    if spec.get("resources"):
        default_pod_resources(spec)


# --- rules

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_NONE: Sequence[Obj] = ()


_valid = Recognised()
"""Specs that were valid a moment ago."""


def validate_pod_spec(errors: list[FieldError], path: str, spec: Obj) -> None:
    raw = _valid.unknown(spec)
    if raw is None:
        return
    before = len(errors)
    _pod_spec(errors, path, spec)
    if len(errors) == before:
        _valid.add(raw)


def _pod_spec(errors: list[FieldError], path: str, spec: Obj) -> None:
    found_volumes = spec.get("volumes")
    known = volumes(errors, f"{path}.volumes", found_volumes) if found_volumes else {}
    host_network = bool(spec.get("hostNetwork"))
    taken: set[str] = set()
    main = spec.get("containers")
    if not main:
        errors.append(required(f"{path}.containers"))
    else:
        containers(errors, f"{path}.containers", main, known, taken, host_network)
    if spec.get("initContainers"):
        containers(errors, f"{path}.initContainers", spec["initContainers"], known, taken, host_network)
        _init_containers(errors, f"{path}.initContainers", spec["initContainers"])
    if spec.get("ephemeralContainers"):
        ephemeral_containers(errors, f"{path}.ephemeralContainers", spec, known, taken)
    checks.one_of(errors, f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    checks.one_of(errors, f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        errors.append(required(f"{path}.dnsConfig.nameservers", detail))
    _plain_fields(errors, path, spec)
    _scheduling(errors, path, spec)


def _plain_fields(errors: list[FieldError], path: str, spec: Obj) -> None:
    checks.between(errors, f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1, checks.MAX_INT32)
    for key in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(key)
        if value:
            checks.add_invalid(errors, f"{path}.{key}", value, names.dns1123_subdomain(value))
    for key in ("hostname", "subdomain"):
        value = spec.get(key)
        if value:
            checks.add_invalid(errors, f"{path}.{key}", value, names.dns1123_label(value))
    for index, alias in enumerate(spec.get("hostAliases") or _NONE):
        checks.ip_address(errors, f"{path}.hostAliases[{index}].ip", alias.get("ip") or "")
        for place, hostname in enumerate(alias.get("hostnames") or ()):
            where = f"{path}.hostAliases[{index}].hostnames[{place}]"
            checks.add_invalid(errors, where, hostname, names.dns1123_subdomain(hostname))
    for index, gate in enumerate(spec.get("readinessGates") or _NONE):
        kind = gate.get("conditionType") or ""
        checks.add_invalid(errors, f"{path}.readinessGates[{index}].conditionType", kind, names.qualified_name(kind))
    _scheduling_gates(errors, f"{path}.schedulingGates", spec.get("schedulingGates") or _NONE)
    if spec.get("preemptionPolicy") is not None:
        allowed = ("PreemptLowerPriority", "Never")
        checks.one_of(errors, f"{path}.preemptionPolicy", spec["preemptionPolicy"], allowed)
    if spec.get("overhead"):
        resources(errors, f"{path}.overhead", {"limits": spec["overhead"]})
    if spec.get("resources"):
        resources(errors, f"{path}.resources", spec["resources"])
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    context = spec.get("securityContext")
    if context:
        _security_context(errors, f"{path}.securityContext", context)


def _security_context(errors: list[FieldError], path: str, context: Obj) -> None:
    identities(errors, path, context, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        checks.between(errors, f"{path}.supplementalGroups[{index}]", group, 0, checks.MAX_INT32)
    _sysctls(errors, f"{path}.sysctls", context.get("sysctls") or _NONE)
    if context.get("fsGroupChangePolicy") is not None:
        allowed = ("Always", "OnRootMismatch")
        checks.one_of(errors, f"{path}.fsGroupChangePolicy", context["fsGroupChangePolicy"], allowed)
    seccomp(errors, f"{path}.seccompProfile", context.get("seccompProfile"))
    app_armor(errors, f"{path}.appArmorProfile", context.get("appArmorProfile"))


_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_SYSCTL_LENGTH = 253
_is_sysctl = re.compile(_SYSCTL).fullmatch


def _sysctls(errors: list[FieldError], path: str, found: Sequence[Obj]) -> None:
    """Kernel parameters; a name with slashes and the same name with dots are one."""
    seen: set[str] = set()
    for index, sysctl in enumerate(found):
        place, name = f"{path}[{index}].name", sysctl.get("name") or ""
        dotted = name.replace("/", ".")
        if not name:
            errors.append(required(place))
        elif len(name) > _SYSCTL_LENGTH or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex {_SYSCTL}"
            errors.append(invalid(place, name, detail))
        elif dotted in seen:
            errors.append(duplicate(place, name))
        seen.add(dotted)


def _scheduling_gates(errors: list[FieldError], path: str, gates: Sequence[Obj]) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        checks.add_invalid(errors, f"{path}[{index}]", name, names.qualified_name(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def _init_containers(errors: list[FieldError], path: str, found: Sequence[Obj]) -> None:
    for index, container in enumerate(found):
        policy = container.get("restartPolicy")
        if policy is not None and policy != "Always":
            errors.append(not_supported(f"{path}[{index}].restartPolicy", policy, ("Always",)))
        if policy == "Always":
            continue
        detail = "may not be set for init containers without restartPolicy=Always"
        given = [key for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe") if container.get(key)]
        errors.extend(forbidden_field(f"{path}[{index}].{key}", detail) for key in given)


_EPHEMERAL_FORBIDDEN = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources")


def ephemeral_containers(
    errors: list[FieldError], path: str, spec: Obj, known: dict[str, bool], taken: set[str]
) -> None:
    found = spec["ephemeralContainers"]
    ordinary = {c.get("name") for key in ("containers", "initContainers") for c in spec.get(key) or ()}
    containers(errors, path, found, known, taken, bool(spec.get("hostNetwork")))
    for index, container in enumerate(found):
        target = container.get("targetContainerName")
        if target and target not in ordinary:
            errors.append(
                FieldError(f"{path}[{index}].targetContainerName", "FieldValueNotFound", f'Not found: "{target}"')
            )
        given = [key for key in _EPHEMERAL_FORBIDDEN if container.get(key)]
        detail = "cannot be set for an Ephemeral Container"
        errors.extend(forbidden_field(f"{path}[{index}].{key}", detail) for key in given)


# --- where it may run


def _scheduling(errors: list[FieldError], path: str, spec: Obj) -> None:
    checks.labels(errors, f"{path}.nodeSelector", spec.get("nodeSelector"))
    if spec.get("tolerations"):
        tolerations(errors, f"{path}.tolerations", spec["tolerations"])
    if spec.get("affinity"):
        _affinity(errors, f"{path}.affinity", spec["affinity"])
    if spec.get("topologySpreadConstraints"):
        _spread(errors, f"{path}.topologySpreadConstraints", spec["topologySpreadConstraints"])


def tolerations(errors: list[FieldError], path: str, found: Sequence[Obj]) -> None:
    for index, toleration in enumerate(found):
        place = f"{path}[{index}]"
        key, operator, effect = (toleration.get(k) or "" for k in ("key", "operator", "effect"))
        if key:
            checks.add_invalid(errors, f"{place}.key", key, names.qualified_name(key))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{place}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{place}.effect", effect, detail))
        if operator in ("", "Equal"):
            value = toleration.get("value") or ""
            checks.add_invalid(errors, f"{place}.operator", value, names.label_value(value))
        elif operator == "Exists":
            if toleration.get("value"):
                detail = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{place}.operator", toleration, detail))
        else:
            errors.append(not_supported(f"{place}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(not_supported(f"{place}.effect", effect, _EFFECTS))


def _affinity(errors: list[FieldError], path: str, affinity: Obj) -> None:
    node = affinity.get("nodeAffinity") or {}
    must = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if must is not None:
        node_selector(errors, f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", must)
    for index, term in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        place = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _weight(errors, place, term)
        _node_term(errors, f"{place}.preference", term.get("preference") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
            _pod_term(errors, f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
        for index, term in enumerate(rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
            place = f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            _weight(errors, place, term)
            _pod_term(errors, f"{place}.podAffinityTerm", term.get("podAffinityTerm") or {})


def _weight(errors: list[FieldError], path: str, term: Obj) -> None:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def node_selector(errors: list[FieldError], path: str, selector: Obj) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
    for index, term in enumerate(terms or ()):
        _node_term(errors, f"{path}.nodeSelectorTerms[{index}]", term)


def _node_term(errors: list[FieldError], path: str, term: Obj) -> None:
    for kind in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(term.get(kind) or ()):
            place = f"{path}.{kind}[{index}]"
            key, operator = requirement.get("key") or "", requirement.get("operator") or ""
            values = requirement.get("values") or ()
            if operator in ("In", "NotIn") and not values:
                errors.append(required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
            elif operator in ("Exists", "DoesNotExist") and values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden_field(f"{place}.values", detail))
            elif operator in ("Gt", "Lt") and len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{place}.values", detail))
            elif operator not in _NODE_OPERATORS:
                errors.append(invalid(f"{place}.operator", operator, "not a valid selector operator"))
            if kind == "matchExpressions":
                checks.add_invalid(errors, f"{place}.key", key, names.qualified_name(key))
            elif key != "metadata.name":
                errors.append(invalid(f"{place}.key", key, "not a valid field selector key"))


def _pod_term(errors: list[FieldError], path: str, term: Obj) -> None:
    checks.label_selector(errors, f"{path}.labelSelector", term.get("labelSelector"))
    checks.label_selector(errors, f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for index, namespace in enumerate(term.get("namespaces") or ()):
        checks.add_invalid(errors, f"{path}.namespaces[{index}]", namespace, names.dns1123_label(namespace))
    checks.named(errors, f"{path}.topologyKey", term.get("topologyKey"), names.qualified_name, "can not be empty")


def _spread(errors: list[FieldError], path: str, constraints: Sequence[Obj]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(invalid(f"{place}.maxSkew", skew, "must be greater than zero"))
        key, policy = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        checks.named(errors, f"{place}.topologyKey", key, names.qualified_name, "can not be empty")
        if policy not in _UNSATISFIABLE:
            errors.append(not_supported(f"{place}.whenUnsatisfiable", policy, _UNSATISFIABLE))
        if (key, policy) in seen:
            errors.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {policy}}}"))
        seen.add((key, policy))
        domains = constraint.get("minDomains")
        if domains is not None and domains <= 0:
            errors.append(invalid(f"{place}.minDomains", domains, "must be greater than zero"))
        checks.label_selector(errors, f"{place}.labelSelector", constraint.get("labelSelector"))


# --- annotations and templates

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


def validate_annotations(errors: list[FieldError], path: str, found: Mapping[str, str] | None, spec: Obj) -> None:
    """Validate the annotations that kubelets and old clients use."""
    mirrored = (found or {}).get(MIRROR_ANNOTATION)
    if mirrored is not None and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR_ANNOTATION}]", mirrored, detail))


def validate_template(errors: list[FieldError], path: str, found: Obj) -> None:
    """Validate a PodTemplateSpec: its labels, annotations and spec."""
    meta = found.get("metadata") or {}
    if meta.get("labels"):
        checks.labels(errors, f"{path}.metadata.labels", meta["labels"])
    for key in meta.get("annotations") or ():
        checks.add_invalid(errors, f"{path}.metadata.annotations", key, names.qualified_name(key.lower()))
    spec = found.get("spec") or {}
    validate_annotations(errors, f"{path}.annotations", meta.get("annotations"), spec)
    validate_pod_spec(errors, f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden_field(f"{path}.spec.ephemeralContainers", detail))
