"""What a control plane must have for clusters to register in Pull mode.

A cluster that registers has nothing but a bootstrap token. It reads the public cluster-info as system:anonymous and
verifies the signature in it; with the token it requests certificates, which are approved for its group; with the first
of them, that of the RBAC generator, it creates the roles of its agent. Agents may renew their own certificates.
"""

from __future__ import annotations

import base64
from functools import partial

from karmada.api import well_known
from karmada.kube.objects import rbac
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
    joining, agents = rbac.group(well_known.BOOTSTRAP_GROUP), rbac.group(well_known.AGENT_GROUP)
    role, binding = partial(rbac.role, labels=_LABELS), partial(rbac.binding, labels=_LABELS)
    rotation = "system:karmada:agent-autoapprove-certificate-rotation"
    return [
        role(_INFO_READER, [read_info], INFO_NAMESPACE),
        role(_GENERATOR, [everything]),
        role(_AUTOAPPROVER, [_create_request(well_known.APPROVE_AGENT)]),
        role(_SELF_AUTOAPPROVER, [_create_request(well_known.APPROVE_SELF)]),
        binding(_INFO_READER, rbac.user("system:anonymous"), INFO_NAMESPACE),
        binding(_GENERATOR, rbac.user(well_known.RBAC_GENERATOR)),
        binding("system:karmada:agent-bootstrap", joining, role="system:node-bootstrapper"),
        binding("system:karmada:agent-autoapprove-bootstrap", joining, role=_AUTOAPPROVER),
        binding(rotation, agents, role=_SELF_AUTOAPPROVER),
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
