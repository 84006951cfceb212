"""kubectl about the server itself: discovery, documentation, access, certificates."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.ports import free_port
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., Result]


def test_explain_knows_every_field(kubectl: Program) -> None:
    assert "GROUP:      apps" in kubectl("explain", "deployment").out
    field = kubectl("explain", "deployment.spec.strategy.rollingUpdate.maxSurge").out
    assert "FIELD: maxSurge" in field
    recursive = kubectl("explain", "pods", "--recursive").out
    assert "containerPort\t<integer>" in recursive
    assert "nodeSelectorTerms" in recursive
    assert kubectl("explain", "deployment.spec.nothing", check=False).code != 0


def test_api_resources_and_versions(kubectl: Program) -> None:
    lines = kubectl("api-resources", "--no-headers").lines
    rows = {line.split()[0] for line in lines}
    assert {"pods", "deployments", "configmaps", "customresourcedefinitions", "leases", "events"} <= rows
    deployments = next(line.split() for line in lines if line.startswith("deployments "))
    assert deployments == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert "statefulsets.apps" in kubectl("api-resources", "--api-group=apps", "-o", "name").lines
    assert "nodes" in kubectl("api-resources", "--namespaced=false", "-o", "name").lines
    versions = kubectl("api-versions").lines
    assert {"v1", "apps/v1", "batch/v1", "autoscaling/v2", "rbac.authorization.k8s.io/v1"} <= set(versions)


def test_version_and_cluster_info(kubectl: Program, server: ServerProcess) -> None:
    assert re.search(r"Server Version: v1\.\d+\.\d+", kubectl("version").out)
    assert server.url in kubectl("cluster-info").out
    assert kubectl("config", "current-context").out.strip()
    assert server.url in kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}").out


def test_who_may_do_what(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    assert kubectl("auth", "can-i", "*", "*").out.strip() == "yes"
    assert "system:masters" in kubectl("auth", "whoami").out
    kn("create", "serviceaccount", "reader")
    kn("create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={namespace}:reader")
    as_reader = f"--as=system:serviceaccount:{namespace}:reader"
    assert kn("auth", "can-i", "get", "pods", as_reader).out.strip() == "yes"
    assert kn("auth", "can-i", "delete", "pods", as_reader, check=False).out.strip() == "no"
    assert "pods" in kn("auth", "can-i", "--list", as_reader).out
    refused = kn("delete", "cm", "kube-root-ca.crt", as_reader, check=False)
    assert (
        f'configmaps "kube-root-ca.crt" is forbidden: User "system:serviceaccount:{namespace}:reader" '
        f'cannot delete resource "configmaps" in API group "" in the namespace "{namespace}"' in refused.err
    )


def test_a_token_lets_its_account_in_until_the_account_goes(
    kubectl: Program, kn: Kubectl, namespace: str, server: ServerProcess, tmp_path: Path
) -> None:
    kn("create", "serviceaccount", "robot")
    kn("create", "rolebinding", "robot", "--clusterrole=edit", f"--serviceaccount={namespace}:robot")
    token = kn("create", "token", "robot", "--duration=15m").out.strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{namespace}:robot"
    robot = Program([kubectl._command[0]], tmp_path, kubeconfig_for(server, tmp_path, {"token": token}))
    assert f"system:serviceaccount:{namespace}:robot" in robot("auth", "whoami").out
    robot("-n", namespace, "create", "configmap", "mine")
    kn("delete", "serviceaccount", "robot")
    refused = robot("-n", namespace, "get", "cm", check=False)
    assert "You must be logged in to the server" in refused.err


def kubeconfig_for(server: ServerProcess, place: Path, user: dict[str, Any]) -> Path:
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = user
    path = place / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def test_bad_credentials_and_none_at_all(kubectl: Program, server: ServerProcess, tmp_path: Path) -> None:
    other = Program([kubectl._command[0]], tmp_path, kubeconfig_for(server, tmp_path, {"token": "nonsense"}))
    assert (
        "You must be logged in to the server (Unauthorized)" in other("get", "--raw", "/api/v1/pods", check=False).err
    )
    config = yaml.safe_load(server.kubeconfig.read_text())
    ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=ca)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/api/v1/pods", context=trust)
    status = json.load(refused.value)
    assert status["code"] == 403
    assert 'User "system:anonymous" cannot list resource "pods" in API group ""' in status["message"]
    with urllib.request.urlopen(f"{server.url}/healthz", context=trust) as healthy:
        assert healthy.read() == b"ok"


def test_a_certificate_is_requested_approved_and_used(kubectl: Program, server: ServerProcess, tmp_path: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, "jane"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "crew")]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    csr = {
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "jane"},
        "spec": {
            "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "expirationSeconds": 3600,
        },
    }  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(csr))
    assert kubectl("get", "csr", "jane").lines[1].split()[-1] == "Pending"
    kubectl("certificate", "approve", "jane")
    eventually_blocking(lambda: "Approved,Issued" in kubectl("get", "csr", "jane").out)
    certificate = kubectl("get", "csr", "jane", "-o", "jsonpath={.status.certificate}").out
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    user = {"client-certificate-data": certificate, "client-key-data": base64.b64encode(pem).decode()}
    jane = Program([kubectl._command[0]], tmp_path, kubeconfig_for(server, tmp_path, user))
    who = jane("auth", "whoami", "-o", "json").json()["status"]["userInfo"]
    assert who["username"] == "jane"
    assert "crew" in who["groups"]


def test_wait_for_a_condition_and_for_deletion(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    kn("create", "deployment", "slow", "--image=nginx")
    waiting = kubectl.start("-n", namespace, "wait", "deploy/slow", "--for=condition=Available", "--timeout=100s")
    status = {"conditions": [{"type": "Available", "status": "True", "reason": "Fine", "message": "fine"}]}
    kn("patch", "deploy", "slow", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert waiting.wait(LIMIT) == 0
    gone = kubectl.start("-n", namespace, "wait", "deploy/slow", "--for=delete", "--timeout=100s")
    kn("delete", "deploy", "slow")
    assert gone.wait(LIMIT) == 0
    timeout = kn("wait", "sa/default", "--for=condition=Never", "--timeout=1s", check=False)
    assert timeout.code != 0


def test_proxy_serves_the_api_without_credentials(kubectl: Program) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/api/v1/namespaces/default"
    proxy = kubectl.start("proxy", f"--port={port}")
    try:

        def answers() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                    return json.load(answer)["metadata"]["name"] == "default"
            except OSError:
                return False

        eventually_blocking(answers)
    finally:
        proxy.kill()
        proxy.wait()


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.harbour.example.com}
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: ships, singular: ship, kind: Ship, shortNames: [sh], categories: [fleet]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}}
    selectableFields: [{jsonPath: .spec.flag}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: How the ship is fitted out.
            x-kubernetes-validations:
            - {rule: "self.crew >= self.masts", message: every mast needs a sailor}
            - {rule: "!has(oldSelf.flag) || self.flag == oldSelf.flag", message: the flag stays}
            properties:
              masts: {type: integer, default: 1, minimum: 1}
              crew: {type: integer}
              flag: {type: string, enum: [dutch, danish]}
            required: [crew]
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    additionalPrinterColumns:
    - {name: Masts, type: integer, jsonPath: .spec.masts}
    - {name: Flag, type: string, jsonPath: .spec.flag, priority: 1}
"""


def ship(name: str, **spec: object) -> str:
    return json.dumps(
        {"apiVersion": "harbour.example.com/v1", "kind": "Ship", "metadata": {"name": name}, "spec": spec}
    )


def test_a_custom_resource_from_definition_to_deletion(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    kubectl("apply", "-f", "-", stdin=CRD)
    kubectl("wait", "--for=condition=Established", "crd/ships.harbour.example.com", "--timeout=100s")
    kn("apply", "-f", "-", stdin=ship("petrel", crew=4, flag="dutch"))
    assert kn("get", "sh").lines[0].split() == ["NAME", "MASTS"]
    assert kn("get", "sh", "-o", "wide").lines[1].split() == ["petrel", "1", "dutch"]
    assert "ship.harbour.example.com/petrel" in kn("get", "fleet", "-o", "name").lines
    assert "How the ship is fitted out." in kubectl("explain", "ship.spec").out
    few = kn("apply", "-f", "-", stdin=ship("small", crew=1, masts=3), check=False)
    assert 'The Ship "small" is invalid: spec: Invalid value: every mast needs a sailor' in few.err
    pirate = kn("apply", "-f", "-", stdin=ship("rogue", crew=9, flag="black"), check=False)
    assert 'spec.flag: Unsupported value: "black": supported values: "dutch", "danish"' in pirate.err
    flag = kn("patch", "ship", "petrel", "--type=merge", "-p", '{"spec":{"flag":"danish"}}', check=False)
    assert "the flag stays" in flag.err
    unknown = kn("create", "-f", "-", stdin=ship("odd", crew=3, sails=8), check=False)
    assert 'unknown field "spec.sails"' in unknown.err
    assert "petrel" in kn("get", "ships", "--field-selector", "spec.flag=dutch", "-o", "name").out
    assert kn("get", "ships", "--field-selector", "spec.flag=danish", "-o", "name").out == ""
    kn("scale", "ship", "petrel", "--replicas=7")
    assert kn("get", "ship", "petrel", "-o", "jsonpath={.spec.crew} {.metadata.generation}").out == "7 2"
    kn("patch", "ship", "petrel", "--subresource=status", "--type=merge", "-p", '{"status":{"crew":7}}')
    assert kn("get", "ship", "petrel", "-o", "jsonpath={.status.crew} {.metadata.generation}").out == "7 2"
    kubectl("delete", "crd", "ships.harbour.example.com", timeout=30)
    assert kn("get", "ships", check=False).code != 0
