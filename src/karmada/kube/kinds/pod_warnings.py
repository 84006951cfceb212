"""Warnings about Pods and pod templates: deprecated fields, duplicates, ambiguities.

The texts are those of kube-apiserver, since people search for them. `path` is the place of the template ("" for a
Pod itself). Writes of templates are warned about when the template changed, of Pods only when they are created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from karmada.kube.kinds.checks import quantity
from karmada.kube.objects import names
from karmada.kube.objects.memo import Recognised
from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import quote

_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
VOLUME_PLUGINS = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""Volume plug-ins and since when they are deprecated; of an ephemeral volume the claim template is checked."""
_NOTED = frozenset(VOLUME_PLUGINS)
_WITH_FILES = frozenset({"configMap", "secret", "downwardAPI", "projected"})
_SHOWN_AS = {"storageos": "storageOS"}
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
_USE_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_USE_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_PLACING = frozenset({"nodeSelector", "affinity", "topologySpreadConstraints"})
_WITHOUT_DUPLICATES = frozenset({"hostAliases", "imagePullSecrets"})
POD_NAMES = "this is used in Pod names and hostnames"

Warnings = Callable[[Obj, Obj | None], list[str]]


def for_pods(pod: Obj, old: Obj | None) -> list[str]:
    if old is not None:
        return []
    return [*name_warnings(pod, "this is used in the Pod's hostname"), *_template("", pod)]


def for_template(*path: str, label: bool = True, more: Callable[[Obj], Iterator[str]] | None = None) -> Warnings:
    """Return the warnings of a workload whose template is there; `label` if its name becomes a part of Pods' names."""
    place = ".".join(path)

    def warnings(obj: Obj, old: Obj | None) -> list[str]:
        if old is not None and obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        template = obj
        for key in path:
            template = template.get(key) or {}
        found = name_warnings(obj, POD_NAMES) if label and old is None else []
        return [*found, *_template(place, template), *(more(obj) if more is not None else ())]

    return warnings


def name_warnings(obj: Obj, use: str) -> list[str]:
    wrong = names.dns1123_label(obj["metadata"].get("name") or "")
    if not wrong:
        return []
    what = "which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {use}, {what}: [{' '.join(wrong)}]"]


_silent = Recognised()
"""Specs of which nothing was to be said a moment ago."""


def _template(path: str, found: Obj) -> list[str]:
    spec, annotations = found.get("spec") or {}, (found.get("metadata") or {}).get("annotations") or {}
    raw = None if annotations else _silent.unknown(spec)
    if raw is None and not annotations:
        return []
    texts = list(_warnings(path, spec, annotations))
    if raw and not texts:
        _silent.add(raw)
    return texts


def _warnings(path: str, spec: Obj, annotations: Mapping[str, str]) -> Iterator[str]:
    place = f"{path}.spec" if path else "spec"
    where = f"{path}.metadata.annotations" if path else "metadata.annotations"
    if not _PLACING.isdisjoint(spec):
        yield from _placement(place, spec)
    if annotations:
        yield from (f"{where}[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations)
    if spec.get("volumes"):
        yield from _volumes(f"{place}.volumes", spec["volumes"])
    if not _WITHOUT_DUPLICATES.isdisjoint(spec):
        yield from _duplicates(place, spec)
    yield from fractional_bytes(f"{place}.overhead", spec.get("overhead"), "memory", "ephemeral-storage")
    if _SECCOMP_POD in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        yield f"{where}[{_SECCOMP_POD}]: {_USE_SECCOMP}"
    containers = list(_containers(place, spec))
    for at, container in containers:
        if annotations:
            yield from _annotated(container, where, annotations, spec)
        if container.get("resources"):
            yield from _amounts(f"{at}.resources", container["resources"])
        if len(container.get("env") or ()) > 1:
            yield from _environment(f"{at}.env", container["env"])
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{place}.terminationGracePeriodSeconds: {text}"
    if spec.get("affinity"):
        yield from _affinity_terms(f"{place}.affinity", spec["affinity"])


def _containers(path: str, spec: Obj) -> Iterator[tuple[str, Obj]]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield f"{path}.{key}[{index}]", container


# --- where it runs


def _placement(path: str, spec: Obj) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_NODE_LABELS[key]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        at = f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{index}]"
        yield from node_selector_term(at, term, values=True)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{index}].preference"
        yield from node_selector_term(at, weighted.get("preference") or {}, values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if key in _NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: {_NO_SELECTOR}"


def node_selector_term(path: str, term: Obj, *, values: bool = False) -> Iterator[str]:
    """Warn of deprecated labels of nodes, and (where nothing refuses them) values that no label can have."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at, key = f"{path}.matchExpressions[{index}]", expression.get("key") or ""
        if key in _NODE_LABELS:
            yield f"{at}.key: {key} is {_NODE_LABELS[key]}"
        for place, value in enumerate((expression.get("values") or ()) if values else ()):
            for wrong in names.label_value(value):
                yield f"{at}.values[{place}]: {value} is invalid, {wrong}"


def node_labels(path: str, selector: Mapping[str, str] | None) -> Iterator[str]:
    return (f"{path}: {_NODE_LABELS[key]}" for key in selector or () if key in _NODE_LABELS)


def _affinity_terms(path: str, affinity: Obj) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


# --- volumes


def _volumes(path: str, volumes: list[Obj]) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for kind in _NOTED.intersection(volume):
            source, text = volume[kind], VOLUME_PLUGINS[kind]
            if source is None:
                continue
            if kind == "ephemeral":
                claim = (source.get("volumeClaimTemplate") or {}).get("spec") or {}
                yield from claim_warnings(f"{path}[{index}].ephemeral.volumeClaimTemplate.spec", claim)
            else:
                yield f"{path}[{index}].{_SHOWN_AS.get(kind, kind)}: {text}"
    for volume in volumes:
        yield from _overlaps(volume)


def claim_warnings(path: str, spec: Obj) -> Iterator[str]:
    resources = spec.get("resources") or {}
    for key in ("requests", "limits"):
        yield from fractional_bytes(f"{path}.resources.{key}", resources.get(key), "storage")


def _overlaps(volume: Obj) -> Iterator[str]:
    """Files of one volume that would stand at the same path, or one below the other."""
    if _WITH_FILES.isdisjoint(volume):
        return
    name = quote(volume.get("name") or "")
    for kind, shown, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(kind) or {}
        if source.get("items"):
            text = f"volume {name} ({shown} {quote(source.get(named) or '')}): overlapping paths"
            yield from _colliding([item.get("path") or "" for item in source["items"]], text)
    items = (volume.get("downwardAPI") or {}).get("items")
    if items:
        text = f"volume {name} (DownwardAPI): overlapping paths"
        yield from _colliding([item.get("path") or "" for item in items], text)
    if volume.get("projected") is not None:
        yield from _projected_overlaps(name, volume["projected"].get("sources") or [])


def _projected_overlaps(name: str, sources: list[Obj]) -> Iterator[str]:
    everything: set[str] = set()
    for source in sources:
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
            continue
        shown, paths = _projection(source)
        if not paths:
            continue
        text = f"volume {name} (Projected {shown}): overlapping paths"
        if len(paths) > 1:
            yield from _colliding(paths, text)
        if everything:
            yield from _colliding(sorted([*set(paths), *everything]), text)
        everything.update(paths)


def _projection(source: Obj) -> tuple[str, list[str]]:
    """Return how a source is called, and the paths of its files."""
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        found = source.get(kind) or {}
        if found.get("items"):
            return f"{shown} {quote(found.get('name') or '')}", [item.get("path") or "" for item in found["items"]]
    if (source.get("downwardAPI") or {}).get("items"):
        return "DownwardAPI", [item.get("path") or "" for item in source["downwardAPI"]["items"]]
    if source.get("serviceAccountToken") is not None:
        return "ServiceAccountToken", [source["serviceAccountToken"].get("path") or ""]
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        named = bundle.get("name") or bundle.get("signerName") or ""
        return f"ClusterTrustBundle {quote(named)}", [bundle.get("path") or ""]
    return "", []


def _colliding(paths: list[str], text: str) -> Iterator[str]:
    seen: list[str] = []
    for path in paths:
        plain = path.rstrip("/")
        other = next((item for item in seen if item and plain and _overlap(item, plain)), "")
        if other:
            yield f"{text}: {quote(plain)} with {quote(other)}"
        seen.append(plain)


def _overlap(one: str, other: str) -> bool:
    return one == other or f"{one}/".startswith(other) or f"{other}/".startswith(one)


# --- duplicates and amounts


def _duplicates(path: str, spec: Obj) -> Iterator[str]:
    for key, field in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(key) or ()):
            value = item.get(field) or ""
            if value in seen:
                yield f"{path}.{key}[{index}].{field}: duplicate {field} {quote(value)}"
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def fractional_bytes(path: str, amounts: Obj | None, *keys: str) -> Iterator[str]:
    if not amounts:
        return
    for key in keys:
        fraction = _fraction(amounts.get(key))
        if fraction:
            yield f'{path}[{key}]: fractional byte value "{fraction}" is invalid, must be an integer'


@lru_cache(maxsize=4096)
def _fraction(amount: str | float | None) -> str:
    """Return an amount that is no whole number, as it is shown; "" for others."""
    parsed = None if amount is None else quantity(amount)
    return str(parsed) if parsed is not None and parsed.milli() % 1000 else ""


def _annotated(container: Obj, where: str, annotations: Mapping[str, str], spec: Obj) -> Iterator[str]:
    name, context = container.get("name") or "", container.get("securityContext") or {}
    if _SECCOMP_CONTAINER + name in annotations and not context.get("seccompProfile"):
        yield f"{where}[{_SECCOMP_CONTAINER}{name}]: {_USE_SECCOMP}"
    profile = context.get("appArmorProfile") or (spec.get("securityContext") or {}).get("appArmorProfile")
    if _APPARMOR_CONTAINER + name in annotations and not profile:
        yield f"{where}[{_APPARMOR_CONTAINER}{name}]: {_USE_APPARMOR}"


def _amounts(path: str, resources: Obj) -> Iterator[str]:
    for resource in ("memory", "ephemeral-storage"):
        for key in ("limits", "requests"):
            if resource in (resources.get(key) or ()):
                yield from fractional_bytes(f"{path}.{key}", resources[key], resource)


def _environment(path: str, variables: list[Obj]) -> Iterator[str]:
    """Yield a variable that is defined again and does not build upon the value before."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        builds_upon = reference in value and value != reference and variable.get("valueFrom") is None
        if name in seen and not builds_upon:
            what = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path}[{index}]: {what}"
        seen.add(name)


def _ports(containers: list[tuple[str, Obj]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, Obj]]] = {}
    for at, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            place = f"{at}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{place}: hostIP set without hostPort: {_go_port(port)}"
            same = known.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
            for other_place, other in same:
                relation = _relation(port, other)
                if relation:
                    yield f"{place}: {relation} port definition with {other_place}"
            same.append((place, port))


def _relation(port: Obj, other: Obj) -> str:
    """Return how two definitions of the same port and protocol conflict; "" if they do not."""
    number, number_of_other = port.get("hostPort") or 0, other.get("hostPort") or 0
    address, address_of_other = port.get("hostIP") or "", other.get("hostIP") or ""
    if (number, address) == (number_of_other, address_of_other):
        return "duplicate"
    if not number or not number_of_other:
        return "overlapping"
    return "dangerously ambiguous" if number == number_of_other and bool(address) != bool(address_of_other) else ""


def _go_port(port: Obj) -> str:
    fields = {
        "Name": port.get("name") or "",
        "HostPort": port.get("hostPort") or 0,
        "ContainerPort": port.get("containerPort") or 0,
        "Protocol": port.get("protocol") or "",
        "HostIP": port.get("hostIP") or "",
    }
    return "{" + " ".join(f"{key}:{value}" for key, value in fields.items()) + "}"
