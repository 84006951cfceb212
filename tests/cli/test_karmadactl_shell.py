"""What all commands share: their table, their help, and how they say that something is wrong."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from karmada.cli.karmadactl import main
from karmada.cli.parsing import help as help_text
from karmada.cli.parsing import program
from karmada.cli.parsing.catalog import COMMANDS, GROUPS, HIDDEN
from karmada.kube.runtime import logging as structured
from tests.support.cases import cases
from tests.support.eventually import LIMIT
from tests.support.ports import free_port

PROGRAM = [sys.executable, "-m", "karmada.cli.karmadactl"]


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def said(*args: str) -> tuple[int, str, str]:
    result = run(*args)
    return result.exit_code, result.stdout, result.stderr


def kubeconfig(path: Path, server: str) -> str:
    path.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "{server}"}}}}]
users: [{{name: here, user: {{token: t}}}}]
contexts: [{{name: here, context: {{cluster: here, user: here}}}}]
current-context: here
"""
    )
    return str(path)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without a kubeconfig, outside of any cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """-v is meant for a process of its own."""
    root = logging.getLogger()
    handlers, level, verbosity = root.handlers[:], root.level, structured.verbosity()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structured.set_verbosity(verbosity)


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command there is, and every subcommand."""

    def below(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for name in command.list_commands(context):
                    inner = command.get_command(context, name)
                    assert inner is not None
                    yield from below((*path, name), inner)

    for name, entry in COMMANDS.items():
        yield from below((name,), getattr(import_module(entry.module), entry.attribute))


ALL = [pytest.param(path, command, id=" ".join(path)) for path, command in commands()]


# the table


def test_the_groups_of_commands_have_their_order() -> None:
    karmada = {
        "Basic Commands": ["explain", "get", "create", "delete", "edit"],
        "Cluster Registration Commands": [
            "init", "deinit", "addons", "join", "unjoin", "token", "register", "unregister",
        ],
        "Cluster Management Commands": ["cordon", "uncordon", "taint"],
        "Troubleshooting and Debugging Commands": ["attach", "logs", "exec", "describe", "interpret"],
        "Advanced Commands": ["apply", "promote", "top", "patch"],
        "Settings Commands": ["label", "annotate", "completion"],
        "Other Commands": ["api-resources", "api-versions"],
    }  # fmt: skip
    assert {heading: list(GROUPS[heading]) for heading in karmada} == karmada
    assert [heading for heading in GROUPS if heading in karmada] == list(karmada)


def test_the_overview_shows_every_command_that_people_use() -> None:
    code, out, err = said()
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.strip()]
    assert [name for name in listed if name in COMMANDS] == [name for name in COMMANDS if name not in HIDDEN]
    assert said("--help") == said("help") == (0, out, "")


# help


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_command_has_a_help_with_an_example(path: tuple[str, ...], command: click.Command) -> None:
    code, out, err = said(*path, "--help")
    assert (code, err) == (0, "")
    about, examples = help_text.parts(command)
    assert about.strip()
    assert out.startswith(about)
    assert f"\nExamples:\n{examples}\n" in out
    assert re.search(r"^(.*\|)? *karmadactl ", examples, re.MULTILINE)
    assert re.search(f"^Usage:\n  karmadactl {'( NAME)? '.join(path)}", out, re.MULTILINE)
    assert 'Use "karmadactl options" for a list of global command-line options (applies to all commands).' in out
    assert said(*path, "-h") == said("help", *path) == (0, out, "")


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_flag_of_every_command_is_described(path: tuple[str, ...], command: click.Command) -> None:
    shown = run(*path, "--help").stdout
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
            assert all(name in shown for name in option.opts if name.startswith("--"))


def test_help_has_the_layout_of_kubectl() -> None:
    assert said("cordon", "--help")[1] == (
        """\
Mark CLUSTER unschedulable; resources that are there stay.

Examples:
  karmadactl cordon member1

Options:
    --dry-run=false:
	Print what would be done; change nothing.

    --karmada-context='':
	The context to use in the kubeconfig.

    --kubeconfig='':
	The kubeconfig of the control plane.

Usage:
  karmadactl cordon CLUSTER [options]

Use "karmadactl options" for a list of global command-line options (applies to all commands).
"""
    )


def test_as_a_plugin_it_calls_itself_what_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-karmada"])
    assert (program.binary(), program.command()) == ("kubectl-karmada", "kubectl karmada")
    shown = run("cordon", "--help").stdout
    assert "\n  kubectl karmada cordon member1\n" in shown
    assert "\n  kubectl-karmada cordon CLUSTER [options]\n" in shown
    assert "karmadactl" not in shown
    assert run("version").stdout.startswith("kubectl karmada version: version.Info{")
    assert run("cordon", "--foo").stderr.endswith("See 'kubectl karmada cordon --help' for usage.\n")


def test_options_are_the_flags_of_all_commands() -> None:
    code, out, _ = said("options")
    assert code == 0
    assert out.startswith("The following options can be passed to any command:\n\n    --add-dir-header=false:\n")
    for flag in (
        "--alsologtostderr=false",
        "--kubeconfig=''",
        "-v, --v=0",
        "--logtostderr=true",
        "--stderrthreshold=2",
    ):
        assert f"\n    {flag}:\n" in out
    assert said("--kubeconfig=x", "options") == (0, out, "")


@cases("--v=2", "--log-file-max-size=3", "--skip-headers", "--one-output=false")
def test_flags_of_all_commands_are_taken_by_each(flag: str) -> None:
    assert run("version", flag).exit_code == run(flag, "version").exit_code == 0


# what is wrong with a command line


@pytest.mark.parametrize(("path", "_command"), ALL)
def test_every_command_refuses_an_unknown_flag_in_the_same_way(path: tuple[str, ...], _command: click.Command) -> None:
    words = " ".join(path)
    refusal = f"error: unknown flag: --no-such-flag\nSee 'karmadactl {words} --help' for usage.\n"
    typed = [*path[:2], "member1", *path[2:]] if path[:2] == ("sim", "fail") else path
    assert said(*typed, "--no-such-flag") == said("--no-such-flag=1", *typed) == (1, "", refusal)


@cases(
    ("gte", 'error: unknown command "gte" for "karmadactl"\n\nDid you mean this?\n\tget\n\n'),
    ("qwertz", 'error: unknown command "qwertz" for "karmadactl"\n'),
    ("cordon -z", "error: unknown shorthand flag: 'z' in -z\nSee 'karmadactl cordon --help' for usage.\n"),
    (
        "cordon --kubeconfig",
        "error: flag needs an argument: --kubeconfig\nSee 'karmadactl cordon --help' for usage.\n",
    ),
    (
        "unjoin m1 --wait=soon",
        'error: invalid argument "soon" for "--wait" flag: time: invalid duration "soon"\n'
        "See 'karmadactl unjoin --help' for usage.\n",
    ),
    (
        "version -v=x",
        'error: invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax\n'
        "See 'karmadactl version --help' for usage.\n",
    ),
    ("sim no-such", "error: unknown command \"no-such\"\nSee 'karmadactl sim -h' for help and examples\n"),
    ("sim create", "error: NAME… is required\nSee 'karmadactl sim create -h' for help and examples\n"),
    ("version more", "error: unexpected arguments: [more]\nSee 'karmadactl version -h' for help and examples\n"),
    ("completion", "error: Shell not specified.\nSee 'karmadactl completion -h' for help and examples\n"),
    (
        "completion a b",
        "error: Too many arguments. Expected only the shell type.\n"
        "See 'karmadactl completion -h' for help and examples\n",
    ),
    (
        "completion tcsh",
        "error: Unsupported shell type \"tcsh\".\nSee 'karmadactl completion -h' for help and examples\n",
    ),
    ("cordon", "error: cluster name is required\n"),
)
def test_a_command_line_that_is_wrong_is_refused_in_one_line(args: str, refusal: str) -> None:
    assert said(*args.split()) == (1, "", refusal)


@cases("addons", "token")
def test_these_groups_show_their_help_for_every_word_they_do_not_know(group: str) -> None:
    shown = said(group, "--help")
    assert said(group) == said(group, "no-such") == shown
    assert shown[0] == 0


def test_top_alone_shows_its_help_as_a_mistake() -> None:
    _, shown, _ = said("top", "--help")
    assert said("top") == (1, "", shown)


def test_underscores_in_a_flag_are_taken_with_a_warning() -> None:
    code, out, err = said("version", "--skip_headers")
    assert (code, out[:18]) == (0, "karmadactl version")
    assert err == "Warning: --skip_headers was read as --skip-headers: names of flags have dashes, not underscores\n"


# what is wrong with the way to a server

WORDS = {
    "annotate": ["pods", "p", "a=b"],
    "api-resources": [],
    "api-versions": [],
    "apply": ["-f", "FILE"],
    "apply edit-last-applied": ["pods", "p"],
    "apply set-last-applied": ["-f", "FILE"],
    "apply view-last-applied": ["pods", "p"],
    "attach": ["p"],
    "cordon": ["m1"],
    "create": ["-f", "FILE"],
    "create namespace": ["shop"],
    "delete": ["pods", "p"],
    "describe": ["pods"],
    "edit": ["pods", "p"],
    "exec": ["p", "--", "ls"],
    "explain": ["pods"],
    "get": ["pods"],
    "join": ["m1", "--cluster-kubeconfig", "FINE"],
    "label": ["pods", "p", "a=b"],
    "logs": ["p", "-C", "m1"],
    "orphans": [],
    "patch": ["pods", "p", "-p", "{}"],
    "drill": ["--fail", "m1"],
    "promote": ["deployments", "d", "-C", "m1"],
    "quarantine list": [],
    "quarantine release": ["detector", "default/web"],
    "rewrite": ["secrets"],
    "search": ["web"],
    "taint": ["clusters", "m1", "a=b:NoSchedule"],
    "token create": [],
    "token delete": ["abcdef"],
    "token list": [],
    "top node": [],
    "top pod": [],
    "uncordon": ["m1"],
    "unjoin": ["m1"],
    "why": ["deployments", "d"],
}
"""For every command that needs a server, words with which it would work."""
ELSEWHERE = {"render", "simulate", "interpret", "unregister", "addons list", "addons enable", "addons disable"}
"""They need one only with some of their flags, or not at all yet."""


def test_these_are_all_commands_that_take_a_control_plane() -> None:
    taking = {" ".join(path) for path, command in commands() if "karmada_context" in [p.name for p in command.params]}
    made = {name for name in taking if name.startswith("create ") and name not in WORDS}
    assert taking - made - ELSEWHERE == set(WORDS)


def words(name: str, tmp_path: Path, server: str = "https://127.0.0.1:1") -> list[str]:
    file = tmp_path / "object.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    fine = kubeconfig(tmp_path / "fine", server)
    return [*name.split(), *({"FILE": str(file), "FINE": fine}.get(word, word) for word in WORDS[name])]


@pytest.mark.parametrize("name", list(WORDS))
def test_a_kubeconfig_that_is_not_there(name: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    refusal = f"error: stat {missing}: no such file or directory\n"
    assert said("--kubeconfig", missing, *words(name, tmp_path)) == (1, "", refusal)


@pytest.mark.parametrize("name", list(WORDS))
def test_a_context_that_is_not_there(name: str, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    refusal = 'error: context "nope" does not exist (known: here)\n'
    assert said("--kubeconfig", path, "--karmada-context=nope", *words(name, tmp_path)) == (1, "", refusal)


@pytest.mark.parametrize("name", list(WORDS))
def test_a_kubeconfig_that_makes_no_sense(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: 3")
    refusal = f'error: error loading config file "{path}": clusters must be a list\n'
    assert said("--kubeconfig", str(path), *words(name, tmp_path)) == (1, "", refusal)


@pytest.mark.parametrize("name", list(WORDS))
def test_a_server_that_is_not_there(name: str, tmp_path: Path) -> None:
    host = f"127.0.0.1:{free_port()}"
    path = kubeconfig(tmp_path / "config", f"https://{host}")
    refusal = f"The connection to the server {host} was refused - did you specify the right host or port?\n"
    assert said("--kubeconfig", path, *words(name, tmp_path, f"https://{host}")) == (1, "", refusal)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections, and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_says_nothing_is_not_waited_for_long(
    silent_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.cli.targeting.connect.CONNECT_SECONDS", 0.2)
    path = kubeconfig(tmp_path / "config", silent_server)
    began = time.monotonic()
    code, out, err = said("cordon", "m1", "--kubeconfig", path)
    assert time.monotonic() - began < LIMIT
    assert (code, out) == (1, "")
    host = silent_server.removeprefix("https://")
    assert err == f"Unable to connect to the server: dial tcp {host}: i/o timeout (no connection within 0.2s)\n"


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://no-such-host.invalid:6443")
    refusal = "Unable to connect to the server: dial tcp: lookup no-such-host.invalid: no such host\n"
    assert said("cordon", "m1", "--kubeconfig", path) == (1, "", refusal)


# logs


def test_requests_are_logged_from_six_on(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", f"https://127.0.0.1:{free_port()}")

    def logged(level: int) -> list[str]:
        words = [*PROGRAM, f"-v={level}", "cordon", "m1", "--kubeconfig", path]
        return subprocess.run(words, capture_output=True, text=True).stderr.splitlines()

    quiet, loud = logged(0), logged(6)
    assert len(quiet) == 1
    assert len(loud) == 2
    assert loud[1] == quiet[0]
    assert loud[0].startswith("I")
    assert '"Response" verb="GET" url="https://127.0.0.1:' in loud[0]


def test_logs_may_go_to_a_file(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", f"https://127.0.0.1:{free_port()}")
    words = ["-v=6", "--logtostderr=false", "--log-file", str(tmp_path / "log"), "cordon", "m1", "--kubeconfig", path]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True)
    assert len(done.stderr.splitlines()) == 1
    assert '"Response" verb="GET"' in (tmp_path / "log").read_text()


# ends


def test_control_c_is_quiet(silent_server: str, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", silent_server)
    words = [*PROGRAM, "-v=6", "cordon", "m1", "--kubeconfig", path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = silent_server.rpartition(":")[2]
        while not connected_to(process.pid, int(address)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err


def connected_to(pid: int, port: int) -> bool:
    """Whether the process has a connection to the port of this machine."""
    try:
        rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        own = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return False
    return any(row.split()[2].endswith(f":{port:04X}") and f"socket:[{row.split()[9]}]" in own for row in rows)


def test_a_reader_who_has_enough_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROGRAM, "options"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# speed


@cases(["version"], ["--help"], ["options"], ["join", "--help"], ["completion", "bash"])
def test_showing_something_loads_nothing_heavy(args: list[str]) -> None:
    heavy = "asyncio", "aiohttp", "orjson", "msgspec", "yaml", "cryptography", "logging", "ssl", "karmada.kube"
    program = (
        "import sys\nfrom karmada.cli.karmadactl import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit as e:\n    assert not e.code\n"
        f"print([m for m in {heavy!r} if m in sys.modules], len(sys.modules), end='', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, _, count = done.stderr.rpartition(" ")
    assert loaded == "[]"
    assert int(count) < 160


def test_no_command_loads_what_it_may_not_need() -> None:
    heavy = "aiohttp", "orjson", "msgspec", "yaml", "cryptography", "karmada.kube.client", "karmada.kube.schema"
    modules = sorted({COMMANDS[name.split()[0]].module for name in WORDS})
    program = f"import sys, {', '.join(modules)}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    for words in (["version"], ["get", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@cases("0<&-", "1>&-", "2>&-")
def test_streams_may_be_closed(stream: str) -> None:
    done = subprocess.run(["sh", "-c", f'"$@" {stream}', "-", *PROGRAM, "version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (stream != "1>&-")


def test_the_locale_does_not_matter_for_what_is_written(tmp_path: Path) -> None:
    words = [*PROGRAM, "get", "größe", "--kubeconfig", str(tmp_path / "größe")]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.stderr.decode() == f"error: stat {tmp_path}/größe: no such file or directory\n"


def test_words_that_are_no_text_are_refused() -> None:
    done = subprocess.run([*PROGRAM, "label", "cm", "x", b"a=\xff"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "error: not UTF-8: 'a=\\udcff'\n")


@cases("top", "create secret", "create service")
def test_these_groups_alone_are_a_mistake(group: str) -> None:
    code, out, err = said(*group.split())
    assert (code, out) == (1, "")
    assert f"Usage:\n  karmadactl {group} SUBCOMMAND" in err


@cases("sim fail m1 down --help", "sim fail down -h", "help sim fail m1 down")
def test_help_shows_where_the_words_of_a_group_go(words: str) -> None:
    assert "Usage:\n  karmadactl sim fail NAME down [options]\n" in said(*words.split())[1]


def test_help_fits_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    refusal = said("get", "--help")[1]
    assert max(len(line.expandtabs(8)) for line in refusal.splitlines() if line.startswith("\t")) <= 70
