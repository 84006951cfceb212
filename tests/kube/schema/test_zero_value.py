"""Empty objects look as Go writes them."""

from __future__ import annotations

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.zero_value import zero_value
from tests.support.cases import cases

DEFS = Definitions.load()
TEMPLATE = {"metadata": {}, "spec": {"containers": None}}


@cases(
    (GVK("", "v1", "ConfigMap"), {}),
    (GVK("", "v1", "Pod"), {"spec": {"containers": None}, "status": {}}),
    (GVK("apps", "v1", "Deployment"),
     {"spec": {"selector": None, "template": TEMPLATE, "strategy": {}}, "status": {}}),
    (GVK("rbac.authorization.k8s.io", "v1", "ClusterRole"), {"rules": None}),
    (GVK("", "v1", "Service"), {"spec": {}, "status": {"loadBalancer": {}}}),
    (GVK("", "v1", "Event"),
     {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
      "reportingComponent": "", "reportingInstance": ""}),
    ids=lambda value: value.kind if isinstance(value, GVK) else "",
)  # fmt: skip
def test_an_empty_object_has_what_is_always_written(gvk: GVK, zero: Obj) -> None:
    node = DEFS.node_for(gvk)
    assert node is not None
    assert zero_value(node) == {"metadata": {}, **zero}
