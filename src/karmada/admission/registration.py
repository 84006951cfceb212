"""The webhook configurations that register the rules with a kube-apiserver."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from karmada.admission.hooks import Hook
from karmada.admission.table import MUTATING, VALIDATING
from karmada.kube.objects.types import Obj

URL = "https://karmada-webhook.karmada-system.svc:443"
MUTATING_CONFIG, VALIDATING_CONFIG = "mutating-config", "validating-config"
LABELS = {"app": "karmada-webhook"}


def webhook_configurations(url_base: str = URL, ca_bundle: bytes = b"") -> list[Obj]:
    """Return both configurations. `ca_bundle` (PEM) is what the webhook's certificate is checked with.

    Empty: what the API server's system trusts.
    """
    base = url_base.rstrip("/")
    return [
        _configuration("MutatingWebhookConfiguration", MUTATING_CONFIG, MUTATING, base, ca_bundle),
        _configuration("ValidatingWebhookConfiguration", VALIDATING_CONFIG, VALIDATING, base, ca_bundle),
    ]


def _configuration(kind: str, name: str, hooks: Iterable[Hook], base: str, ca_bundle: bytes) -> Obj:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": dict(LABELS)},
        "webhooks": [_webhook(hook, base, ca_bundle) for hook in hooks],
    }


def _webhook(hook: Hook, base: str, ca_bundle: bytes) -> Obj:
    rule: Obj = {
        "operations": list(hook.operations),
        "apiGroups": [hook.resource.group],
        "apiVersions": ["*"],
        "resources": [hook.resource.resource],
        "scope": "*",
    }
    client: Obj = {"url": base + hook.path}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    webhook: Obj = {
        "name": hook.name,
        "rules": [rule],
        "clientConfig": client,
        "failurePolicy": "Fail",
        "sideEffects": hook.side_effects,
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": hook.seconds,
    }
    if hook.label:
        webhook["objectSelector"] = {"matchExpressions": [{"key": hook.label, "operator": "Exists"}]}
    return webhook
