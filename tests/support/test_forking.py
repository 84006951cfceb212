"""A forked program behaves as one that was started afresh."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import forking, forking_on_a_loop
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking
from tests.support.programs import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux only")
CTL = [sys.executable, "-m", "karmada.cli.karmadactl"]
SERVER = [sys.executable, "-m", "karmada.components.apiserver"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@cases(
    [*CTL, "options"],
    [*CTL, "--nonsense"],
    [*CTL, "get", "pods", "--kubeconfig", "nowhere"],
    [*SERVER, "--help"],
    [*SERVER, "--port", "many"],
    ids=" ".join,
)
def test_output_and_exit_code_are_those_of_a_fresh_process(words: list[str], tmp_path: Path) -> None:
    options: dict[str, Any] = {"text": True, "cwd": tmp_path, "env": {**os.environ, "HOME": str(tmp_path)}}
    forked, fresh = forking.run(words, **options), subprocess.run(words, capture_output=True, **options)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


@cases(
    "karmadactl options",
    "kubectl-karmada get --nonsense",
    "karmadactl get pods --kubeconfig nowhere || echo $?",
    "echo '{' | karmadactl --kubeconfig nowhere apply -f -",
    "kubectl_complete-karmada get -",
)
def test_a_shell_finds_commands_that_do_as_fresh_ones(line: str, tmp_path: Path) -> None:
    fresh = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    forked = forking.shell_path()
    assert forked.endswith(fresh)
    done = [
        subprocess.run(["bash", "-c", line], capture_output=True, cwd=tmp_path, env={**os.environ, "PATH": path})
        for path in (forked, fresh)
    ]
    assert done[0].stdout or done[0].stderr
    assert (done[0].returncode, done[0].stdout, done[0].stderr) == (done[1].returncode, done[1].stdout, done[1].stderr)


@cases(signal.SIGTERM, signal.SIGHUP)
def test_a_signal_to_a_shells_command_ends_what_was_forked_for_it(number: int, tmp_path: Path) -> None:
    read = tmp_path / "read"
    os.mkfifo(read)
    command = ["bash", "-c", f"exec karmadactl interpret --check -f {read}"]
    with subprocess.Popen(command, env={**os.environ, "PATH": forking.shell_path()}) as process:
        writing = eventually_blocking(lambda: process.poll() is None and _writer(read))
        process.send_signal(number)
        assert process.wait(60) == -number
        with pytest.raises(BrokenPipeError):
            os.write(writing, b"nobody reads")
        os.close(writing)


def _writer(fifo: Path) -> int | None:
    """None while nobody reads."""
    with suppress(OSError):
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    return None


def serving(folder: Path, **options: Any) -> subprocess.Popen[str]:
    """A forked server that is ready."""
    process = forking.start([*SERVER, "--data-dir", str(folder), "--port", "0"], text=True, **{**PIPES, **options})
    assert isinstance(process, forking.ForkedProgram)
    assert process.stdout is not None
    assert "Kubernetes API" in process.stdout.readline()
    return process


@cases((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL))
def test_a_signal_ends_it_and_its_exit_is_seen(number: int, code: int, tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(60) == code
        assert process.poll() == code
        eventually_blocking(lambda: not alive(process.pid))


def test_it_has_folder_session_mask_and_descriptors_of_its_own(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with serving(tmp_path / "data", cwd=tmp_path, start_new_session=True, umask=0o27, pass_fds=(writing,)) as process:
        of = Path(f"/proc/{process.pid}")
        assert Path(os.readlink(of / "cwd")) == tmp_path
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        assert "Umask:\t0027" in (of / "status").read_text().splitlines()
        assert os.readlink(of / "fd" / str(writing)) == os.readlink(f"/proc/self/fd/{writing}")
        process.kill()
    os.close(writing)
    assert os.read(reading, 1) == b"", "the server that forks keeps nothing open"
    os.close(reading)


def test_its_environment_is_the_given_one(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("nonsense")
    env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(tmp_path / "config")}
    env |= {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    assert str(tmp_path / "config") in forking.run([*CTL, "get", "pods"], env=env, text=True).stderr


def test_what_python_reads_when_it_starts_makes_a_fresh_process() -> None:
    with forking.start([*CTL, "options"], env={**os.environ, "PYTHONIOENCODING": "ascii"}, **PIPES) as process:
        assert not isinstance(process, forking.ForkedProgram)
        process.communicate()


def test_the_environment_of_a_pod_is_no_reason_for_a_fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has little of ours: what the simulator passes on, and what it sets for every pod."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    env = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    assert forking.forkable(CTL, {"env": {**env, "PATH": os.defpath, "PYTHONUNBUFFERED": "1"}})


def test_other_programs_are_started_as_ever() -> None:
    assert forking.run(["cat"], input="text", text=True).stdout == "text"


def leave_mark() -> None:
    Path("mark").write_text(str(os.getpid()))


async def test_on_an_event_loop_it_has_pipes_an_exit_code_and_what_runs_before_it(tmp_path: Path) -> None:
    process = await forking_on_a_loop.create_subprocess_exec(
        *CTL, "interpret", "--check", "-f", "-", cwd=tmp_path, preexec_fn=leave_mark, **PIPES
    )
    out, err = await process.communicate(b"kind: Nonsense")
    assert (process.returncode, out) == (1, b"")
    assert b"apiVersion not set" in err
    assert (tmp_path / "mark").read_text() == str(process.pid), "run in the process itself, in its folder"


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_on_an_event_loop_its_end_by_a_signal_is_seen(tmp_path: Path) -> None:
    process = await forking_on_a_loop.create_subprocess_exec(
        *SERVER, "--data-dir", str(tmp_path), "--port", "0", start_new_session=True, **PIPES
    )
    assert process.stdout is not None
    assert b"Kubernetes API" in await process.stdout.readline()
    assert parent(process.pid) != os.getpid(), "it is forked by the server"
    os.killpg(process.pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL


async def test_on_an_event_loop_other_programs_are_started_as_ever() -> None:
    process = await forking_on_a_loop.create_subprocess_exec("cat", **PIPES)
    assert await process.communicate(b"text") == (b"text", b"")
