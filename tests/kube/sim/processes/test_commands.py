"""The command line of a container's process: which program, which arguments, and which paths in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.sim.processes.commands import Translation, UnknownCommand, command_line, translated_env
from karmada.kube.sim.processes.images import ImageRule
from tests.support.cases import cases

RULE = ImageRule(image="*/karmada-agent", command=("python", "-m", "agent"), commands={"ctl": ("/opt/ctl", "-q")})
IMAGE = "docker.io/karmada/karmada-agent:v1.15.0"


@cases(
    ("/etc/a", "/R/etc/a"),
    ("/etc/a/config", "/R/etc/a/config"),
    ("--kubeconfig=/etc/a/config", "--kubeconfig=/R/etc/a/config"),
    ("--files=/etc/a/x,/etc/b/y,/etc/c/z", "--files=/R/etc/a/x,/R/etc/b/y,/etc/c/z"),
    ("/etc/a:/etc/b", "/R/etc/a:/R/etc/b"),
    ('{"path": "/etc/a/x"}', '{"path": "/R/etc/a/x"}'),
    ("/etc/a/deep/mount/x", "/R/etc/a/deep/mount/x"),
    ("/etc/ab", "/etc/ab"),
    ("/etc/a-b", "/etc/a-b"),
    ("/opt/etc/a", "/opt/etc/a"),
    ("https://host/etc/a", "https://host/etc/a"),
    ("etc/a", "etc/a"),
    ("--bind-address=0.0.0.0", "--bind-address=127.9.0.2"),
    ("http://0.0.0.0:2379,http://[::]:2380", "http://127.9.0.2:2379,http://127.9.0.2:2380"),
    ("0.0.0.0:10357", "127.9.0.2:10357"),
    ("10.0.0.0", "10.0.0.0"),
    ("0.0.0.0/0", "0.0.0.0/0"),
    ("127.0.0.1:5443", "127.0.0.1:5443"),
    ("", ""),
)
def test_mount_paths_are_translated_where_a_path_begins(text: str, expected: str) -> None:
    assert Translation("/R", ["/etc/a/", "/etc/b", "/etc/a/deep/mount"], "127.9.0.2")(text) == expected


def test_without_mounts_nothing_is_translated() -> None:
    assert Translation("/R", [], "")("/etc/a") == "/etc/a"


@given(st.text(alphabet="abc/=,:. -", max_size=30))
def test_only_whole_paths_change_and_removing_the_root_restores_the_text(text: str) -> None:
    translated = Translation("<R>", ["/a", "/b/c"], "")(text)
    assert translated.replace("<R>", "") == text


@cases(
    ({}, ("python", "-m", "agent")),
    ({"args": ["--v=4"]}, ("python", "-m", "agent", "--v=4")),
    ({"command": ["/bin/karmada-agent"], "args": ["--v=4"]}, ("python", "-m", "agent", "--v=4")),
    ({"command": ["karmada-agent", "--a"], "args": ["--b"]}, ("python", "-m", "agent", "--a", "--b")),
    ({"command": ["/usr/bin/ctl", "x"]}, ("/opt/ctl", "-q", "x")),
    ({"args": ["--name=$(NAME)", "$(MISSING)", "$$(NAME)"]},
     ("python", "-m", "agent", "--name=m1", "$(MISSING)", "$(NAME)")),
    ({"args": ["--config=$(CONFIG)"]}, ("python", "-m", "agent", "--config=/R/etc/a/x")),
)  # fmt: skip
def test_the_table_decides_the_program_and_the_pod_its_arguments(
    container: dict[str, list[str]], expected: tuple[str, ...]
) -> None:
    env = {"NAME": "m1", "CONFIG": "/etc/a/x"}
    line = command_line(RULE, {"name": "c", "image": IMAGE, **container}, env, Translation("/R", ["/etc/a"], ""))
    assert line == expected


@cases("sh", "/bin/bash", "python", "karmada-scheduler", "")
def test_a_command_that_the_table_does_not_name_is_rejected(command: str) -> None:
    with pytest.raises(UnknownCommand, match=r"can run only ctl, karmada-agent \(--process-images adds commands\)"):
        command_line(RULE, {"name": "c", "image": IMAGE, "command": [command]}, {}, Translation("/R", [], ""))


@cases(
    (["sh", "-c", "ctl get"], ("/opt/ctl", "-q", "get")),
    (["/bin/sh", "-ec", "exec /usr/bin/ctl --name=$NAME '--file=/etc/a/x y'"],
     ("/opt/ctl", "-q", "--name=m1", "--file=/R/etc/a/x y")),
    (["bash", "-c", 'ctl "$WORDS" $WORDS ${NONE:-default} $NONE "$NONE"'],
     ("/opt/ctl", "-q", "two words", "two", "words", "default", "")),
    (["sh", "-c", 'ctl "$1"', "sh", "first"], ("/opt/ctl", "-q", "first")),
)  # fmt: skip
def test_a_script_of_one_command_needs_no_shell(command: list[str], expected: tuple[str, ...]) -> None:
    env = {"NAME": "m1", "WORDS": "two words"}
    line = command_line(RULE, {"name": "c", "image": IMAGE, "command": command}, env, Translation("/R", ["/etc/a"], ""))
    assert line == expected


@cases(
    ("ctl get; id", "more than one command"),
    ("ctl get && id", "more than one command"),
    ("ctl get | id", "more than one command"),
    ("! ctl get", "more than one command"),
    ("ctl get > /tmp/x", "more than one command"),
    ("if ctl; then id; fi", "more than one command"),
    ("ctl $(id)", "substitutions"),
    ("ctl `id`", "substitutions"),
    ("ctl /etc/*", "patterns of files"),
    ("ctl ~", "patterns of files"),
    ("PATH=/tmp ctl", "is no command"),
    ("exec", "is no command"),
    ("ctl 'open", "no shell"),
    ("id", "can run only ctl, karmada-agent"),
    ("$NAME", "can run only ctl, karmada-agent"),
    ("sh -c ctl", "can run only ctl, karmada-agent"),
)
def test_a_script_that_needs_a_shell_is_refused(script: str, why: str) -> None:
    container = {"name": "c", "image": IMAGE, "command": ["/bin/sh", "-c", script]}
    with pytest.raises(UnknownCommand, match=why):
        command_line(RULE, container, {"NAME": "m1"}, Translation("/R", [], ""))


def test_a_shell_of_the_table_runs_its_scripts() -> None:
    rule = ImageRule(image="tools", command=("/opt/tools",), commands={"sh": ("/bin/sh",)})
    container = {"name": "c", "image": "tools", "command": ["/bin/sh", "-c", "ls | wc"]}
    assert command_line(rule, container, {}, Translation("/R", [], "")) == ("/bin/sh", "-c", "ls | wc")


@cases(
    ("http://etcd-0.etcd.shop.svc.cluster.local:2380", "http://127.9.0.7:2380"),
    ("a=http://etcd-0.etcd.shop.svc:2380,b=x", "a=http://127.9.0.7:2380,b=x"),
    ("etcd-0.etcd.shop.svc", "127.9.0.7"),
    ("other.shop.svc:80", "other.shop.svc:80"),
    ("etcd-0.etcd.shop.svc.example.com", "etcd-0.etcd.shop.svc.example.com"),
    ("x-etcd-0.etcd.shop.svc-y", "x-etcd-0.etcd.shop.svc-y"),
)
def test_cluster_names_are_replaced_for_programs_that_cannot_look_them_up(text: str, expected: str) -> None:
    known = {"etcd-0.etcd.shop.svc": "127.9.0.7", "etcd-0.etcd.shop.svc.cluster.local": "127.9.0.7"}
    assert Translation("/R", [], "", lambda name: known.get(name, ""))(text) == expected
    assert Translation("/R", [], "")(text) == text


def test_variables_of_the_runtime_keep_their_paths_wherever_a_volume_is_mounted() -> None:
    translate = Translation("/R", ["/tmp", "/data"], "")
    own = {"NAMES": "/tmp/sim/names.json", "HOME": "/tmp/sim/root"}
    env = {**own, "HOME": "/data", "CACHE": "/tmp/cache"}
    assert translated_env(env, own, translate) == {
        "NAMES": "/tmp/sim/names.json",
        "HOME": "/R/data",
        "CACHE": "/R/tmp/cache",
    }
