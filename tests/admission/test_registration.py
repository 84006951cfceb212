from __future__ import annotations

import base64
from importlib import import_module

import pytest
from click.testing import CliRunner

from karmada.admission.hooks import Hook, Rule
from karmada.admission.registration import webhook_configurations
from karmada.admission.table import HOOKS
from karmada.cli.commands.webhook_config import webhook_config
from karmada.kube.kinds.admissionregistration import default_mutating, default_validating, validate_webhooks
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_all

MUTATE = [
    ("propagationpolicy.karmada.io", "/mutate-propagationpolicy", "policy.karmada.io", "propagationpolicies", "CU"),
    ("clusterpropagationpolicy.karmada.io", "/mutate-clusterpropagationpolicy", "policy.karmada.io",
     "clusterpropagationpolicies", "CU"),
    ("overridepolicy.karmada.io", "/mutate-overridepolicy", "policy.karmada.io", "overridepolicies", "CU"),
    ("resourcebinding.karmada.io", "/mutate-resourcebinding", "work.karmada.io", "resourcebindings", "C"),
    ("clusterresourcebinding.karmada.io", "/mutate-clusterresourcebinding", "work.karmada.io",
     "clusterresourcebindings", "C"),
    ("work.karmada.io", "/mutate-work", "work.karmada.io", "works", "CU"),
    ("autoscaling.karmada.io", "/mutate-federatedhpa", "autoscaling.karmada.io", "federatedhpas", "CU"),
    ("multiclusterservice.karmada.io", "/mutate-multiclusterservice", "networking.karmada.io",
     "multiclusterservices", "CU"),
]  # fmt: skip
VALIDATE = [
    ("propagationpolicy.karmada.io", "/validate-propagationpolicy", "policy.karmada.io", "propagationpolicies", "CU"),
    ("clusterpropagationpolicy.karmada.io", "/validate-clusterpropagationpolicy", "policy.karmada.io",
     "clusterpropagationpolicies", "CU"),
    ("overridepolicy.karmada.io", "/validate-overridepolicy", "policy.karmada.io", "overridepolicies", "CU"),
    ("clusteroverridepolicy.karmada.io", "/validate-clusteroverridepolicy", "policy.karmada.io",
     "clusteroverridepolicies", "CU"),
    ("config.karmada.io", "/validate-resourceinterpreterwebhookconfiguration", "config.karmada.io",
     "resourceinterpreterwebhookconfigurations", "CU"),
    ("resourceinterpretercustomization.karmada.io", "/validate-resourceinterpretercustomization",
     "config.karmada.io", "resourceinterpretercustomizations", "CU"),
    ("federatedresourcequota.karmada.io", "/validate-federatedresourcequota", "policy.karmada.io",
     "federatedresourcequotas", "CU"),
    ("multiclusteringress.karmada.io", "/validate-multiclusteringress", "networking.karmada.io",
     "multiclusteringresses", "CU"),
    ("federatedhpa.karmada.io", "/validate-federatedhpa", "autoscaling.karmada.io", "federatedhpas", "CU"),
    ("cronfederatedhpa.karmada.io", "/validate-cronfederatedhpa", "autoscaling.karmada.io", "cronfederatedhpas",
     "CU"),
    ("multiclusterservice.karmada.io", "/validate-multiclusterservice", "networking.karmada.io",
     "multiclusterservices", "CU"),
    ("resourcebinding.karmada.io", "/validate-resourcebinding", "work.karmada.io", "resourcebindings", "CU"),
    ("clustertaintpolicy.karmada.io", "/validate-clustertaintpolicy", "policy.karmada.io", "clustertaintpolicies",
     "CU"),
    ("resourcedeletionprotection.karmada.io", "/validate-resourcedeletionprotection", "*", "*", "D"),
]  # fmt: skip
LETTERS = {"C": "CREATE", "U": "UPDATE", "D": "DELETE"}
OLDER = {hook.path for hook in HOOKS if hook.older}


def rows(configuration: Obj) -> list[tuple[str, str, str, str, str]]:
    found = []
    for webhook in configuration["webhooks"]:
        [rule] = webhook["rules"]
        [group], [resource] = rule["apiGroups"], rule["resources"]
        path = webhook["clientConfig"]["url"].removeprefix("https://karmada-webhook.karmada-system.svc:443")
        operations = "".join(letter for letter, word in LETTERS.items() if word in rule["operations"])
        if path not in OLDER:
            found.append((webhook["name"], path, group, resource, operations))
    return found


def test_the_hooks_are_those_of_karmada() -> None:
    mutating, validating = webhook_configurations()
    assert (mutating["metadata"]["name"], mutating["kind"]) == ("mutating-config", "MutatingWebhookConfiguration")
    assert (validating["metadata"]["name"], validating["kind"]) == (
        "validating-config",
        "ValidatingWebhookConfiguration",
    )
    assert mutating["metadata"]["labels"] == validating["metadata"]["labels"] == {"app": "karmada-webhook"}
    assert rows(mutating) == MUTATE
    assert rows(validating) == VALIDATE


def test_few_differ_from_the_others() -> None:
    webhooks = [webhook for configuration in webhook_configurations() for webhook in configuration["webhooks"]]
    for webhook in webhooks:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert webhook["rules"][0]["apiVersions"] == ["*"]
    by_path = {webhook["clientConfig"]["url"].rpartition("/")[2]: webhook for webhook in webhooks}
    slow = [path for path, webhook in by_path.items() if webhook["timeoutSeconds"] != 3]
    assert slow == ["validate-resourceinterpretercustomization"]
    assert by_path[slow[0]]["timeoutSeconds"] == 10
    writing = [path for path, webhook in by_path.items() if webhook["sideEffects"] != "None"]
    assert writing == ["validate-resourcebinding"]
    assert by_path[writing[0]]["sideEffects"] == "NoneOnDryRun"
    [selecting] = [webhook for webhook in webhooks if "objectSelector" in webhook]
    assert selecting["rules"][0]["scope"] == "*"
    assert selecting["objectSelector"] == {
        "matchExpressions": [{"key": "resourcetemplate.karmada.io/deletion-protected", "operator": "Exists"}]
    }


def test_an_api_server_takes_them() -> None:
    mutating, validating = webhook_configurations("https://127.0.0.1:8443/", b"PEM")
    default_mutating(mutating)
    default_validating(validating)
    assert [str(error) for error in validate_webhooks(mutating)] == []
    assert [str(error) for error in validate_webhooks(validating)] == []
    client = mutating["webhooks"][0]["clientConfig"]
    assert client == {
        "url": "https://127.0.0.1:8443/mutate-propagationpolicy",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }


def test_the_command_prints_them() -> None:
    result = CliRunner().invoke(webhook_config, ["--url", "https://hooks.example.com"])
    assert result.exit_code == 0
    assert list(load_all(result.stdout_bytes)) == webhook_configurations("https://hooks.example.com")


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.path)
def test_every_hook_has_its_rule(hook: Hook) -> None:
    rule = hook.mutate or hook.validate
    assert isinstance(rule, Rule)
    module, name = rule.place
    assert callable(getattr(import_module(module), name))


def test_no_path_is_there_twice() -> None:
    assert len({hook.path for hook in HOOKS}) == len(HOOKS)
