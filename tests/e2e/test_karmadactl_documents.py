"""Tutorials of multi-cluster Kubernetes, typed line by line into a shell: kubectl, its plug-in, and karmadactl.

Tables are compared with those that such tutorials print: the columns, and what is in them apart from ages and the
random part of names. Rows of the control plane itself are left out, which older releases did not show.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.fleets import QUICK, Fleet
from tests.support import forking
from tests.support.eventually import eventually_blocking
from tests.support.programs import Result
from tests.support.terminals import TerminalSession

pytestmark = pytest.mark.e2e

VARYING = frozenset({"AGE", "CREATED AT"})
HASH = re.compile(r"-[a-z0-9]{8,10}-[a-z0-9]{5}$")
Row = dict[str, str]


class Shell:
    """A terminal at home, where the kubeconfigs lie as the tutorials have them; $KARMADA is the control plane's."""

    def __init__(self, home: Path, karmada: Path) -> None:
        self.home = home
        tools = forking.shell_path()
        self.env = {**os.environ, "HOME": str(home), "PATH": tools, "KARMADA": str(karmada), "NO_COLOR": "1"}
        self.env.pop("KUBECONFIG", None)

    def try_(self, line: str) -> Result:
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, env=self.env, cwd=self.home, timeout=60, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def type(self, line: str) -> str:
        """What it prints; it must succeed."""
        result = self.try_(line)
        assert result.code == 0, f"$ {line}\n{result.out}{result.err}"
        return result.out

    def refused(self, line: str) -> str:
        result = self.try_(line)
        assert result.code != 0, f"$ {line}\n{result.out}"
        return result.err

    def write(self, name: str, text: str) -> None:
        (self.home / name).write_text(text)

    def shows(self, line: str, table: str) -> None:
        """Sooner or later the line prints this table, as far as it does not vary."""
        wanted = [stable(row) for row in rows(table)]
        titles = columns(table.strip().splitlines()[0])

        def look() -> bool:
            printed = self.type(line)
            if not printed.strip():
                raise AssertionError(f"$ {line} printed nothing")
            header = columns(printed.splitlines()[0])
            assert [title for title in header if title in titles] == titles, header
            there = [row for row in rows(printed) if row.get("CLUSTER") != "Karmada"]
            found = [stable({title: row[title] for title in titles}) for row in there]
            assert found == wanted, f"$ {line}\n{printed}"
            return True

        eventually_blocking(look)


def columns(header: str) -> list[str]:
    return re.split(r"  +", header.strip())


def rows(table: str) -> list[Row]:
    """Each row by the titles over it; cells begin where their title does."""
    header, *lines = [line for line in table.strip("\n").splitlines() if line.strip()]
    found = [*re.finditer(r"\S+( \S+)*", header)]
    titles, places = [one[0] for one in found], [one.start() for one in found]
    if any(line[place - 1 : place].strip() for line in lines for place in places[1:]):
        raise AssertionError(f"the columns are not aligned:\n{table}")
    ends = [*places[1:], None]
    return [
        {title: line[at:end].strip() for title, at, end in zip(titles, places, ends, strict=True)} for line in lines
    ]


def stable(row: Row) -> Row:
    kept = {title: cell for title, cell in row.items() if title not in VARYING}
    if all(row.get(title, "x") for title in VARYING & row.keys()) and "NAME" in kept:
        kept["NAME"] = HASH.sub("-…", kept["NAME"])
    return kept


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Fleet]:
    """A control plane without members; clusters to join, their kubeconfigs where tutorials keep them."""
    names = ["member1", "member2", "kind-cluster01", "kind-cluster02"]
    with Fleet(tmp_path_factory.mktemp("documents"), kubectl_path, QUICK) as fleet:
        fleet.create(*names, "--nodes", "1", "--kubernetes-version", "1.27")
        kube = fleet.sims.home / ".kube"
        kube.mkdir()
        for name in names:
            shutil.copy(fleet.sims.folder / "clusters" / name / "admin.kubeconfig", kube / f"{name}.config")
        shutil.copy(fleet.sims.kubeconfig, kube / "config")
        yield fleet
        assert "Traceback" not in fleet.plane.log(), fleet.plane.log()


@pytest.fixture
def shell(fleet: Fleet) -> Shell:
    return Shell(fleet.sims.home, fleet.plane.kubeconfig)


# the first tutorial: two members, a Deployment divided between them, a custom resource and an override

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
  labels:
    app: nginx
spec:
  replicas: 2
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
    spec:
      containers:
        - name: nginx
          image: nginx:1.7.9
"""
DIVIDED = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx-propagation
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
    replicaScheduling:
      replicaDivisionPreference: Weighted
      replicaSchedulingType: Divided
      weightPreference:
        staticWeightList:
          - targetCluster:
              clusterNames:
                - member1
            weight: 1
          - targetCluster:
              clusterNames:
                - member2
            weight: 1
"""
EMITTED = [
    ("ApplyPolicySucceed", "resource-detector", "Apply policy(default/nginx-propagation) succeed"),
    ("SyncWorkSucceed", "binding-controller", "Sync work of ResourceBinding(default/nginx-deployment) successful."),
    ("ScheduleBindingSucceed", "default-scheduler", "Binding has been scheduled successfully."),
    ("SyncSucceed", "execution-controller", "Successfully applied resource(default/nginx) to cluster member1"),
    ("SyncSucceed", "execution-controller", "Successfully applied resource(default/nginx) to cluster member2"),
    ("AggregateStatusSucceed", "resource-binding-status-controller", "Update Resource with AggregatedStatus"),
]


@pytest.fixture(scope="module")
def members(fleet: Fleet) -> Shell:
    """member1 and member2 have joined."""
    shell = afresh(fleet)
    for name in ("member1", "member2"):
        line = f"kubectl karmada --kubeconfig $KARMADA join {name} --cluster-kubeconfig=$HOME/.kube/{name}.config"
        assert shell.type(line) == f"cluster({name}) is joined successfully\n"
    fleet.until_ready("member1", "member2")
    return shell


def afresh(fleet: Fleet) -> Shell:
    """A tutorial begins: nothing is left of the one before."""
    shell = Shell(fleet.sims.home, fleet.plane.kubeconfig)
    shell.type("kubectl --kubeconfig $KARMADA delete deploy,pp,cpp,op --all")
    for name in shell.type("kubectl --kubeconfig $KARMADA get clusters -o jsonpath={.items[*].metadata.name}").split():
        context = f"--cluster-kubeconfig=$HOME/.kube/{name}.config --cluster-context={name}"
        shell.type(f"karmadactl --kubeconfig $KARMADA unjoin {name} {context}")
    return shell


def test_the_version_of_both_programs(shell: Shell) -> None:
    assert shell.type("karmadactl version").startswith('karmadactl version: version.Info{GitVersion:"v')
    assert shell.type("kubectl karmada version").startswith('kubectl karmada version: version.Info{GitVersion:"v')


def test_clusters_that_have_joined(members: Shell) -> None:
    members.shows(
        "kubectl --kubeconfig $KARMADA get clusters",
        """
NAME      VERSION   MODE   READY   AGE
member1   v1.27.0   Push   True    12m
member2   v1.27.0   Push   True    2s
""",
    )


def test_a_deployment_is_divided_between_two_clusters(members: Shell) -> None:
    members.write("nginx-demo.yaml", DEPLOYMENT)
    members.write("nginx-propagation.yaml", DIVIDED)
    members.type("kubectl apply -f nginx-demo.yaml --kubeconfig $KARMADA")
    for name in ("member1", "member2"):
        nothing = members.try_(f"kubectl get pods --kubeconfig ~/.kube/{name}.config")
        assert (nothing.out, nothing.err) == ("", "No resources found in default namespace.\n")
    made = members.type("kubectl apply -f nginx-propagation.yaml --kubeconfig $KARMADA")
    assert made == "propagationpolicy.policy.karmada.io/nginx-propagation created\n"
    members.shows(
        "kubectl get propagationpolicy --kubeconfig $KARMADA", "NAME                AGE\nnginx-propagation   31s\n"
    )
    for name in ("member1", "member2"):
        members.shows(
            f"kubectl get pods --kubeconfig ~/.kube/{name}.config",
            """
NAME                     READY   STATUS    RESTARTS   AGE
nginx-77b4fdf86c-54qhc   1/1     Running   0          2m59s
""",
        )

    def output() -> bool:
        events = members.type("kubectl describe deploy nginx --kubeconfig $KARMADA").partition("Events:\n")[2]
        assert columns(events.splitlines()[0]) == ["Type", "Reason", "Age", "From", "Message"]
        lines = [re.split(r"  +", line.strip()) for line in events.splitlines()[2:]]
        for reason, source, message in EMITTED:
            assert any(line[1] == reason and line[3] == source and line[4].startswith(message) for line in lines), (
                events
            )
        return True

    eventually_blocking(output)


def test_taints_of_clusters(members: Shell) -> None:
    line = "karmadactl --kubeconfig $KARMADA taint clusters member2"
    assert members.type(f"{line} dedicated=special-user:NoSchedule") == "cluster/member2 tainted\n"
    found = members.type("kubectl --kubeconfig $KARMADA get cluster member2 -o jsonpath={.spec.taints[*].value}")
    assert "special-user" in found
    assert members.type(f"{line} dedicated=special-user:NoSchedule-") == "cluster/member2 untainted\n"


def test_a_custom_resource_goes_to_one_cluster_and_is_overridden(members: Shell) -> None:
    parts = list(yaml.safe_load_all((Path(__file__).parent / "data" / "guestbook.yaml").read_text()))
    for name, part in zip(("crd", "crd-policy", "guestbook", "guestbook-policy", "override"), parts, strict=True):
        members.write(f"{name}.yaml", yaml.safe_dump(part))
    members.type("kubectl apply -f crd.yaml -f crd-policy.yaml --kubeconfig $KARMADA")
    members.shows(
        "kubectl karmada get crd --kubeconfig $KARMADA",
        """
NAME                          CLUSTER   CREATED AT             ADOPTION
guestbooks.webapp.my.domain   member1   2024-05-18T11:56:10Z   Y
""",
    )
    members.shows(
        "kubectl get crd --kubeconfig ~/.kube/member1.config",
        """
NAME                          CREATED AT
guestbooks.webapp.my.domain   2024-05-18T11:56:10Z
""",
    )
    assert members.try_("kubectl get crd --kubeconfig ~/.kube/member2.config").err == "No resources found\n"
    members.type("kubectl apply -f guestbook.yaml -f guestbook-policy.yaml --kubeconfig $KARMADA")
    one = "kubectl get guestbook --kubeconfig ~/.kube/member1.config"
    eventually_blocking(lambda: members.try_(one).out)
    members.shows(one, "NAME               AGE\nguestbook-sample   39s\n")
    members.type("kubectl apply -f override.yaml --kubeconfig $KARMADA")

    def overridden() -> bool:
        found = yaml.safe_load(
            members.type("kubectl get guestbook guestbook-sample --kubeconfig ~/.kube/member1.config -oyaml")
        )
        assert found["metadata"]["annotations"]["OverridePolicy"] == "test"
        return bool(found["spec"] == {"alias": "Name", "configMapName": "test", "size": 4})

    eventually_blocking(overridden)
    members.type("kubectl delete -f guestbook.yaml -f crd.yaml --kubeconfig $KARMADA")


# the second tutorial: contexts of one kubeconfig, policies that change, clusters chosen by labels and fields

POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: propagaetion-nginx
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinity:
"""
BY_LABELS = "      labelSelector:\n        matchLabels:\n          app: cluster01\n"
BY_EXPRESSION = """
      labelSelector:
        matchExpressions:
        - key: app
          operator: In
          values:
          - cluster01
          - cluster02
"""
BY_FIELDS = """
      fieldSelector:
        matchExpressions:
        - key: provider
          operator: In
          values:
          - kind
        - key: region
          operator: In
          values:
          - local
        - key: zone
          operator: In
          values:
          - cluster02
"""
CONFIGURED = "propagationpolicy.policy.karmada.io/propagaetion-nginx configured\n"


@pytest.fixture(scope="module")
def kind(fleet: Fleet) -> Shell:
    """kind-cluster01 and kind-cluster02 have joined."""
    shell = afresh(fleet)
    for name in ("kind-cluster01", "kind-cluster02"):
        flags = f"--kubeconfig=$KARMADA --cluster-kubeconfig=$HOME/.kube/config --cluster-context={name}"
        assert shell.type(f"kubectl karmada join {name} {flags}") == f"cluster({name}) is joined successfully\n"
    fleet.until_ready("kind-cluster01", "kind-cluster02")
    return shell


def deployments(*clusters: str, replicas: int = 1) -> str:
    lines = ["NAME    CLUSTER          READY   UP-TO-DATE   AVAILABLE   AGE     ADOPTION"]
    lines += [
        f"nginx   {name}   {replicas}/{replicas}     {replicas}            {replicas}           3m36s   Y"
        for name in clusters
    ]
    return "\n".join(lines)


def pods(*clusters: str) -> str:
    lines = ["NAME                     CLUSTER          READY   STATUS    RESTARTS   AGE"]
    lines += [f"nginx-77b4fdf86c-zxjp2   {name}   1/1     Running   0          3m36s" for name in clusters]
    return "\n".join(lines)


def test_joining_by_context(kind: Shell) -> None:
    kind.shows(
        "kubectl --kubeconfig $KARMADA get clusters",
        """
NAME             VERSION   MODE   READY   AGE
kind-cluster01   v1.27.0   Push   True    16s
kind-cluster02   v1.27.0   Push   True    5s
""",
    )


def test_a_policy_and_its_update(kind: Shell) -> None:
    kind.write("propagationpolicy.yaml", f"{POLICY}      clusterNames:\n        - kind-cluster01\n")
    kind.type("kubectl --kubeconfig $KARMADA apply -f propagationpolicy.yaml")
    kind.type("kubectl --kubeconfig $KARMADA create deployment nginx --image nginx")
    kind.shows("kubectl karmada --kubeconfig $KARMADA get deployment", deployments("kind-cluster01"))
    kind.shows("kubectl karmada --kubeconfig $KARMADA get pods", pods("kind-cluster01"))
    kind.shows(
        "kubectl --context kind-cluster01 get pods",
        """
NAME                     READY   STATUS    RESTARTS   AGE
nginx-77b4fdf86c-zxjp2   1/1     Running   0          2m36s
""",
    )
    nothing = kind.try_("kubectl --context kind-cluster02 get pods")
    assert nothing.err == "No resources found in default namespace.\n"
    kind.write("propagationpolicy-update.yaml", f"{POLICY}      clusterNames:\n        - kind-cluster02\n")
    assert kind.type("kubectl --kubeconfig $KARMADA apply -f propagationpolicy-update.yaml") == CONFIGURED
    kind.shows("kubectl karmada --kubeconfig $KARMADA get deployment", deployments("kind-cluster02"))
    kind.shows("kubectl karmada --kubeconfig $KARMADA get pods", pods("kind-cluster02"))


def test_clusters_are_chosen_by_labels(kind: Shell) -> None:
    for name, mark in (("kind-cluster01", "cluster01"), ("kind-cluster02", "cluster02")):
        kind.type(f"kubectl --kubeconfig $KARMADA label cluster {name} app={mark}")
        kind.type(f"kubectl --kubeconfig $KARMADA label cluster {name} deploy-type=kind")
    kind.shows(
        "kubectl --kubeconfig $KARMADA get cluster --show-labels",
        """
NAME             VERSION   MODE   READY   AGE   LABELS
kind-cluster01   v1.27.0   Push   True    10h   app=cluster01,deploy-type=kind
kind-cluster02   v1.27.0   Push   True    10h   app=cluster02,deploy-type=kind
""",
    )
    kind.type("kubectl --kubeconfig $KARMADA scale deployment nginx --replicas=2")
    kind.write("match-labels.yaml", POLICY + BY_LABELS)
    assert kind.type("kubectl --kubeconfig $KARMADA apply -f match-labels.yaml") == CONFIGURED
    line = "kubectl karmada --kubeconfig $KARMADA get"
    kind.shows(f"{line} deployments.apps", deployments("kind-cluster01", replicas=2))
    kind.shows(f"{line} pods", pods("kind-cluster01", "kind-cluster01"))
    kind.write("match-expressions.yaml", POLICY + BY_EXPRESSION)
    assert kind.type("kubectl --kubeconfig $KARMADA apply -f match-expressions.yaml") == CONFIGURED
    kind.shows(f"{line} deployments.apps", deployments("kind-cluster01", "kind-cluster02", replicas=2))
    kind.shows(f"{line} pods", pods(*["kind-cluster01"] * 2, *["kind-cluster02"] * 2))


def test_clusters_are_chosen_by_fields(kind: Shell) -> None:
    both = "kind-cluster01 kind-cluster02"
    patched = "cluster.cluster.karmada.io/kind-cluster01 patched\ncluster.cluster.karmada.io/kind-cluster02 patched\n"
    line = "kubectl --kubeconfig $KARMADA patch clusters.cluster.karmada.io"
    assert kind.type(f"""{line} {both} -p '{{"spec": {{"provider": "kind"}} }}'""") == patched
    assert kind.type(f"""{line} {both} -p '{{"spec": {{"region": "local"}} }}'""") == patched
    for number in ("01", "02"):
        kind.type(f"""{line} kind-cluster{number} -p '{{"spec": {{"zone": "cluster{number}"}} }}'""")
    kind.write("fields.yaml", POLICY + BY_FIELDS)
    assert kind.type("kubectl --kubeconfig $KARMADA apply -f fields.yaml") == CONFIGURED
    kind.shows("kubectl karmada --kubeconfig $KARMADA get deployment", deployments("kind-cluster02", replicas=2))
    kind.shows("kubectl karmada --kubeconfig $KARMADA get pods", pods("kind-cluster02", "kind-cluster02"))


# what operators type every day


def test_what_is_propagated_where(kind: Shell) -> None:
    both = kind.type("kubectl --kubeconfig $KARMADA get rb,work -A")
    bindings, works = both.strip().split("\n\n")
    assert columns(bindings.splitlines()[0]) == ["NAMESPACE", "NAME", "SCHEDULED", "FULLYAPPLIED", "AGE"]
    [binding] = rows(bindings)
    assert binding["NAME"] == "resourcebinding.work.karmada.io/nginx-deployment"
    assert (binding["SCHEDULED"], binding["FULLYAPPLIED"]) == ("True", "True")
    [work] = [row for row in rows(works) if row["NAME"].startswith("work.work.karmada.io/nginx-")]
    assert (work["NAMESPACE"], work["APPLIED"]) == ("karmada-es-kind-cluster02", "True")
    policies = kind.type("kubectl --kubeconfig $KARMADA get pp,cpp -A")
    [policy] = rows(policies)
    assert (policy["NAMESPACE"], policy["NAME"]) == (
        "default",
        "propagationpolicy.policy.karmada.io/propagaetion-nginx",
    )
    aggregated = yaml.safe_load(kind.type("kubectl --kubeconfig $KARMADA get deploy nginx -o yaml"))
    assert (aggregated["status"]["readyReplicas"], aggregated["status"]["updatedReplicas"]) == (2, 2)


def test_karmadactl_alone_does_the_same(kind: Shell) -> None:
    """With the control plane's kubeconfig as the usual one."""
    own = f"KUBECONFIG={kind.env['KARMADA']} karmadactl"
    kind.shows(
        f"{own} get clusters | sed 's/Karmada/-------/'",
        """
NAME             CLUSTER   VERSION   MODE   READY   AGE   ADOPTION
kind-cluster01   -------   v1.27.0   Push   True    16s   -
kind-cluster02   -------   v1.27.0   Push   True    5s    -
""",
    )
    described = kind.type(f"{own} describe cluster kind-cluster01")
    assert re.search(r"^Name: +kind-cluster01$", described, re.MULTILINE)
    assert re.search(r"^ +Kubernetes Version: +v1\.27\.0$", described, re.MULTILINE)
    logs = kind.type(f"{own} logs -l app=nginx --all-clusters")
    assert re.match(r"\[kind-cluster02/pod/nginx-[a-z0-9]+-[a-z0-9]{5}/nginx\] \S+ nginx-", logs)
    [pod, _] = kind.type("kubectl --context kind-cluster02 get pods -o jsonpath={.items[*].metadata.name}").split()
    line = f"{own} exec -it {pod} --cluster=kind-cluster02 -- sh"
    with TerminalSession(["bash", "-c", line], kind.env) as terminal:
        terminal.until("# ")
        terminal.press("hostname\r")
        terminal.until(f"{pod}\r\n")
        terminal.press("exit\r")
        assert terminal.end() == 0


def test_a_cluster_joins_and_leaves_by_contexts(kind: Shell, fleet: Fleet) -> None:
    """The control plane's context, and the member's of its own name, are in one kubeconfig."""
    rename = "kubectl config rename-context karmada-apiserver karmada"
    kind.type(f"cp $KARMADA ~/.kube/karmada.kubeconfig && KUBECONFIG=~/.kube/karmada.kubeconfig {rename}")
    kind.type(
        "KUBECONFIG=~/.kube/karmada.kubeconfig:~/.kube/config kubectl config view --flatten > ~/.kube/both.config"
    )
    own = "KUBECONFIG=~/.kube/both.config karmadactl"
    joined = f"{own} join member1 --cluster-kubeconfig=$HOME/.kube/member1.config --karmada-context=karmada"
    assert kind.type(joined) == "cluster(member1) is joined successfully\n"
    fleet.until_ready("member1")
    kind.type(f"{own} unjoin member1")
    assert "member1" not in kind.type(f"{own} get clusters")


MISTAKES: list[tuple[str, Callable[[str], bool]]] = [
    ("karmadactl --kubeconfig $KARMADA get nothings", lambda output: '"nothings"' in output),
    ("karmadactl --kubeconfig $KARMADA describe cluster nowhere", lambda output: '"nowhere" not found' in output),
    ("karmadactl --kubeconfig $KARMADA exec x --cluster=nowhere -- sh", lambda output: '"nowhere" not found' in output),
    (
        "karmadactl --kubeconfig $KARMADA logs x",
        lambda output: "must specify a cluster: add --cluster" in output,
    ),
    ("karmadactl --kubeconfig /nowhere get clusters", lambda output: "/nowhere" in output),
]


@pytest.mark.parametrize(("line", "right"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_cost_one_line(shell: Shell, line: str, right: Callable[[str], bool]) -> None:
    output = shell.refused(line)
    assert len(output.splitlines()) == 1, output
    assert right(output), output
