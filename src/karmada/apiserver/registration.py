"""What a control plane must have for clusters to register in Pull mode.

A cluster that registers has nothing but a bootstrap token. It reads the public cluster-info as system:anonymous and
verifies the signature in it; with the token it requests certificates, which are approved for its group; with the first
of them, that of the RBAC generator, it creates the roles of its agent. Agents may renew their own certificates.
"""

from __future__ import annotations

import base64

from karmada.api import well_known
from karmada.kube.objects.bootstrap_tokens import INFO_KEY, INFO_NAME, INFO_NAMESPACE
from karmada.kube.objects.types import Obj

_RBAC = "rbac.authorization.k8s.io"
_LABELS = {well_known.SYSTEM: well_known.TRUE, well_known.BOOTSTRAPPING: "rbac-defaults"}
_APPROVING = "system:karmada:certificatesigningrequest:"
_INFO_READER = "system:karmada:bootstrap-signer-clusterinfo"
_GENERATOR = "system:karmada:agent-rbac-generator"
_AUTOAPPROVER, _SELF_AUTOAPPROVER = f"{_APPROVING}autoapprover", f"{_APPROVING}selfautoapprover"


def registration_rights() -> list[Obj]:
    """Roles first, then bindings."""
    read_info = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [INFO_NAME], "verbs": ["get"]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    joining, agents = ("Group", well_known.BOOTSTRAP_GROUP), ("Group", well_known.AGENT_GROUP)
    return [
        _object("Role", _INFO_READER, INFO_NAMESPACE, rules=[read_info]),
        _object("ClusterRole", _GENERATOR, rules=[everything]),
        _object("ClusterRole", _AUTOAPPROVER, rules=[_create_request(well_known.APPROVE_AGENT)]),
        _object("ClusterRole", _SELF_AUTOAPPROVER, rules=[_create_request(well_known.APPROVE_SELF)]),
        _binding("RoleBinding", _INFO_READER, _INFO_READER, ("User", "system:anonymous"), INFO_NAMESPACE),
        _binding("ClusterRoleBinding", _GENERATOR, _GENERATOR, ("User", well_known.RBAC_GENERATOR)),
        _binding("ClusterRoleBinding", "system:karmada:agent-bootstrap", "system:node-bootstrapper", joining),
        _binding("ClusterRoleBinding", "system:karmada:agent-autoapprove-bootstrap", _AUTOAPPROVER, joining),
        _binding(
            "ClusterRoleBinding", "system:karmada:agent-autoapprove-certificate-rotation", _SELF_AUTOAPPROVER, agents
        ),
    ]


def cluster_info(server: str, ca_pem: bytes) -> Obj:
    """Return the address and authority of the control plane, for anyone to read; signatures are added beside them."""
    kubeconfig = f"""\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {base64.b64encode(ca_pem).decode()}
    server: {server}
  name: ""
contexts: null
current-context: ""
kind: Config
preferences: {{}}
users: null
"""
    metadata = {"name": INFO_NAME, "namespace": INFO_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {INFO_KEY: kubeconfig}}


def _create_request(subresource: str) -> Obj:
    """Return the right that a SubjectAccessReview checks before a request is approved."""
    resource = f"certificatesigningrequests/{subresource}"
    return {"apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": ["create"]}


def _object(kind: str, name: str, namespace: str = "", **content: object) -> Obj:
    metadata: Obj = {"name": name, "labels": _LABELS}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def _binding(kind: str, name: str, role: str, subject: tuple[str, str], namespace: str = "") -> Obj:
    reference = {"apiGroup": _RBAC, "kind": kind.removesuffix("Binding"), "name": role}
    bound = {"apiGroup": _RBAC, "kind": subject[0], "name": subject[1]}
    return _object(kind, name, namespace, roleRef=reference, subjects=[bound])
