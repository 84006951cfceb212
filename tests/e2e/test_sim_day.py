"""kubectl against one simulated cluster: what people do with a cluster on a usual day."""

from __future__ import annotations

import json
import os
import pty
import select
import time
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.sim_fleet import SimFleet, field, names
from tests.support import forking
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.objects import kube_object
from tests.support.programs import Program, Result

pytestmark = pytest.mark.e2e

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: metrics, port: 9100, targetPort: 9100}]}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[SimFleet]:
    with SimFleet(tmp_path_factory.mktemp("day"), kubectl_path) as fleet:
        fleet.create("day", "fast")
        yield fleet


@pytest.fixture
def namespace(fleet: SimFleet) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    fleet.ours("day")("create", "namespace", name)
    return name


@pytest.fixture
def kubectl(fleet: SimFleet, namespace: str) -> Program:
    return fleet.kubectl("day", namespace)


@pytest.fixture
def web(kubectl: Program) -> Program:
    """kubectl in a namespace where the web application runs."""
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("rollout", "status", "deployment/web", "--timeout=100s")
    return kubectl


# --- a web application


def test_a_deployment_is_rolled_out_scaled_updated_and_rolled_back(web: Program) -> None:
    assert web("get", "deployment", "web").lines[1].split()[1:4] == ["3/3", "3", "3"]
    web("scale", "deployment/web", "--replicas=5")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web", "--timeout=100s").out
    assert len(names(web, "pods", "-l", "app=web")) == 5
    web("set", "image", "deployment/web", "web=nginx:1.28")
    web("rollout", "status", "deployment/web", "--timeout=100s")
    eventually_blocking(lambda: set(field(web, ".items[*].spec.containers[0].image", "pods").split()) == {"nginx:1.28"})
    assert web("rollout", "history", "deployment/web").lines[-1].split()[0] == "2"
    web("rollout", "undo", "deployment/web")
    web("rollout", "status", "deployment/web", "--timeout=100s")
    eventually_blocking(lambda: set(field(web, ".items[*].spec.containers[0].image", "pods").split()) == {"nginx:1.27"})
    web("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web", "--timeout=100s").out


def test_a_service_lists_its_ports_and_the_pods_behind_them(web: Program) -> None:
    assert "80/TCP,9100/TCP" in web("get", "service", "web").lines[1]
    addresses = set(field(web, ".items[*].status.podIP", "pods").split())
    assert len(addresses) == 3
    eventually_blocking(lambda: set(field(web, ".subsets[*].addresses[*].ip", "endpoints", "web").split()) == addresses)
    slices = ("endpointslices", "-l", "kubernetes.io/service-name=web")
    assert field(web, ".items[0].ports[*].port", *slices).split() == ["80", "9100"]
    output = web("describe", "service", "web").out
    assert all(address in output for address in list(addresses)[:2])


def test_logs_and_exec_reach_into_a_pod(web: Program) -> None:
    pod = names(web, "pods")[0].removeprefix("pod/")
    assert pod in web("logs", pod, "--tail=5").out
    assert web("exec", pod, "--", "hostname").out.strip() == pod
    assert web("exec", pod, "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST").out.strip().endswith(".0.1")
    failed = web("exec", pod, "--", "sh", "-c", "exit 3", check=False)
    assert failed.code == 3
    assert "command terminated with exit code 3" in failed.err
    assert "not found" in web("exec", pod, "--", "nonsense", check=False).err
    assert web("cp", f"{pod}:/nothing", "/dev/null", check=False).code != 0


def test_a_port_is_forwarded_to_a_pod(web: Program) -> None:
    forwarding = web.start("port-forward", "service/web", ":80", "--address=127.0.0.1")
    try:
        assert forwarding.stdout is not None
        port = forwarding.stdout.readline().split()[2].rpartition(":")[2]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LIMIT) as answer:
            assert b"web-" in answer.read()
    finally:
        forwarding.kill()
        forwarding.communicate()


def at_a_terminal(program: Program, *arguments: str, typed: bytes) -> tuple[int, str]:
    """Run with a terminal, type once there is a prompt; exit code and everything shown."""
    ours, theirs = pty.openpty()
    command = [*program._command, *arguments]
    process = forking.start(command, stdin=theirs, stdout=theirs, stderr=theirs, env=program.env)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 20
    while time.monotonic() < end:
        readable, _, _ = select.select([ours], [], [], 0.05)
        if readable:
            try:
                shown += os.read(ours, 4096)
            except OSError:
                break
        elif process.poll() is not None:
            break
        if typed and b"# " in shown:
            os.write(ours, typed)
            typed = b""
    os.close(ours)
    return process.wait(LIMIT), shown.decode()


def test_a_pod_that_is_run_for_its_shell_ends_with_it(kubectl: Program) -> None:
    run = ("run", "box", "-it", "--rm", "--restart=Never", "--image=busybox", "--", "sh")
    code, shown = at_a_terminal(kubectl, *run, typed=b"hostname\nexit 3\n")
    assert "box" in shown
    assert code == 3, shown
    assert not names(kubectl, "pods")


def test_a_script_is_piped_into_a_pod_of_its_own(kubectl: Program) -> None:
    run = ("run", "box", "-i", "--rm", "--restart=Never", "--image=busybox", "--quiet", "--", "sh")
    done = kubectl(*run, stdin="echo hello from $HOSTNAME\n")
    assert "hello from box" in done.out


def test_top_shows_what_nodes_and_pods_use(fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("fast", "default")
    kubectl("create", "deployment", "busy", "--image=nginx")
    kubectl("rollout", "status", "deployment/busy", "--timeout=100s")
    fleet.ctl("load", "fast", "deployment/busy", "cpu=250m", "memory=100Mi")
    fleet.ctl("fail", "fast", "clock", "--skip", "1m")
    line = eventually_blocking(lambda: kubectl("top", "pods", "--no-headers", check=False).lines)[0].split()
    assert line[1:] == ["250m", "100Mi"]
    nodes = kubectl("top", "nodes", "--no-headers").lines
    assert [row.split()[0] for row in nodes] == ["fast-node-1", "fast-node-2", "fast-node-3"]
    assert any(int(row.split()[1].removesuffix("m")) >= 250 for row in nodes)
    fleet.ctl("heal", "fast")


# --- nodes


def test_a_node_is_cordoned_drained_and_taken_back(fleet: SimFleet, web: Program) -> None:
    node = field(web, ".items[0].spec.nodeName", "pods")
    web("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    web("cordon", node)
    assert "SchedulingDisabled" in web("get", "node", node).out
    assert "drained" in web("drain", node, "--ignore-daemonsets", "--timeout=100s").out
    there = ("pods", "-A", "--field-selector", f"spec.nodeName={node}")
    assert not names(web, *there)
    web("rollout", "status", "deployment/web", "--timeout=100s")
    web("uncordon", node)
    assert "SchedulingDisabled" not in web("get", "node", node).out


def test_a_budget_that_allows_nothing_stops_a_drain(web: Program) -> None:
    web("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=3")
    eventually_blocking(lambda: field(web, ".status.currentHealthy", "pdb", "web") == "3")
    node = field(web, ".items[0].spec.nodeName", "pods")
    draining = web.start("drain", node, "--ignore-daemonsets", "--pod-selector=app=web")
    try:
        assert draining.stderr is not None
        said = next(line for line in draining.stderr if "evicting" in line)
    finally:
        draining.kill()
        draining.communicate()
    web("uncordon", node)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in said
    assert len(names(web, "pods", "-l", "app=web")) == 3


# --- jobs


def test_a_job_runs_to_its_end(kubectl: Program) -> None:
    kubectl("create", "job", "once", "--image=busybox", "--", "true")
    kubectl("wait", "--for=condition=complete", "job/once", "--timeout=100s")
    assert "1/1" in kubectl("get", "job", "once").lines[1]
    assert field(kubectl, ".items[0].status.phase", "pods", "-l", "job-name=once") == "Succeeded"


def test_a_job_that_fails_says_so(kubectl: Program) -> None:
    job: dict[str, Any] = kube_object("batch/v1", "Job", "doomed") | {
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 4"]}],
                }
            },
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(job))
    kubectl("wait", "--for=condition=failed", "job/doomed", "--timeout=100s")
    assert field(kubectl, ".status.conditions[?(@.type=='Failed')].reason", "job", "doomed") == "BackoffLimitExceeded"


def test_a_cron_job_runs_when_the_clock_of_the_cluster_says_so(fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("fast")
    kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *", "--", "true")
    assert not names(kubectl, "jobs")
    fleet.ctl("fail", "fast", "clock", "--skip", "24h")
    try:
        [job] = eventually_blocking(lambda: names(kubectl, "jobs"))
        kubectl("wait", "--for=condition=complete", job, "--timeout=100s")
        assert field(kubectl, ".status.lastScheduleTime", "cronjob", "nightly").endswith("T03:00:00Z")
    finally:
        fleet.ctl("heal", "fast")
        kubectl("delete", "cronjob", "nightly")


# --- state


STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: "postgres:16", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_a_stateful_set_grows_and_shrinks_in_order(kubectl: Program) -> None:
    path = '{.type} {.object.metadata.name} {.object.status.containerStatuses[0].ready}{"\\n"}'
    watching = kubectl.start("get", "pods", "--watch", "--output-watch-events", "-o", f"jsonpath={path}", "-v=6")
    try:
        assert watching.stderr is not None
        assert any("watch=true" in line for line in watching.stderr), "what it lists it shows as added"
        kubectl("apply", "-f", "-", stdin=STATEFUL)
        kubectl("rollout", "status", "statefulset/db", "--timeout=100s")
        kubectl("scale", "statefulset/db", "--replicas=0")
        eventually_blocking(lambda: not names(kubectl, "pods"))
    finally:
        watching.terminate()
        output = [[*line.split(), ""][:3] for line in watching.communicate()[0].splitlines()]
    first: dict[tuple[str, str, bool], int] = {}
    for position, (event, name, ready) in enumerate(output):
        first.setdefault((event, name, ready == "true"), position)
    assert first["MODIFIED", "db-0", True] < first["ADDED", "db-1", False]
    assert first["MODIFIED", "db-1", True] < first["ADDED", "db-2", False]
    gone = [name for event, name, _ in output if event == "DELETED"]
    assert gone == ["db-2", "db-1", "db-0"]
    claims = kubectl("get", "pvc", "--no-headers").lines
    assert [line.split()[:2] for line in claims] == [[f"data-db-{n}", "Bound"] for n in range(3)]


def test_a_claim_is_bound_once_a_pod_wants_it(kubectl: Program) -> None:
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: files}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
"""
    kubectl("apply", "-f", "-", stdin=claim)
    eventually_blocking(lambda: "WaitForFirstConsumer" in kubectl("describe", "pvc", "files").out)
    assert field(kubectl, ".status.phase", "pvc", "files") == "Pending"
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  containers: [{name: main, image: nginx, volumeMounts: [{name: files, mountPath: /files}]}]
  volumes: [{name: files, persistentVolumeClaim: {claimName: files}}]
"""
    kubectl("apply", "-f", "-", stdin=pod)
    kubectl("wait", "--for=condition=ready", "pod/reader", "--timeout=100s")
    assert field(kubectl, ".status.phase", "pvc", "files") == "Bound"
    volume = field(kubectl, ".spec.volumeName", "pvc", "files")
    assert field(kubectl, ".spec.capacity.storage", "pv", volume) == "2Gi"
    kubectl("delete", "pod", "reader", "--now")
    kubectl("delete", "pvc", "files")
    eventually_blocking(lambda: kubectl("get", "pv", volume, check=False).code != 0)


def test_a_quota_refuses_what_is_too_much(kubectl: Program) -> None:
    kubectl("create", "quota", "small", "--hard=pods=2,configmaps=2")
    eventually_blocking(lambda: field(kubectl, ".status.used.configmaps", "quota", "small") == "1")
    kubectl("create", "configmap", "second")
    refused = kubectl("create", "configmap", "third", check=False)
    assert "exceeded quota: small, requested: configmaps=1, used: configmaps=2, limited: configmaps=2" in refused.err
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    failure = ".status.conditions[?(@.type=='ReplicaFailure')].message"
    eventually_blocking(lambda: "exceeded quota: small" in field(kubectl, failure, "deployment", "web"))
    eventually_blocking(lambda: field(kubectl, ".status.readyReplicas", "deployment", "web") == "2")
    kubectl("patch", "quota", "small", "-p", '{"spec":{"hard":{"pods":"5"}}}')
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=100s")


def test_everything_of_a_namespace_goes_with_it(web: Program, namespace: str) -> None:
    done: Result = web("delete", "namespace", namespace, "--timeout=100s")
    assert "deleted" in done.out
    assert not names(web, "pods", "-A", "--field-selector", f"metadata.namespace={namespace}")
