"""The embedded server's plug-ins and the webhook answer the same review alike, for every hook there is."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from karmada.admission.context import Settings
from karmada.admission.plugin import admission_plugins
from karmada.admission.table import HOOKS, MUTATING
from karmada.api.resources import karmada_resources
from karmada.components.webhook import WebhookServer, serving_context
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import Dialect, apply_json_patch
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.review import denial
from karmada.kube.server.auth.user import User
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.tls_backend import builtin_registry

SETTINGS = Settings(new_id=lambda: "fixed-id", lua_problem=lambda script: "no Lua" if script == "bad" else "")
NGINX = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "namespace": "default"}
PROTECTED = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
POLICY, WORK, CONFIG = "policy.karmada.io/v1alpha1", "work.karmada.io/v1alpha1", "config.karmada.io/v1alpha1"
NETWORKING, AUTOSCALING = "networking.karmada.io/v1alpha1", "autoscaling.karmada.io/v1alpha1"


def made(api_version: str, kind: str, spec: Any, *, namespace: str = "default", **meta: Any) -> Obj:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **where, **meta}, "spec": spec}


def propagation(**placement: Any) -> Obj:
    spec = {"resourceSelectors": [NGINX], "placement": placement}
    return made(POLICY, "PropagationPolicy", spec, labels={"propagationpolicy.karmada.io/permanent-id": "a"})


def cluster_propagation(**placement: Any) -> Obj:
    labels = {"clusterpropagationpolicy.karmada.io/permanent-id": "a"}
    spec = {"resourceSelectors": [NGINX], "placement": placement}
    return made(POLICY, "ClusterPropagationPolicy", spec, namespace="", labels=labels)


def override(kind: str, **spec: Any) -> Obj:
    return made(POLICY, kind, spec, namespace="" if kind.startswith("Cluster") else "default")


def binding(kind: str = "ResourceBinding", **meta: Any) -> Obj:
    namespace = "" if kind.startswith("Cluster") else "default"
    return made("work.karmada.io/v1alpha2", kind, {"resource": NGINX}, namespace=namespace, **meta)


def customization(script: str) -> Obj:
    target = {"apiVersion": "apps/v1", "kind": "Deployment"}
    spec = {"target": target, "customizations": {"retention": {"luaScript": script}}}
    return made(CONFIG, "ResourceInterpreterCustomization", spec, namespace="")


def autoscaler(**spec: Any) -> Obj:
    whole = {"scaleTargetRef": {"kind": "Deployment", "name": "x"}, "maxReplicas": 3, **spec}
    return made(AUTOSCALING, "FederatedHPA", whole)


def cron(schedule: str) -> Obj:
    rule = {"name": "r", "schedule": schedule, "targetReplicas": 1}
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "rules": [rule]}
    return made(AUTOSCALING, "CronFederatedHPA", spec)


def older(api_version: str, replicas: int, namespace: str = "default") -> Obj:
    return made(api_version, "ReplicaSchedulingPolicy", {"totalReplicas": replicas}, namespace=namespace)


def interpreter_webhook(name: str) -> Obj:
    webhook = {"name": name, "clientConfig": {"url": "https://a"}, "interpreterContextVersions": ["v1alpha1"]}
    return kube_object(CONFIG, "ResourceInterpreterWebhookConfiguration", "x", webhooks=[webhook])


def config_map(**labels: str) -> Obj:
    return kube_object("v1", "ConfigMap", "x", "d", labels=labels)


BACKEND = {"service": {"name": "a", "port": {"number": 80}}}
REGION = {"spreadConstraints": [{"spreadByField": "region"}]}
TWICE: dict[str, Any] = {"spreadConstraints": [{"spreadByField": "cluster"}, {"spreadByField": "cluster"}]}
DEPENDENCIES: dict[str, Any] = {"annotations": {"resourcebinding.karmada.io/dependencies": "nonsense"}}
Reviewed = tuple[str, str, Obj | None, Obj | None]
"""Path, operation, object, old object."""
RECORDED: list[Reviewed] = [
    ("mutate-propagationpolicy", "CREATE", propagation(**REGION), None),
    ("mutate-propagationpolicy", "UPDATE", propagation(), propagation()),
    ("mutate-propagationpolicy", "CREATE", made(POLICY, "PropagationPolicy", {"placement": "everywhere"}), None),
    ("mutate-clusterpropagationpolicy", "CREATE", cluster_propagation(), None),
    ("mutate-overridepolicy", "CREATE", override("OverridePolicy", resourceSelectors=[{"kind": "Pod"}]), None),
    ("mutate-resourcebinding", "CREATE", binding(), None),
    ("mutate-resourcebinding", "UPDATE", binding(), binding()),
    ("mutate-clusterresourcebinding", "CREATE", binding("ClusterResourceBinding"), None),
    ("mutate-work", "CREATE", made(WORK, "Work", {"workload": {"manifests": [config_map(a="b")]}}), None),
    ("mutate-work", "UPDATE", made(WORK, "Work", {"workload": {"manifests": [{}]}}), made(WORK, "Work", {})),
    ("mutate-federatedhpa", "CREATE", autoscaler(behavior={}), None),
    ("mutate-multiclusterservice", "CREATE", made(NETWORKING, "MultiClusterService", {"types": []}), None),
    ("mutate-multiclusteringress", "CREATE",
     made(NETWORKING, "MultiClusterIngress", {"template": {"spec": {"defaultBackend": BACKEND}}}), None),
    ("mutate-replicaschedulingpolicy", "CREATE", older(POLICY, 1), None),
    ("validate-propagationpolicy", "CREATE", propagation(), None),
    ("validate-propagationpolicy", "CREATE", propagation(**TWICE), None),
    ("validate-propagationpolicy", "UPDATE", made(POLICY, "PropagationPolicy", {}), propagation()),
    ("validate-clusterpropagationpolicy", "CREATE", cluster_propagation(**TWICE), None),
    ("validate-overridepolicy", "UPDATE", override("OverridePolicy", targetCluster={}, overrideRules=[]),
     override("OverridePolicy")),
    ("validate-clusteroverridepolicy", "CREATE", override("ClusterOverridePolicy", targetCluster={}, overrideRules=[]),
     None),
    ("validate-resourceinterpreterwebhookconfiguration", "CREATE", interpreter_webhook("short"), None),
    ("validate-resourceinterpreterwebhookconfiguration", "CREATE", interpreter_webhook("long.enough"), None),
    ("validate-resourceinterpretercustomization", "CREATE", customization("bad"), None),
    ("validate-resourceinterpretercustomization", "CREATE", customization("good"), None),
    ("validate-federatedresourcequota", "CREATE",
     made(POLICY, "FederatedResourceQuota", {"overall": {"pods": "1m"}}), None),
    ("validate-multiclusteringress", "CREATE", made(NETWORKING, "MultiClusterIngress", {}), None),
    ("validate-federatedhpa", "CREATE", autoscaler(minReplicas=5), None),
    ("validate-cronfederatedhpa", "CREATE", cron("often"), None),
    ("validate-cronfederatedhpa", "CREATE", cron("0 0 * * 7"), None),
    ("validate-multiclusterservice", "CREATE", made(NETWORKING, "MultiClusterService", {"types": ["A"]}), None),
    ("validate-resourcebinding", "CREATE", binding(**DEPENDENCIES), None),
    ("validate-resourcebinding", "CREATE", binding(), None),
    ("validate-clustertaintpolicy", "CREATE",
     made(POLICY, "ClusterTaintPolicy", {"taints": [{"key": "a", "effect": "NoExecute"}]}, namespace=""), None),
    ("validate-replicaschedulingpolicy", "CREATE", older(POLICY, -1), None),
    ("validate-clusterreplicaschedulingpolicy", "CREATE", older(CONFIG, -1, ""), None),
    ("validate-resourcedeletionprotection", "DELETE", None, config_map(**PROTECTED)),
    ("validate-resourcedeletionprotection", "DELETE", None, config_map()),
    ("validate-resourcedeletionprotection", "DELETE", None, {**propagation(), "metadata": {"name": "x",
                                                                                       "labels": PROTECTED}}),
]  # fmt: skip
RESOURCES = {resource.gvk: resource for resource in (*karmada_resources(), *builtin_registry())}
Outcome = tuple[Any, ...]


def resource_of(obj: Obj) -> Resource:
    return RESOURCES[GVK.parse(obj["apiVersion"], obj["kind"])]


def refusal(error: ApiError, warnings: list[str]) -> Outcome:
    return False, error.http_code, error.status_reason, error.message, warnings


async def in_process(path: str, operation: str, obj: Obj | None, old: Obj | None) -> Outcome:
    some = obj or old or {}
    namespace = some["metadata"].get("namespace") or ""
    given = copy_json(obj)
    attributes = Attributes(operation, resource_of(some), "", namespace, "x", given, old, User("me"))
    chain = Chain(admission_plugins(SETTINGS))
    try:
        if path.startswith("mutate"):
            await chain.admit(attributes)
        else:
            await chain.validate(attributes)
    except ApiError as error:
        return refusal(error, attributes.warnings)
    return True, attributes.obj, attributes.warnings


def review(operation: str, obj: Obj | None, old: Obj | None) -> Obj:
    some = obj or old or {}
    resource = resource_of(some)
    request = {
        "uid": "1-2-3",
        "kind": resource.gvk._asdict(),
        "resource": resource.gvr._asdict(),
        "operation": operation,
        "name": "x",
        "namespace": some["metadata"].get("namespace") or "",
        "userInfo": {"username": "me"},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Webhook:
    def __init__(self, server: WebhookServer, session: aiohttp.ClientSession, tls: ssl.SSLContext) -> None:
        self._url = f"https://127.0.0.1:{server.port}/"
        self._session = session
        self._tls = tls

    async def post(self, path: str, body: bytes) -> Obj:
        async with self._session.post(self._url + path, data=body, ssl=self._tls) as answer:
            assert answer.status == 200
            found: Obj = await answer.json()
            return found

    async def call(self, path: str, operation: str, obj: Obj | None, old: Obj | None) -> Outcome:
        answer = await self.post(path, orjson.dumps(review(operation, obj, old)))
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response = answer["response"]
        assert response["uid"] == "1-2-3"
        warnings = response.get("warnings", [])
        if not response["allowed"]:
            [name] = [hook.name for hook in HOOKS if hook.path == f"/{path}"]
            return refusal(denial(name, response["status"]), warnings)
        assert ("patch" in response) == (response.get("patchType") == "JSONPatch")
        operations = orjson.loads(base64.b64decode(response.get("patch", base64.b64encode(b"[]"))))
        return True, apply_json_patch(obj, operations, Dialect.LENIENT), warnings


@pytest.fixture
async def webhook(folder: Path) -> AsyncIterator[Webhook]:
    server = WebhookServer(SETTINGS, serving_context(folder, "tls.crt", "tls.key", "1.3"), host="127.0.0.1", port=0)
    await server.start()
    async with aiohttp.ClientSession() as session:
        yield Webhook(server, session, ssl.create_default_context(cafile=str(folder / "ca.crt")))
    await server.stop()


@pytest.mark.parametrize("reviewed", RECORDED, ids=[f"{path}-{index}" for index, (path, *_) in enumerate(RECORDED)])
async def test_both_answer_alike(reviewed: Reviewed, webhook: Webhook) -> None:
    assert await webhook.call(*reviewed) == await in_process(*reviewed)


async def test_what_was_recorded_reaches_every_hook_and_both_answers() -> None:
    assert {f"/{path}" for path, *_ in RECORDED} == {hook.path for hook in HOOKS}
    outcomes = [(path, (await in_process(path, *reviewed))[0]) for path, *reviewed in list[tuple[Any, ...]](RECORDED)]
    refusing = {f"/{path}" for path, allowed in outcomes if not allowed}
    assert refusing >= {hook.path for hook in HOOKS if hook not in MUTATING}


@cases(
    (
        "mutate-propagationpolicy",
        made(POLICY, "PropagationPolicy", {"resourceSelectors": [NGINX], "placement": "everywhere"}),
        400,
        "",
        "Expected `object`, got `str` - at `$.spec.placement`",
    ),
    (
        "mutate-work",
        made(WORK, "Work", {"workload": {"manifests": [{}]}}),
        500,
        "",
        "Object 'Kind' is missing in '{}'",
    ),
    (
        "validate-clustertaintpolicy",
        made(POLICY, "ClusterTaintPolicy", {"taints": [{"key": "a", "effect": "NoExecute"}]}, namespace=""),
        403,
        "Forbidden",
        "spec.taints[0]: Forbidden: Configuring taint with NoExecute effect is not allowed, this capability must "
        "be explicitly enabled by administrators through command-line flags",
    ),
)
async def test_a_refusal_looks_as_if_from_a_webhook(
    path: str, reviewed: Obj, code: int, reason: str, text: str
) -> None:
    allowed, *rest, _ = await in_process(path, "CREATE", reviewed, None)
    [name] = [hook.name for hook in HOOKS if hook.path == f"/{path}"]
    assert not allowed
    assert rest == [code, reason, f'admission webhook "{name}" denied the request: {text}']


@cases(
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{}}', 400),
    (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', 400),
    (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"operation":"CREATE"}}', 400),
    (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"object":5}}', 400),
)
async def test_a_question_that_cannot_be_read_is_refused(body: bytes, code: int, webhook: Webhook) -> None:
    response = (await webhook.post("mutate-propagationpolicy", body))["response"]
    assert not response["allowed"]
    assert response["status"]["code"] == code


async def test_operations_and_subresources_that_were_not_requested_are_let_through(webhook: Webhook) -> None:
    of_status = review("CREATE", propagation(**TWICE), None)
    of_status["request"]["subResource"] = "status"
    for request in (of_status, review("DELETE", None, propagation())):
        response = (await webhook.post("validate-propagationpolicy", orjson.dumps(request)))["response"]
        assert response == {"uid": "1-2-3", "allowed": True, "status": {"code": 200}}


def conversion(desired: str, *objects: Any) -> bytes:
    request = {"uid": "9", "desiredAPIVersion": desired, "objects": list(objects)}
    return orjson.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request})


async def test_bindings_are_converted(webhook: Webhook) -> None:
    answer = await webhook.post("convert", conversion(WORK, binding()))
    assert (answer["apiVersion"], answer["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    response = answer["response"]
    assert response["result"] == {"status": "Success"}
    assert response["uid"] == "9"
    [converted] = response["convertedObjects"]
    assert (converted["apiVersion"], converted["spec"]) == (WORK, {"resource": NGINX})


@cases(conversion("work.karmada.io/v9", binding()), conversion(WORK, 5), b"{}", b"no")
async def test_what_cannot_be_converted_is_a_failure(body: bytes, webhook: Webhook) -> None:
    result = (await webhook.post("convert", body))["response"]["result"]
    assert result["status"] == "Failure"
    assert result["message"]


@cases("CREATE", "UPDATE", "DELETE")
def test_a_write_of_another_kind_concerns_nobody_but_for_the_label_of_what_is_deleted(operation: str) -> None:
    attributes = Attributes(operation, resource_of(config_map()), "", "d", "x", config_map(), config_map(), User("me"))
    concerned = [plugin.name for plugin in admission_plugins(SETTINGS) if plugin.handles(attributes)]
    assert concerned == (["DeletionProtection"] if operation == "DELETE" else [])


def test_the_plug_ins_load_no_rule_before_it_is_called() -> None:
    script = "import sys, karmada.admission.plugin; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    rules = {f"karmada.admission.{name}" for name in ("propagation", "work", "ingresses", "autoscaling", "quota")}
    assert "karmada.admission.table" in loaded
    assert rules.isdisjoint(loaded)
    assert {"aiohttp", "asyncio", "lupa"}.isdisjoint(loaded)
