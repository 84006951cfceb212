"""The chain: order, slots, and that a request pays only for what concerns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.objects.errors import Forbidden
from karmada.kube.server.admission.chain import ORDER, Chain, default_chain, default_plugins
from karmada.kube.server.admission.interface import Attributes, Plugin
from karmada.kube.server.admission.plugin import BuiltinPlugin
from tests.support.cases import cases

AttributesOf = Callable[..., Any]


class Probe(Plugin):
    """A plug-in from elsewhere that writes down when it was called."""

    def __init__(self, name: str, log: list[str], wanted: bool = True) -> None:
        self.name = name
        self.wanted = wanted
        self.generation = 0
        self.depends_on = (self,)
        self._log = log

    def handles(self, _attributes: Attributes) -> bool:
        self._log.append(f"{self.name}?")
        return self.wanted

    async def admit(self, _attributes: Attributes) -> None:
        self._log.append(f"{self.name}.admit")

    async def validate(self, _attributes: Attributes) -> None:
        self._log.append(f"{self.name}.validate")


def test_the_default_plugins_are_in_their_order(reader: Any) -> None:
    names = Chain(reversed(default_plugins(reader))).names
    assert names == sorted(names, key=ORDER.index)
    assert names[0] == "NamespaceLifecycle"
    assert names[-1] == "ResourceQuota"


def test_plugins_can_be_switched_off(reader: Any) -> None:
    chain = default_chain(reader, disabled={"ServiceAccount", "StorageObjectInUseProtection"})
    assert "ServiceAccount" not in chain.names
    assert "StorageObjectInUseProtection" not in chain.names
    assert "Priority" in chain.names


def test_webhooks_have_their_places(reader: Any) -> None:
    log: list[str] = []
    others = [Probe("ValidatingAdmissionWebhook", log), Probe("MutatingAdmissionWebhook", log), Probe("Mine", log)]
    names = default_chain(reader, others=others).names
    assert names.index("DefaultIngressClass") < names.index("MutatingAdmissionWebhook")
    assert names.index("MutatingAdmissionWebhook") < names.index("ValidatingAdmissionWebhook")
    assert names[-2:] == ["Mine", "ResourceQuota"]


async def test_a_plugin_is_evaluated_again_when_what_it_depends_on_has_changed(attributes_of: AttributesOf) -> None:
    log: list[str] = []
    probe = Probe("MutatingAdmissionWebhook", log)
    chain = Chain([probe])
    assert await chain.admit(attributes_of("CREATE", "pods", {}))
    await chain.validate(attributes_of("CREATE", "pods", {}))
    name = probe.name
    assert log == [f"{name}?", f"{name}.admit", f"{name}.validate"]
    probe.wanted = False
    probe.generation += 1
    assert not await chain.admit(attributes_of("CREATE", "pods", {}))
    assert log[-1] == f"{name}?"


@cases(
    {"operation": "UPDATE", "old": {}},
    {"plural": "configmaps"},
    {"subresource": "status"},
    {"namespace": ""},
)
async def test_a_plugin_is_evaluated_for_each_sort_of_request(other: Any, attributes_of: AttributesOf) -> None:
    log: list[str] = []
    chain = Chain([Probe("Any", log, wanted=False)])
    for given in ({}, other, {"name": "of no interest"}):
        arguments = {"operation": "CREATE", "plural": "pods", "obj": {}, **given}
        await chain.admit(attributes_of(**arguments))
    assert log == ["Any?", "Any?"]


async def test_plugins_are_evaluated_once(attributes_of: AttributesOf, reader: Any) -> None:
    calls: list[str] = []

    class Static(BuiltinPlugin):
        name = "LimitRanger"

        def handles(self, attributes: Attributes) -> bool:
            calls.append(attributes.operation)
            return True

        async def admit(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            attributes.obj["seen"] = True

    chain = Chain([Static(reader)])
    for _ in range(3):
        attributes = attributes_of("CREATE", "pods", {})
        assert await chain.admit(attributes)
        assert attributes.obj["seen"]
        await chain.validate(attributes)
    assert calls == ["CREATE"]


async def test_a_plugin_that_is_added_later_is_called(attributes_of: AttributesOf) -> None:
    log: list[str] = []
    chain = Chain([])
    await chain.admit(attributes_of("CREATE", "pods", {}))
    chain.add(Probe("MutatingAdmissionWebhook", log))
    await chain.admit(attributes_of("CREATE", "pods", {}))
    assert log == ["MutatingAdmissionWebhook?", "MutatingAdmissionWebhook.admit"]


async def test_a_config_map_is_not_changed_and_so_not_defaulted_again(reader: Any, attributes_of: AttributesOf) -> None:
    assert not await default_chain(reader).admit(attributes_of("CREATE", "configmaps", {}))


async def test_a_pod_goes_through_all_of_them(reader: Any, attributes_of: AttributesOf) -> None:
    reader.put("", "serviceaccounts", {"metadata": {"name": "default", "namespace": "ns"}})
    attributes = attributes_of("CREATE", "pods", {"metadata": {}, "spec": {"containers": [{"name": "c"}]}})
    chain = default_chain(reader)
    assert await chain.admit(attributes)
    await chain.validate(attributes)
    spec = attributes.obj["spec"]
    assert spec["serviceAccountName"] == "default"
    assert spec["priority"] == 0
    assert len(spec["tolerations"]) == 2


async def test_the_quota_is_notified_of_the_outcome_of_a_write(reader: Any, attributes_of: AttributesOf) -> None:
    status = {"hard": {"configmaps": "1"}, "used": {"configmaps": "0"}}
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": {"configmaps": "1"}}, "status": status}
    reader.put("", "resourcequotas", quota)
    chain = default_chain(reader)
    first = attributes_of("CREATE", "configmaps", {}, name="a")
    await chain.validate(first)
    with pytest.raises(Forbidden):
        await chain.validate(attributes_of("CREATE", "configmaps", {}, name="b"))
    chain.finish(first, stored=False)
    await chain.validate(attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_only_plugins_that_wait_for_the_outcome_are_notified_of_it(attributes_of: AttributesOf) -> None:
    outcomes: list[bool | None] = []

    class Waits(Probe):
        def finish(self, _attributes: Attributes, stored: bool | None) -> None:
            outcomes.append(stored)

    log: list[str] = []
    chain = Chain([Probe("One", log), Waits("Two", log)])
    for stored in (True, False, None):
        chain.finish(attributes_of("CREATE", "pods", {}), stored)
    assert outcomes == [True, False, None]


async def test_methods_that_a_plugin_leaves_out_cost_nothing(attributes_of: AttributesOf) -> None:
    class Judge(Plugin):
        name = "Judge"
        judged = 0

        def handles(self, _attributes: Attributes) -> bool:
            return True

        async def validate(self, _attributes: Attributes) -> None:
            self.judged += 1

    judge = Judge()
    chain = Chain([judge])
    assert not await chain.admit(attributes_of("CREATE", "pods", {}))
    await chain.validate(attributes_of("CREATE", "pods", {}))
    assert judge.judged == 1
