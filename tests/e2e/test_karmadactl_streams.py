"""karmadactl's logs, exec and attach in members, beside the real kubectl talking to the members themselves."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from karmada.cli.karmadactl import main
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.admin_client import AdminClient
from tests.e2e.pasting import blocks
from tests.e2e.propagating import Propagation, as_text, deployment, policy, selector
from tests.support import forking
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.objects import kube_object
from tests.support.programs import Program, Result
from tests.support.terminals import TerminalSession

pytestmark = pytest.mark.e2e

SPACE = "streams"


def pod(name: str, *containers: Obj, init: tuple[Obj, ...] = (), **spec: Any) -> Obj:
    labels = {"app": name}
    init_containers = {"initContainers": list(init)} if init else {}
    return kube_object("v1", "Pod", name, labels=labels) | {
        "spec": {"containers": list(containers), "terminationGracePeriodSeconds": 0, **init_containers, **spec}
    }


def container(name: str, *command: str, image: str = "busybox", **fields: Any) -> Obj:
    return {"name": name, "image": image, **({"command": list(command)} if command else {}), **fields}


WEB: Obj = kube_object("apps/v1", "Deployment", "web") | {
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [container("nginx", image="nginx"), container("side")]},
        },
    },
}
NONE: Obj = {
    **WEB,
    "metadata": {"name": "none"},
    "spec": {**WEB["spec"], "replicas": 0, "selector": {"matchLabels": {"app": "none"}}},
}
NONE["spec"]["template"] = {**WEB["spec"]["template"], "metadata": {"labels": {"app": "none"}}}
PLAIN = kube_object("v1", "Service", "plain", spec={"ports": [{"port": 80}]})
SOLO = pod("solo", container("main", image="nginx"), init=(container("prep", "true"),))
SHELL = pod("shell", container("sh", "sh", stdin=True, tty=True))
MARKED = pod("marked", container("first"), container("second"))
MARKED["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "second"}
STUCK = pod("stuck", container("main"), nodeSelector={"no": "where"})
DONE = pod("done", container("main", "true"), restartPolicy="Never")
ALL = [WEB, NONE, PLAIN, SOLO, SHELL, MARKED, STUCK, DONE]


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    """The same things in member1 and member2, put there directly; none of them in member3."""
    members = [three_members.sims.kubectl(name) for name in ("member1", "member2")]
    for member in members:
        member("create", "namespace", SPACE)
        member("-n", SPACE, "apply", "-f", "-", stdin=as_text(*ALL))
    for member in members:
        member("-n", SPACE, "rollout", "status", "deployment/web", "--timeout=100s")
        member("-n", SPACE, "wait", "--for=condition=ready", "pod/solo", "pod/shell", "pod/marked", "--timeout=100s")
        member("-n", SPACE, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/done", "--timeout=100s")
    yield three_members
    for member in members:
        member("delete", "namespace", SPACE, "--wait=false")


@pytest.fixture
def ctl(fleet: Propagation) -> Program:
    """karmadactl where the pods are."""
    return Program([*fleet.ctl._command, "-n", SPACE], fleet.ctl.home, fleet.plane.kubeconfig)


@pytest.fixture
def there(fleet: Propagation) -> Program:
    """kubectl in member1 itself."""
    return fleet.sims.kubectl("member1", SPACE)


def as_ours(result: Result) -> tuple[int, str, str]:
    """What kubectl said, as karmadactl has to say it."""
    return result.code, result.out, result.err.replace("'kubectl ", "'karmadactl ")


def same(ctl: Program, there: Program, *words: str) -> None:
    """Both say the same; a line that is written between the two questions is no difference. Ours in this process."""
    name, *rest = words
    line = ["-n", SPACE, name, "--cluster=member1", *rest]

    def look() -> bool:
        kubectl = as_ours(there(*words, check=False))
        ours = CliRunner().invoke(main, line, prog_name="karmadactl", env={"KUBECONFIG": ctl.env["KUBECONFIG"]})
        assert (ours.exit_code, ours.stdout, ours.stderr) == kubectl
        return True

    eventually_blocking(look)


# logs, of one cluster


@cases(
    ["done"],
    ["stuck"],
    ["marked"],
    ["solo", "-c", "prep"],
    ["solo", "main", "--tail=1"],
    ["solo", "--all-containers", "--prefix"],
    ["pod/solo", "--timestamps", "--limit-bytes=40"],
    ["deploy/web"],
    ["deployments.apps/web", "-c", "side"],
    ["deployment/web", "--all-pods"],
    ["-l", "app=web", "--prefix", "--all-containers"],
    ["-l", "app in (web, solo)"],
    ["-l", "app=nobody"],
    ["solo", "--since=1h", "--tail=2"],
    ["solo", "--since-time=2024-01-01T00:00:00+01:00", "--tail", "1"],
    ids=" ".join,
)
def test_logs_are_those_of_kubectl(words: list[str], ctl: Program, there: Program) -> None:
    same(ctl, there, "logs", *words)


@cases(
    [],
    ["a", "b", "c"],
    ["a", "-l", "x=y"],
    ["nobody"],
    ["deploy/nobody"],
    ["what/ever"],
    ["a/b/c"],
    ["configmap/kube-root-ca.crt"],
    ["service/plain"],
    ["solo", "-c", "nobody"],
    ["solo", "-p"],
    ["solo", "-p", "--ignore-errors"],
    ["solo", "main", "-c", "main"],
    ["solo", "--all-containers", "-c", "main"],
    ["solo", "--since=1m", "--since-time=2024-01-01T00:00:00Z"],
    ["solo", "--since-time=yesterday"],
    ["solo", "--since=-1s"],
    ["solo", "--since=100ms"],
    ["solo", "--tail=-2"],
    ["solo", "--limit-bytes=-1"],
    ["deploy/none", "--pod-running-timeout=200ms"],
    ["solo", "--pod-running-timeout=0s"],
    ["-l", "app in"],
    ["-f", "-l", "app=web", "--all-containers", "--max-log-requests=3"],
    ids=" ".join,
)
def test_what_logs_cannot_do_is_said_as_kubectl_says_it(words: list[str], ctl: Program, there: Program) -> None:
    same(ctl, there, "logs", *words)


def test_logs_need_a_cluster_that_is_there(ctl: Program) -> None:
    nothing = ctl("logs", "solo", check=False)
    assert (nothing.code, nothing.out) == (1, "")
    hint = "add --cluster member1 or --all-clusters; solo is in member1, member2"
    assert nothing.err == f"error: must specify a cluster: {hint}\n"
    unknown = ctl("logs", "solo", "-C", "nowhere", check=False)
    text = 'Error from server (NotFound): clusters.cluster.karmada.io "nowhere" not found\n'
    assert (unknown.code, unknown.out, unknown.err) == (1, "", text)
    several = ctl("logs", "solo", "-C", "member1,nowhere,elsewhere", check=False)
    assert (several.code, several.err) == (1, "error: clusters don't exist: nowhere,elsewhere\n")


def test_several_logs_are_followed_until_ctrl_c(ctl: Program) -> None:
    following = ctl.start("logs", "-f", "-l", "app=web", "--prefix", "-C", "member1")
    assert following.stdout is not None
    seen: set[str] = set()
    while len(seen) < 2:
        prefix, _, rest = following.stdout.readline().partition("] ")
        assert prefix.removeprefix("[pod/") in rest, "a line is of the pod that its prefix names"
        seen.add(prefix)
    following.send_signal(signal.SIGINT)
    _, output = following.communicate(timeout=LIMIT)
    assert following.returncode == 130
    assert set(output.splitlines()) == {'Defaulted container "nginx" out of: nginx, side'}


def test_a_client_that_stops_reading_gets_no_more_events(ctl: Program) -> None:
    following = ctl.start("logs", "-f", "solo", "-c", "main", "-C", "member1")
    assert following.stdout is not None
    assert following.stderr is not None
    following.stdout.readline()
    following.stdout.close()
    assert following.wait(20) == 141
    assert following.stderr.read() == ""
    following.stderr.close()


# logs, of several clusters


def test_lines_of_several_clusters_name_their_cluster(ctl: Program, fleet: Propagation) -> None:
    output = ctl("logs", "-l", "app=web", "--all-clusters", "--tail=1")
    pods = {
        f"[{name}/{pod}/nginx]"
        for name in ("member1", "member2")
        for pod in fleet.sims.kubectl(name, SPACE)("get", "pods", "-l", "app=web", "-o", "name").lines
    }
    assert len(pods) == 4
    assert {line.split(" ")[0] for line in output.lines} == pods
    assert all(line.split(" ")[2].startswith("web-") for line in output.lines)
    assert output.err == ""
    assert [line[: len("[memberX")] for line in output.lines] in (
        ["[member1"] * 2 + ["[member2"] * 2,
        ["[member2"] * 2 + ["[member1"] * 2,
    )


def test_one_name_is_read_where_it_is(ctl: Program) -> None:
    output = ctl("logs", "solo", "main", "--cluster=member1", "--cluster=member2", "-C", "member3", "--tail=1")
    assert sorted(line.split(" ")[0] for line in output.lines) == ["[member1/pod/solo/main]", "[member2/pod/solo/main]"]
    chosen = ctl("logs", "deploy/web", "--all-clusters", "--tail=1")
    assert len(chosen.lines) == 2
    assert sorted(line.split(": Found 2 pods, using pod/web-")[0] for line in chosen.err.splitlines()) == [
        "cluster(member1)",
        "cluster(member2)",
    ]
    nowhere = ctl("logs", "nobody", "--all-clusters", check=False)
    text = f'error: error from server (NotFound): pods "nobody" not found in namespace "{SPACE}"\n'
    assert (nowhere.code, nowhere.out, nowhere.err) == (1, "", text)
    nothing = ctl("logs", "-l", "app=nobody", "--all-clusters")
    assert (nothing.out, nothing.err) == ("", f"No resources found in {SPACE} namespace.\n")


def test_clusters_are_followed_together(ctl: Program) -> None:
    following = ctl.start("logs", "-f", "solo", "main", "--all-clusters")
    assert following.stdout is not None
    try:
        seen: set[str] = set()
        while len(seen) < 2:
            seen.add(following.stdout.readline().split(" ")[0])
        assert seen == {"[member1/pod/solo/main]", "[member2/pod/solo/main]"}
    finally:
        following.kill()
        following.communicate()
    many = ctl("logs", "-f", "-l", "app=web", "--all-clusters", "--max-log-requests=3", check=False)
    assert many.code == 1
    assert "log streams, but maximum allowed concurrency is 3" in many.err


def test_a_dead_cluster_is_named_and_the_others_are_shown(ctl: Program, fleet: Propagation) -> None:
    admin = AdminClient(fleet.sims.folder)
    admin.request("POST", "/clusters/member2/faults", {"fault": {"type": "down"}, "name": "", "seconds": None})
    try:
        output = ctl("logs", "solo", "main", "--all-clusters", "--tail=1", check=False)
        assert output.code == 1
        assert [line.split(" ")[0] for line in output.lines] == ["[member1/pod/solo/main]"]
        [line] = output.err.splitlines()
        assert line.startswith("error: cluster(member2): ")
        assert line.endswith("connection refused")
    finally:
        admin.request("DELETE", "/clusters/member2/faults")
    fleet.until_ready("member2")


# exec


@cases(
    ["solo", "--", "hostname"],
    ["-c", "main", "solo", "--", "sh", "-c", "echo out; echo err >&2; exit 3"],
    ["deploy/web", "-q", "--", "hostname"],
    ["marked", "--", "echo", "-n", "--", "-c"],
    ["solo", "-c", "main", "--", "whatever"],
    ["-t", "solo", "--", "hostname"],
    ["-it", "solo", "--", "hostname"],
    ["-itq", "solo", "--", "hostname"],
    ["solo", "-c", "prep", "--", "ls"],
    ["solo", "-c", "nobody", "--", "ls"],
    ["nobody", "--", "ls"],
    ["deploy/nobody", "--", "ls"],
    ["what/ever", "--", "ls"],
    ["configmap/kube-root-ca.crt", "--", "ls"],
    ["service/plain", "--", "ls"],
    ["done", "--", "ls"],
    ["stuck", "--", "ls"],
    ["deploy/none", "--pod-running-timeout=200ms", "--", "ls"],
    ["solo", "--pod-running-timeout=0s", "--", "ls"],
    [],
    ["solo"],
    ["solo", "--"],
    ["--", "ls"],
    ["solo", "ls"],
    ["solo", "-f", "/nowhere.yaml", "--", "ls"],
    ids=" ".join,
)
def test_exec_does_as_kubectl_does(words: list[str], ctl: Program, there: Program) -> None:
    same(ctl, there, "exec", *words)


def test_exec_takes_the_pod_of_a_file(ctl: Program, there: Program, fleet: Propagation) -> None:
    one, several = fleet.sims.home / "one.yaml", fleet.sims.home / "several.yaml"
    one.write_text(as_text(SOLO))
    several.write_text(as_text(SOLO, SHELL))
    place = ["-C", "member1"]
    assert ctl("exec", *place, "-f", str(one), "--", "hostname").out == "solo\n"
    same(ctl, there, "exec", "-f", str(several), "--", "hostname")


def test_input_goes_through_a_command_byte_by_byte(ctl: Program, fleet: Propagation) -> None:
    data = bytes(range(256)) * 4096
    command = [*ctl._command, "exec", "-i", "solo", "-c", "main", "--cluster=member1", "--", "cat"]
    piped = forking.run(command, input=data, env=ctl.env, timeout=LIMIT)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout == data
    file = fleet.sims.home / "input"
    file.write_bytes(data)
    with file.open("rb") as stream:
        redirected = forking.run(command, stdin=stream, env=ctl.env, timeout=LIMIT)
    assert redirected.stdout == data


def test_a_command_that_reads_nothing_does_not_wait_for_input(ctl: Program) -> None:
    running = forking.start(
        [*ctl._command, "exec", "-i", "solo", "-c", "main", "--cluster=member1", "--", "hostname"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ctl.env, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.read() == "solo\n"
    assert running.wait(LIMIT) == 0
    running.communicate()


def test_exec_reaches_a_server_without_a_control_plane(fleet: Propagation) -> None:
    direct = Program(fleet.ctl._command, fleet.ctl.home, fleet.sims.kubeconfig)
    output = direct("exec", "--karmada-context", "member2", "-n", SPACE, "solo", "-c", "main", "--", "hostname")
    assert output.out == "solo\n"


def test_a_shell_in_a_terminal(ctl: Program) -> None:
    command = [*ctl._command, "exec", "-it", "solo", "-c", "main", "--cluster=member1", "--", "sh"]
    with TerminalSession(command, ctl.env) as shell:
        shell.until("# ")
        assert shell.is_raw
        shell.press("echo hello\r")
        shell.until("hello\r\n")
        shell.until("hello\r\n")
        shell.until("# ")
        shell.press("sleep 60\r")
        shell.until("sleep 60\r\n")
        shell.press("\x03")
        shell.until("^C")
        shell.until("# ")
        shell.press("exit 7\r")
        shell.until("command terminated with exit code 7")
        assert shell.end() == 7
        assert shell.is_as_before


@cases(signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
def test_the_terminal_is_as_before_after_a_signal(number: signal.Signals, ctl: Program) -> None:
    command = [*ctl._command, "exec", "-it", "solo", "-c", "main", "--cluster=member1", "--", "sh"]
    with TerminalSession(command, ctl.env) as shell:
        shell.until("# ")
        assert shell.is_raw
        shell.process.send_signal(number)
        assert shell.end() == 128 + number
        assert shell.is_as_before


def test_a_command_that_cannot_start_leaves_the_terminal_alone(ctl: Program) -> None:
    command = [*ctl._command, "exec", "-it", "solo", "-c", "prep", "--cluster=member1", "--", "sh"]
    with TerminalSession(command, ctl.env) as shell:
        shell.until('error: unable to upgrade connection: container not found ("prep")')
        assert shell.end() == 1
        assert shell.is_as_before


# attach


@cases(
    [],
    ["a", "b", "c"],
    ["nobody"],
    ["deploy", "nobody"],
    ["done"],
    ["stuck"],
    ["solo", "-c", "nobody"],
    ["-it", "solo", "-q"],
    ["-it", "solo", "-c", "main"],
    ["configmap/kube-root-ca.crt"],
    ["deploy/none", "--pod-running-timeout=200ms"],
    ["solo", "--pod-running-timeout=0s"],
    ids=" ".join,
)
def test_attach_does_as_kubectl_does(words: list[str], ctl: Program, there: Program) -> None:
    same(ctl, there, "attach", *words)


def test_input_reaches_the_process_of_a_container(ctl: Program) -> None:
    output = ctl("attach", "-i", "solo", "-c", "main", "--cluster=member1", stdin="hello\n")
    assert "hello\n" in output.out
    assert output.err == "If you don't see a command prompt, try pressing enter.\n"


def test_what_a_container_writes_is_seen_until_ctrl_c(ctl: Program) -> None:
    attached = ctl.start("attach", "solo", "-c", "main", "--cluster=member1")
    assert attached.stdout is not None
    assert " solo/main line " in attached.stdout.readline()
    attached.send_signal(signal.SIGINT)
    attached.communicate(timeout=LIMIT)
    assert attached.returncode == 130


def test_the_shell_of_a_container_in_a_terminal(ctl: Program) -> None:
    command = [*ctl._command, "attach", "-it", "shell", "--cluster=member1"]
    with TerminalSession(command, ctl.env) as shell:
        shell.until("If you don't see a command prompt, try pressing enter.")
        shell.press("\recho hello\r")
        shell.until("hello\r\n")
        shell.press("exit\r")
        shell.until("Session ended, resume using 'karmadactl attach shell -c sh -i -t' command when the pod is running")
        assert shell.end() == 0
        assert shell.is_as_before


# the page for people


def test_the_page_on_logs_and_exec_can_be_pasted(three_members: Propagation) -> None:
    page = Path(__file__).parents[2] / "docs" / "logs-and-exec.md"
    script = "\n".join(blocks(page, "sh"))
    web = deployment("web")
    three_members.apply(web, policy("web", [selector(web)], ["member1", "member2"]))
    try:
        for name in ("member1", "member2"):
            three_members.members[name].until(DEPLOYMENTS, "web", lambda one: one["status"].get("readyReplicas"))
        env = {**three_members.kubectl.env, "PATH": forking.shell_path()}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail"], input=script, capture_output=True, text=True, env=env, check=False
        )
    finally:
        three_members.delete(web, policy("web", []))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\[member2/pod/web-[a-z0-9]+-[a-z0-9]+/web\] ", done.stdout, re.MULTILINE)
    assert "\nsome input\n" in done.stdout
    for name in ("member1", "member2"):
        three_members.members[name].until_gone(DEPLOYMENTS, "web")
