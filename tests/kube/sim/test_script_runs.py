"""How the commands of containers go."""

from __future__ import annotations

from karmada.kube.sim.kubelet.filesystem import FileSystem, Mount, Volume
from karmada.kube.sim.kubelet.machine import Machine
from karmada.kube.sim.kubelet.predicted_runs import FOREVER, PredictedRun
from karmada.kube.sim.kubelet.script_runs import run_through
from tests.support.cases import cases


async def course(*command: str, volume: Volume | None = None, **env: str) -> PredictedRun | None:
    files = FileSystem({"/data": Mount(volume or Volume()), "/etc/c": Mount(Volume({"key": b"5"}, writable=False))})
    return await run_through(Machine("web-0", env, files), list(command))


@cases(
    ("sleep 5", (5, 0)),
    ("sleep 1m; exit 3", (60, 3)),
    ("echo hi && exit 3", (0, 3)),
    ("false || exit 2", (0, 2)),
    ("false && exit 2; sleep 1", (1, 0)),
    ("true || exit 2; sleep 1; false", (1, 1)),
    ("echo 'a; exit 1'; sleep 2", (2, 0)),
    ("./work; exit 4", (0, 4)),
    ("sleep 1; ./work", (1, 0)),
    ("if [ -f /data/x ]; then exit 1; fi; exit 0", (0, 0)),
    ("[ -f /tmp/x ] || exit 1", (0, 1)),
    ("touch /tmp/x; test -f /tmp/x && exit 3", (0, 3)),
    ("for i in 1 2; do sleep 1; done", (2, 0)),
    ("sleep $(cat /etc/c/key)", (5, 0)),
    ("exit $(expr $INDEX % 2)", (0, 1)),
    ("exit $?", (0, 0)),
    ("sleep $UNSET; exit 1", (0, 1)),
    ("echo out 2>&1; exit 7", (0, 7)),
    ("./work > /data/log; exit 0", None),
    ("echo hi", None),
    ("./work || exit 1", None),
    ("if ./work; then exit 1; fi", None),
    ("exit $(./work)", None),
    ("./work | grep x; exit 1", None),
    ("./work; exit $?", None),
    ("cat /app/code || exit 1", None),
    ("[ -f /app/ready ] && exit 1", None),
    ("sh /app/start.sh; exit 0", None),
    ("./server & sleep 5; exit 1", None),
    ("case $INDEX in 7) exit 1;; esac", None),
)
async def test_a_script_is_predicted_where_nothing_unknown_decides(script: str, run: tuple[float, int] | None) -> None:
    assert await course("sh", "-c", script, INDEX="7") == run


@cases(
    ("while true; do sleep 1; done", FOREVER),
    ("trap 'exit 0' TERM; sleep infinity", FOREVER),
    ("while true; do :; done", None),
    ("until [ -f /data/ready ]; do sleep 1; done", None),
)
async def test_a_loop_without_end_runs_until_it_is_stopped_unless_it_waits_for_others(
    script: str, run: PredictedRun | None
) -> None:
    assert await course("sh", "-c", script) == run


@cases(
    (["sleep", "5"], (5, 0)),
    (["/bin/sleep", "2m"], (120, 0)),
    (["/bin/false"], (0, 1)),
    (["true"], (0, 0)),
    (["nginx", "-g", "daemon off;"], None),
    (["echo", "a; exit 1"], None),
    (["/bin/sh", "-ec", "echo hi; sleep 1.5"], (1.5, 0)),
    (["bash", "-c", "sleep 1 && sleep 2; exit 300"], (3, 44)),
)
async def test_a_program_is_no_script(command: list[str], run: tuple[float, int] | None) -> None:
    assert await course(*command) == run


async def test_what_a_run_wrote_into_a_volume_is_there_in_the_next() -> None:
    volume = Volume()
    script = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi"
    assert await course("sh", "-c", script, volume=volume) == (0, 1)
    assert await course("sh", "-c", script, volume=volume) == (0, 0)
