"""The Table object, custom columns, and the row of every built-in kind."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import printer_for, printer_of_kind, table, table_of
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.times import rfc3339
from karmada.kube.schema.node import Node
from tests.support.cases import cases

NOW = 1_700_000_000.0
CREATED = rfc3339(NOW - 300)
AGE = "5m"


def resource(
    kind: str = "Foo", group: str = "example.com", *, columns: tuple[dict[str, Any], ...] | None = None
) -> Resource:
    gvk = GVK(group, "v1", kind)
    plural = kind.lower() + "s"
    return Resource(
        gvk=gvk, plural=plural, namespaced=True, schema=Node, storage=gvk,
        storage_resource=GroupResource(group, plural), custom=columns is not None, columns=columns or (),
    )  # fmt: skip


def obj(name: str = "x", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": CREATED, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Any", "metadata": metadata, **fields}


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "nginx:1"}, {"name": "b", "image": "envoy:2"}]},
}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
}
SELECTED = "app=web,tier in (a,b)"
WORKLOAD = {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}

ROWS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("apps", "Deployment",
     obj(spec=WORKLOAD, status={"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}),
     {"Name": "x", "Ready": "2/3", "Up-to-date": 3, "Available": 1, "Age": AGE,
      "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": SELECTED}),
    ("apps", "ReplicaSet", obj(spec=WORKLOAD, status={"replicas": 3, "readyReplicas": 2}),
     {"Name": "x", "Desired": 3, "Current": 3, "Ready": 2, "Age": AGE,
      "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": SELECTED}),
    ("", "ReplicationController", obj(spec=WORKLOAD | {"selector": {"b": "2", "a": "1"}}),
     {"Name": "x", "Desired": 3, "Current": 0, "Ready": 0, "Age": AGE,
      "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": "a=1,b=2"}),
    ("apps", "StatefulSet", obj(spec=WORKLOAD, status={"readyReplicas": 1}),
     {"Name": "x", "Ready": "1/3", "Age": AGE, "*Containers": "a,b", "*Images": "nginx:1,envoy:2"}),
    ("apps", "DaemonSet",
     obj(spec={"selector": SELECTOR, "template": {"spec": TEMPLATE["spec"] | {"nodeSelector": {"os": "linux"}}}},
         status={"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                 "updatedNumberScheduled": 2, "numberAvailable": 1}),
     {"Name": "x", "Desired": 5, "Current": 4, "Ready": 3, "Up-to-date": 2, "Available": 1, "Node Selector": "os=linux",
      "Age": AGE, "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": SELECTED}),
    ("batch", "Job",
     obj(spec={"completions": 3, "template": TEMPLATE}, status={"succeeded": 1, "startTime": rfc3339(NOW - 90)}),
     {"Name": "x", "Status": "Running", "Completions": "1/3", "Duration": "90s", "Age": AGE,
      "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": "<none>"}),
    ("batch", "CronJob",
     obj(spec={"schedule": "*/5 * * * *", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
         status={"active": [{}, {}], "lastScheduleTime": rfc3339(NOW - 10)}),
     {"Name": "x", "Schedule": "*/5 * * * *", "Timezone": "<none>", "Suspend": "False", "Active": 2,
      "Last Schedule": "10s", "Age": AGE, "*Containers": "a,b", "*Images": "nginx:1,envoy:2", "*Selector": "<none>"}),
    ("", "Service",
     obj(spec={"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "selector": {"app": "web"},
               "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
     {"Name": "x", "Type": "NodePort", "Cluster-IP": "10.0.0.1", "External-IP": "<none>",
      "Port(s)": "80:30080/TCP,53/UDP", "Age": AGE, "*Selector": "app=web"}),
    ("networking.k8s.io", "Ingress",
     obj(spec={"ingressClassName": "nginx", "tls": [{}], "rules": [{"host": h} for h in "abcd"]},
         status={"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "lb.example.com"}]}}),
     {"Name": "x", "Class": "nginx", "Hosts": "a,b,c + 1 more...", "Address": "9.9.9.9,lb.example.com",
      "Ports": "80, 443", "Age": AGE}),
    ("networking.k8s.io", "IngressClass",
     obj(metadata={"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
         spec={"controller": "c.io/x", "parameters": {"apiGroup": "k.io", "kind": "Conf", "name": "p"}}),
     {"Name": "x (default)", "Controller": "c.io/x", "Parameters": "Conf.k.io/p", "Age": AGE}),
    ("", "Endpoints",
     obj(subsets=[{"addresses": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 443}]}]),
     {"Name": "x", "Endpoints": "1.1.1.1:80,[fd00::1]:80,1.1.1.1:443 + 1 more...", "Age": AGE}),
    ("discovery.k8s.io", "EndpointSlice",
     obj(addressType="IPv4", ports=[{"port": 80}, {"name": "web"}, {}], endpoints=[{"addresses": ["1.1.1.1"]}]),
     {"Name": "x", "AddressType": "IPv4", "Ports": "80,web,*", "Endpoints": "1.1.1.1", "Age": AGE}),
    ("networking.k8s.io", "NetworkPolicy", obj(spec={"podSelector": SELECTOR}),
     {"Name": "x", "Pod-Selector": SELECTED, "Age": AGE}),
    ("networking.k8s.io", "ServiceCIDR", obj(spec={"cidrs": ["10.0.0.0/16", "fd00::/112"]}),
     {"Name": "x", "CIDRs": "10.0.0.0/16,fd00::/112", "Age": AGE}),
    ("networking.k8s.io", "IPAddress",
     obj(spec={"parentRef": {"group": "", "resource": "services", "namespace": "default", "name": "kubernetes"}}),
     {"Name": "x", "ParentRef": "services/default/kubernetes", "Age": AGE}),
    ("", "Node",
     obj(metadata={"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}},
         spec={"unschedulable": True},
         status={"conditions": [{"type": "Ready", "status": "True"}],
                 "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.1.1.1"}],
                 "nodeInfo": {"kubeletVersion": "v1.36.0", "kernelVersion": "6.1", "architecture": "arm64",
                              "containerRuntimeVersion": "containerd://2"}}),
     {"Name": "x", "Status": "Ready,SchedulingDisabled", "Roles": "control-plane,worker", "Age": AGE,
      "Version": "v1.36.0", "*Internal-IP": "10.1.1.1", "*External-IP": "<none>", "*OS-Image": "<unknown>",
      "*Kernel-Version": "6.1 (arm64)", "*Container-Runtime": "containerd://2"}),
    ("", "Namespace", obj(status={"phase": "Active"}), {"Name": "x", "Status": "Active", "Age": AGE}),
    ("", "ConfigMap", obj(data={"a": "1"}, binaryData={"b": "Mg=="}), {"Name": "x", "Data": 2, "Age": AGE}),
    ("", "Secret", obj(type="Opaque", data={"a": "MQ=="}), {"Name": "x", "Type": "Opaque", "Data": 1, "Age": AGE}),
    ("", "ServiceAccount", obj(), {"Name": "x", "Age": AGE}),
    ("", "Event",
     obj(involvedObject={"kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}"}, type="Warning",
         reason="BackOff", message=" restarting \n", source={"component": "kubelet", "host": "node-1"}, count=7,
         firstTimestamp=rfc3339(NOW - 600), lastTimestamp=rfc3339(NOW - 5)),
     {"Last Seen": "5s", "Type": "Warning", "Reason": "BackOff", "Object": "pod/web",
      "*Subobject": "spec.containers{a}", "*Source": "kubelet, node-1", "Message": "restarting",
      "*First Seen": "10m", "*Count": 7, "*Name": "x"}),
    ("events.k8s.io", "Event",
     obj(regarding={"kind": "Deployment", "name": "web"}, type="Normal", reason="Scaled", note="up",
         reportingController="karmada", reportingInstance="karmada-0", eventTime="2023-11-14T22:13:00.000000Z",
         series={"count": 3, "lastObservedTime": "2023-11-14T22:13:18.000000Z"}),
     {"Last Seen": "2s", "Type": "Normal", "Reason": "Scaled", "Object": "deployment/web", "*Subobject": "",
      "*Source": "karmada, karmada-0", "Message": "up", "*First Seen": "20s", "*Count": 3, "*Name": "x"}),
    ("", "PersistentVolume",
     obj(spec={"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
               "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "ns", "name": "c"},
               "storageClassName": "fast", "volumeMode": "Filesystem"}, status={"phase": "Bound"}),
     {"Name": "x", "Capacity": "1Gi", "Access Modes": "RWO,RWX", "Reclaim Policy": "Retain", "Status": "Bound",
      "Claim": "ns/c", "StorageClass": "fast", "VolumeAttributesClass": "<unset>", "Reason": "", "Age": AGE,
      "*VolumeMode": "Filesystem"}),
    ("", "PersistentVolumeClaim",
     obj(spec={"volumeName": "v", "storageClassName": "fast"},
         status={"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"]}),
     {"Name": "x", "Status": "Bound", "Volume": "v", "Capacity": "5Gi", "Access Modes": "RWOP", "StorageClass": "fast",
      "VolumeAttributesClass": "<unset>", "Age": AGE, "*VolumeMode": "<unset>"}),
    ("storage.k8s.io", "StorageClass",
     obj(metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, provisioner="p.io/x"),
     {"Name": "x (default)", "Provisioner": "p.io/x", "ReclaimPolicy": "Delete", "VolumeBindingMode": "Immediate",
      "AllowVolumeExpansion": False, "Age": AGE}),
    ("storage.k8s.io", "VolumeAttributesClass", obj(driverName="d"), {"Name": "x", "DriverName": "d", "Age": AGE}),
    ("storage.k8s.io", "CSIDriver", obj(spec={"volumeLifecycleModes": ["Persistent", "Ephemeral"]}),
     {"Name": "x", "AttachRequired": True, "PodInfoOnMount": False, "StorageCapacity": False,
     "TokenRequests": "<unset>",
      "RequiresRepublish": False, "Modes": "Persistent,Ephemeral", "Age": AGE}),
    ("storage.k8s.io", "CSINode", obj(spec={"drivers": [{}, {}]}), {"Name": "x", "Drivers": 2, "Age": AGE}),
    ("storage.k8s.io", "VolumeAttachment",
     obj(spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}, status={"attached": True}),
     {"Name": "x", "Attacher": "a", "PV": "v", "Node": "n", "Attached": True, "Age": AGE}),
    ("autoscaling", "HorizontalPodAutoscaler",
     obj(spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9, "metrics": [
         {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]},
         status={"currentReplicas": 4, "currentMetrics": [
             {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 10}}}]}),
     {"Name": "x", "Reference": "Deployment/web", "Targets": "cpu: 10%/80%", "MinPods": "1", "MaxPods": 9,
      "Replicas": 4, "Age": AGE}),
    ("policy", "PodDisruptionBudget", obj(spec={"maxUnavailable": "25%"}, status={"disruptionsAllowed": 1}),
     {"Name": "x", "Min Available": "N/A", "Max Unavailable": "25%", "Allowed Disruptions": 1, "Age": AGE}),
    ("", "ResourceQuota",
     obj(status={"hard": {"pods": "10", "limits.cpu": "4", "cpu": "2000m"}, "used": {"cpu": "500m", "pods": "3"}}),
     {"Name": "x", "Request": "cpu: 500m/2, pods: 3/10", "Limit": "limits.cpu: 0/4", "Age": AGE}),
    ("", "LimitRange", obj(), {"Name": "x", "Created At": CREATED}),
    ("rbac.authorization.k8s.io", "Role", obj(), {"Name": "x", "Created At": CREATED}),
    ("rbac.authorization.k8s.io", "ClusterRole", obj(), {"Name": "x", "Created At": CREATED}),
    *(
        ("rbac.authorization.k8s.io", kind,
         obj(roleRef={"kind": "ClusterRole", "name": "admin"},
             subjects=[{"kind": "User", "name": "ann"}, {"kind": "User", "name": "bob"}, {"kind": "Group", "name": "g"},
                       {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"}]),
         {"Name": "x", "Role": "ClusterRole/admin", "Age": AGE, "*Users": "ann, bob", "*Groups": "g",
          "*ServiceAccounts": "ns/sa"})
        for kind in ("RoleBinding", "ClusterRoleBinding")
    ),
    ("coordination.k8s.io", "Lease", obj(spec={"holderIdentity": "me"}), {"Name": "x", "Holder": "me", "Age": AGE}),
    ("apps", "ControllerRevision",
     obj(revision=4, metadata={"ownerReferences": [
         {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}]}),
     {"Name": "x", "Controller": "daemonset.apps/agent", "Revision": 4, "Age": AGE}),
    ("scheduling.k8s.io", "PriorityClass", obj(value=1000, preemptionPolicy="Never"),
     {"Name": "x", "Value": 1000, "Global-Default": False, "Age": AGE, "PreemptionPolicy": "Never"}),
    ("node.k8s.io", "RuntimeClass", obj(handler="runsc"), {"Name": "x", "Handler": "runsc", "Age": AGE}),
    ("certificates.k8s.io", "CertificateSigningRequest",
     obj(spec={"signerName": "s.io/x", "username": "ann", "expirationSeconds": 3600},
         status={"conditions": [{"type": "Approved", "status": "True"}], "certificate": "Zm9v"}),
     {"Name": "x", "Age": AGE, "SignerName": "s.io/x", "Requestor": "ann", "RequestedDuration": "60m",
      "Condition": "Approved,Issued"}),
    *(
        ("admissionregistration.k8s.io", kind, obj(webhooks=[{}, {}]), {"Name": "x", "Webhooks": 2, "Age": AGE})
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy",
     obj(spec={"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
     {"Name": "x", "Validations": 1, "ParamKind": "v1/ConfigMap", "Age": AGE}),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding",
     obj(spec={"policyName": "p", "paramRef": {"name": "c", "namespace": "ns"}}),
     {"Name": "x", "PolicyName": "p", "ParamRef": "ns/c", "Age": AGE}),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", obj(spec={"mutations": [{}, {}]}),
     {"Name": "x", "Mutations": 2, "ParamKind": "<unset>", "Age": AGE}),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding",
     obj(spec={"policyName": "p", "paramRef": {"name": "c"}}),
     {"Name": "x", "PolicyName": "p", "ParamRef": "*/c", "Age": AGE}),
    ("apiextensions.k8s.io", "CustomResourceDefinition", obj(), {"Name": "x", "Created At": CREATED}),
    ("apiregistration.k8s.io", "APIService",
     obj(spec={"service": {"namespace": "ns", "name": "s"}},
         status={"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}),
     {"Name": "x", "Service": "ns/s", "Available": "False (MissingEndpoints)", "Age": AGE}),
    ("", "PodTemplate", obj(template=TEMPLATE),
     {"Name": "x", "Containers": "a,b", "Images": "nginx:1,envoy:2", "Pod Labels": "app=web"}),
    ("", "ComponentStatus", obj(conditions=[{"type": "Healthy", "status": "True", "message": "ok"}]),
     {"Name": "x", "Status": "Healthy", "Message": "ok", "Error": ""}),
    ("autoscaling", "Scale", obj(spec={"replicas": 3}, status={"replicas": 2}),
     {"Name": "x", "Desired": 3, "Available": 2, "Age": AGE}),
    ("", "Status", {"status": "Failure", "reason": "NotFound", "message": "no"},
     {"Status": "Failure", "Reason": "NotFound", "Message": "no"}),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema",
     obj(spec={"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1}),
     {"Name": "x", "PriorityLevel": "exempt", "MatchingPrecedence": 1, "DistinguisherMethod": "<none>", "Age": AGE,
      "MissingPL": "?"}),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration",
     obj(spec={"type": "Limited", "limited": {"nominalConcurrencyShares": 5}}),
     {"Name": "x", "Type": "Limited", "NominalConcurrencyShares": 5, "Queues": "<none>", "HandSize": "<none>",
      "QueueLengthLimit": "<none>", "Age": AGE}),
    ("example.com", "Unheard", obj(), {"Name": "x", "Created At": CREATED}),
]  # fmt: skip


@pytest.mark.parametrize(("group", "kind", "given", "row"), ROWS, ids=[f"{each[1]}.{each[0]}" for each in ROWS])
def test_every_kind_has_its_columns_in_order(group: str, kind: str, given: dict[str, Any], row: dict[str, Any]) -> None:
    printer = printer_for(resource(kind, group))
    headers = [("*" if column["priority"] else "") + column["name"] for column in printer.columns]
    assert list(zip(headers, printer.cells(given, NOW), strict=True)) == list(row.items())


@pytest.mark.parametrize("kind", sorted({(group, kind) for group, kind, *_ in ROWS} | {("", "Pod")}))
def test_an_empty_object_of_any_kind_still_has_a_row(kind: tuple[str, str]) -> None:
    printer = printer_of_kind(*kind)
    cells = printer.cells({}, NOW)
    assert len(cells) == len(printer.columns)
    assert all(cell is None or isinstance(cell, (str, int, bool)) for cell in cells)


def cell(kind: str, group: str, column: str, given: dict[str, Any]) -> Any:
    printer = printer_of_kind(group, kind)
    names = [each["name"] for each in printer.columns]
    return printer.cells(given, NOW)[names.index(column)]


@cases(
    ({"type": "ClusterIP"}, {}, "<none>"),
    ({"type": "ClusterIP", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, {}, "1.1.1.1,2.2.2.2"),
    ({"type": "LoadBalancer"}, {}, "<pending>"),
    ({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"hostname": "z"}, {"ip": "9.9.9.9"}]}}, "9.9.9.9,z"),
    (
        {"type": "LoadBalancer", "externalIPs": ["1.1.1.1"]},
        {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}]}},
        "9.9.9.9,1.1.1.1",
    ),
    ({"type": "ExternalName", "externalName": "example.com"}, {}, "example.com"),
    ({}, {}, "<unknown>"),
)
def test_the_external_address_of_a_service_depends_on_its_type(
    spec: dict[str, Any], status: dict[str, Any], external: str
) -> None:
    assert cell("Service", "", "External-IP", obj(spec=spec, status=status)) == external


def test_a_headless_service_says_none() -> None:
    assert cell("Service", "", "Cluster-IP", obj(spec={"clusterIP": "None", "clusterIPs": ["None"]})) == "None"
    assert cell("Service", "", "Cluster-IP", obj(spec={})) == "<none>"
    assert cell("Service", "", "Port(s)", obj(spec={})) == "<none>"


@cases(
    (["Complete", "SuccessCriteriaMet"], True, "Complete"), (["Failed", "FailureTarget"], True, "Failed"),
    (["Suspended"], True, "Terminating"), (["Suspended", "FailureTarget"], False, "Suspended"),
    (["FailureTarget"], False, "FailureTarget"), (["SuccessCriteriaMet"], False, "SuccessCriteriaMet"),
    ([], False, "Running"),
)  # fmt: skip
def test_the_state_of_a_job_follows_its_precedence(conditions: list[str], deleting: bool, state: str) -> None:
    job = obj(status={"conditions": [{"type": kind, "status": "True"} for kind in conditions]})
    if deleting:
        job["metadata"]["deletionTimestamp"] = CREATED
    assert cell("Job", "batch", "Status", job) == state


@cases(({"completions": 5}, "2/5"), ({}, "2/1"), ({"parallelism": 1}, "2/1"), ({"parallelism": 4}, "2/1 of 4"))
def test_completions_of_a_job_show_what_is_wanted(spec: dict[str, Any], completions: str) -> None:
    assert cell("Job", "batch", "Completions", obj(spec=spec, status={"succeeded": 2})) == completions


def test_a_finished_job_shows_how_long_it_ran() -> None:
    job = obj(status={"startTime": rfc3339(NOW - 1000), "completionTime": rfc3339(NOW - 700)})
    assert cell("Job", "batch", "Duration", job) == "5m"
    assert cell("Job", "batch", "Duration", obj()) == ""


def metric(kind: str, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, kind[0].lower() + kind[1:]: {"target": target, **more}}


def current(source: str, value: dict[str, Any]) -> dict[str, Any]:
    return {source: {"current": value}}


@cases(
    ([], [], "<none>"),
    ([metric("Resource", {"averageUtilization": 80}, name="cpu")], [], "cpu: <unknown>/80%"),
    ([metric("Resource", {}, name="cpu")], [], "cpu: <unknown>/<auto>"),
    ([metric("Resource", {"averageValue": "1024Mi"}, name="memory")],
     [current("resource", {"averageValue": "0.5"})], "memory: 500m/1Gi"),
    ([metric("ContainerResource", {"averageUtilization": 50}, name="cpu")],
     [current("containerResource", {"averageUtilization": 7})], "cpu: 7%/50%"),
    ([metric("Pods", {"averageValue": "10"})], [current("pods", {"averageValue": "5"})], "5/10"),
    ([metric("Object", {"value": "10"})], [current("object", {"value": "5"})], "5/10"),
    ([metric("Object", {"averageValue": "10"})], [current("object", {"averageValue": "5"})], "5/10 (avg)"),
    ([metric("External", {"averageValue": "10"})], [], "<unknown>/10 (avg)"),
    ([{"type": "New"}], [], "<unknown type>"),
    ([metric("Pods", {"averageValue": str(each)}) for each in range(1, 5)], [],
     "<unknown>/1, <unknown>/2 + 2 more..."),
)  # fmt: skip
def test_the_targets_of_an_autoscaler(metrics: list[Any], states: list[Any], targets: str) -> None:
    hpa = obj(spec={"metrics": metrics}, status={"currentMetrics": states})
    assert cell("HorizontalPodAutoscaler", "autoscaling", "Targets", hpa) == targets
    assert cell("HorizontalPodAutoscaler", "autoscaling", "MinPods", hpa) == "<unset>"


def test_the_targets_of_an_autoscaler_in_its_first_version() -> None:
    hpa = obj(spec={"targetCPUUtilizationPercentage": 80}, status={"currentCPUUtilizationPercentage": 12})
    assert cell("HorizontalPodAutoscaler", "autoscaling", "Targets", hpa) == "cpu: 12%/80%"
    del hpa["status"]
    assert cell("HorizontalPodAutoscaler", "autoscaling", "Targets", hpa) == "cpu: <unknown>/80%"


@cases(
    ([], "", "Pending"), (["Approved"], "", "Approved"), (["Denied", "Approved"], "", "Denied"),
    (["Approved", "Failed"], "", "Approved,Failed"), (["Approved"], "Zm9v", "Approved,Issued"),
)  # fmt: skip
def test_how_far_a_certificate_request_is(conditions: list[str], certificate: str, text: str) -> None:
    request = obj(status={"conditions": [{"type": each} for each in conditions], "certificate": certificate})
    assert cell("CertificateSigningRequest", "certificates.k8s.io", "Condition", request) == text


@cases((None, "Unknown"), ("True", "Ready"), ("False", "NotReady"), ("Unknown", "NotReady"))
def test_the_state_of_a_node(ready: str | None, text: str) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    assert cell("Node", "", "Status", obj(status={"conditions": conditions})) == text


def test_a_claim_that_is_not_bound_shows_no_size() -> None:
    claim = obj(spec={}, status={"phase": "Pending", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]})
    assert cell("PersistentVolumeClaim", "", "Capacity", claim) == ""
    assert cell("PersistentVolumeClaim", "", "Access Modes", claim) == ""
    claim["metadata"]["deletionTimestamp"] = CREATED
    assert cell("PersistentVolumeClaim", "", "Status", claim) == "Terminating"


def test_a_single_event_of_the_new_api_counts_once_and_was_seen_at_its_time() -> None:
    event = obj(eventTime="2023-11-14T22:13:10.500000Z", regarding={"kind": "Node"})
    read = [cell("Event", "events.k8s.io", column, event) for column in ("Last Seen", "First Seen", "Count", "Object")]
    assert read == ["9s", "9s", 1, "node"]


def test_a_local_api_service_is_available() -> None:
    local = obj(status={"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]})
    assert cell("APIService", "apiregistration.k8s.io", "Service", local) == "Local"
    assert cell("APIService", "apiregistration.k8s.io", "Available", local) == "True"


@cases(
    (rfc3339(NOW - 59), "59s"), (rfc3339(NOW + 60), "<invalid>"), ("", "<unknown>"),
    ("0001-01-01T00:00:00Z", "<unknown>"),
)  # fmt: skip
def test_the_age_counts_from_creation(created: str, age: str) -> None:
    assert cell("Namespace", "", "Age", {"metadata": {"creationTimestamp": created}}) == age


# --- custom resources ------------------------------------------------------------------------------------------------

CUSTOM = obj(
    spec={
        "size": 3,
        "ratio": 0.5,
        "on": True,
        "text": "hello",
        "list": ["b", "a"],
        "map": {"z": 1, "a": 2},
        "null": None,
    },
    status={"since": rfc3339(NOW - 7200), "bad": "yesterday", "conditions": [{"type": "Ready", "status": "True"}]},
)


@cases(
    ("integer", ".spec.size", 3), ("integer", ".spec.ratio", 0), ("integer", ".spec.text", None),
    ("integer", ".spec.on", None), ("number", ".spec.ratio", 0.5), ("number", ".spec.size", 3),
    ("boolean", ".spec.on", True), ("boolean", ".spec.text", None), ("string", ".spec.text", "hello"),
    ("string", ".spec.size", "3"), ("string", ".spec.on", "true"), ("string", ".spec.list", '["b","a"]'),
    ("string", ".spec.map", '{"a":2,"z":1}'), ("string", ".spec.list[*]", "b"), ("string", ".spec.absent", None),
    ("string", ".spec.null", None), ("date", ".status.since", "120m"), ("date", ".status.bad", "<invalid>"),
    ("date", ".spec.size", None), ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
    ("string", '.status.conditions[?(@.type=="Other")].status', None), ("string", ".spec[", None),
)  # fmt: skip
def test_a_custom_column_shows_the_first_value_of_its_path(kind: str, path: str, shown: Any) -> None:
    printer = printer_for(resource(columns=({"name": "C", "type": kind, "jsonPath": path},)))
    assert printer.cells(CUSTOM, NOW) == ["x", shown]


def test_custom_columns_come_after_the_name_and_keep_their_definitions() -> None:
    columns = (
        {
            "name": "Size",
            "type": "integer",
            "format": "int32",
            "description": "d",
            "priority": 2,
            "jsonPath": ".spec.size",
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    )
    printer = printer_for(resource(columns=columns))
    assert [column["name"] for column in printer.columns] == ["Name", "Size", "Age"]
    assert printer.columns[0] | {"description": ""} == {
        "name": "Name", "type": "string", "format": "name", "description": "", "priority": 0,
    }  # fmt: skip
    assert printer.columns[1] == {
        "name": "Size", "type": "integer", "format": "int32", "description": "d", "priority": 2,
    }  # fmt: skip
    assert printer.cells(CUSTOM, NOW) == ["x", 3, AGE]


def test_a_custom_resource_without_columns_shows_name_and_age() -> None:
    printer = printer_for(resource(columns=()))
    assert [column["name"] for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(CUSTOM, NOW) == ["x", AGE]


def test_a_changed_definition_gets_a_new_printer() -> None:
    first, second = (resource(columns=({"name": name, "type": "string", "jsonPath": ".spec"},)) for name in "AB")
    assert printer_for(first) is printer_for(first)
    assert [printer_for(each).columns[1]["name"] for each in (first, second)] == ["A", "B"]


# --- the Table -------------------------------------------------------------------------------------------------------


def test_a_table_has_columns_and_a_row_with_metadata_for_every_object() -> None:
    namespaces = [obj("a", status={"phase": "Active"}), obj("b", status={"phase": "Terminating"})]
    made = table(resource("Namespace", ""), namespaces, now=NOW, list_meta={"resourceVersion": "7"})
    assert (made["kind"], made["apiVersion"], made["metadata"]) == ("Table", "meta.k8s.io/v1", {"resourceVersion": "7"})
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Status", "Age"]
    assert made["rows"] == [
        {
            "cells": [each["metadata"]["name"], each["status"]["phase"], AGE],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": each["metadata"]},
        }
        for each in namespaces
    ]


def test_a_row_carries_what_is_requested() -> None:
    pod = obj(status={"phase": "Succeeded"})
    with_object = table(resource("Pod", ""), [pod], now=NOW, list_meta={}, include="Object")["rows"][0]
    without = table(resource("Pod", ""), [pod], now=NOW, list_meta={}, include="None")["rows"][0]
    assert with_object["object"] == pod
    assert "object" not in without
    assert without["conditions"][0]["type"] == "Completed"


def test_later_events_of_a_watch_leave_out_the_columns() -> None:
    made = table(
        resource("Namespace", ""), [obj()], now=NOW, list_meta={}, columns=False, api_version="meta.k8s.io/v1beta1"
    )
    assert made["columnDefinitions"] is None
    assert made["apiVersion"] == made["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_an_empty_list_is_a_table_without_rows() -> None:
    assert table(resource("Namespace", ""), [], now=NOW, list_meta={})["rows"] == []


def test_a_scale_has_a_table_though_it_is_no_resource() -> None:
    made = table_of(printer_of_kind("autoscaling", "Scale"), [obj(spec={"replicas": 2})], now=NOW, list_meta={})
    assert made["rows"][0]["cells"] == ["x", 2, 0, AGE]


def test_every_table_can_be_encoded() -> None:
    for group, kind, given, _ in ROWS:
        assert orjson.dumps(table(resource(kind, group), [given], now=NOW, list_meta={}, include="Object"))
