"""Which operations the third-party layer implements, and where it stands among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.features import default_gates
from karmada.interpreter.operations import OPERATIONS
from karmada.interpreter.thirdparty.kind import Kind
from karmada.interpreter.thirdparty.layer import KINDS, ThirdParty
from karmada.kube.objects.gvk import GVK, gvk_of
from tests.interpreter.thirdparty.cases import Maker, finished

LETTERS = dict(zip("RCVKADSH", OPERATIONS, strict=True))
DOCUMENTED = Path(__file__).parents[3] / "docs" / "interpret.md"
TRAINING = Maker("kubeflow.org/v1", "Notebook").make(
    "{spec: {template: {spec: {priorityClassName: high, containers: [{resources: {requests: {cpu: 1}}}]}}}}"
)


def documented() -> dict[GVK, set[str]]:
    """The operations of each kind by the table for users."""
    found: dict[GVK, set[str]] = {}
    api_version = ""
    for line in DOCUMENTED.read_text().split("## Kinds of third parties")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or set(cells[0]) == {"-"} or cells[0].startswith("Group"):
            continue
        api_version = cells[0] or api_version
        for kind in cells[1].split(", "):
            found[gvk_of({"apiVersion": api_version, "kind": kind})] = {LETTERS[letter] for letter in cells[2].split()}
    return found


def test_the_table_for_users_lists_exactly_what_is_known() -> None:
    layer = ThirdParty()
    known = {kind.gvk: {name for name in OPERATIONS if layer.enabled(kind.gvk, name)} for kind in KINDS}
    assert documented() == known


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.gvk.group}/{kind.gvk.kind}")
def test_another_version_of_a_kind_is_not_known(kind: Kind) -> None:
    gvk = kind.gvk
    assert not any(ThirdParty().enabled(GVK(gvk.group, "v9", gvk.kind), operation) for operation in OPERATIONS)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_priority_class_of_pods_is_reported_for_quotas_only(enabled: bool) -> None:
    gates = default_gates()
    gates.set(f"ResourceQuotaEstimate={'true' if enabled else 'false'}")
    needs = finished(ThirdParty(gates=gates).get_replicas(TRAINING)).requirements
    assert needs.get("priorityClassName") == ("high" if enabled else None)
