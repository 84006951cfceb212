from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, BadRequest, Invalid
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.handlers.pod_logs import LogOptions, chosen_container
from karmada.kube.server.http.request import Query
from karmada.kube.sim.kubelet.logs import (
    INTERVAL,
    RETAINED,
    Output,
    followed,
    history,
    output_of,
    stamp,
)
from tests.support.cases import cases

START = 1_700_000_000
NANO = 10**9


def output(**parts: Any) -> Output:
    return Output(**{"pod": "p", "container": "c", "run": "u/c/1", "started": START * NANO, "ended": None, **parts})


def lines(made: Output, seconds: float, **options: Any) -> list[str]:
    return b"".join(history(made, LogOptions(**options), START + seconds)).decode().splitlines()


def test_a_line_is_there_from_the_start_and_one_more_every_interval() -> None:
    assert lines(output(), 0) == ["2023-11-14T22:13:20.000000000Z p/c line 1"]
    assert [line.split(" ", 1)[1] for line in lines(output(), 2 * INTERVAL + 1)] == [
        "p/c line 1",
        "p/c line 2",
        "p/c line 3",
    ]


def test_the_same_line_is_the_same_whenever_it_is_read() -> None:
    assert lines(output(), 500)[:10] == lines(output(), 1000)[:10]


def test_timestamps_stand_in_front() -> None:
    [line] = lines(output(), 0, timestamps=True)
    assert line == "2023-11-14T22:13:20.000000000Z 2023-11-14T22:13:20.000000000Z p/c line 1"


def test_an_ended_container_says_no_more() -> None:
    assert lines(output(ended=(START + 7) * NANO), 1000) == lines(output(), 7)


def test_the_tail_of_a_long_log_is_its_last_lines_and_old_ones_are_gone() -> None:
    year = 365 * 86400 + 1
    assert [line.rsplit(" ", 1)[1] for line in lines(output(), year, tail=2)] == ["6307200", "6307201"]
    assert len(lines(output(), year)) == RETAINED
    assert lines(output(), year, tail=0) == []


def test_since_leaves_out_what_is_older() -> None:
    made = output()
    every = lines(made, 100)
    third = made.moment(3) / NANO
    assert lines(made, 100, since=third) == every[3:]
    assert lines(made, 100, since=START + 1000.0) == []
    assert lines(made, 100, since=0.0) == every


def test_limit_cuts_at_a_byte() -> None:
    assert b"".join(history(output(), LogOptions(limit=10), START + 100)) == b"2023-11-14"


def test_configured_text_is_the_whole_log_and_stderr_is_empty() -> None:
    made = output(lines=("one", "two"))
    assert lines(made, 0) == ["one", "two"]
    assert lines(made, 500, tail=1) == ["two"]
    assert lines(made, 500, stream="Stderr") == []


@given(st.integers(0, 10**6), st.integers(0, 50), st.floats(0, 10**6))
def test_a_tail_is_the_end_of_the_whole(seconds: int, tail: int, since: float) -> None:
    made = output()
    options = LogOptions(since=START + since)
    whole = list(history(made, options, START + seconds))
    assert list(history(made, options._replace(tail=tail), START + seconds)) == (whole[-tail:] if tail else [])
    assert made.written((START + seconds) * NANO) in (seconds // INTERVAL, seconds // INTERVAL + 1)


def test_stamps_have_nine_digits() -> None:
    assert stamp(START * NANO + 5) == "2023-11-14T22:13:20.000000005Z"


# --- following


async def test_following_sends_each_line_when_it_is_written_and_stops_at_the_end() -> None:
    clock = FakeClock(START + 1.0)
    made = output()
    waits: list[float] = []

    async def until(seconds: float) -> int | None:
        waits.append(seconds)
        if len(waits) == 3:
            await clock.advance(2)
            return int(clock.now() * NANO)
        await clock.advance(seconds)
        return None

    got = [piece.decode().split()[-1] async for piece in followed(made, LogOptions(follow=True), clock, until)]
    assert got == ["1", "2", "3"]
    assert waits[0] == pytest.approx(made.moment(1) / NANO - START - 1, abs=1e-5)


async def test_following_can_begin_at_the_end_and_obeys_the_limit() -> None:
    clock = FakeClock(START + 100.0)

    async def until(seconds: float) -> int | None:
        await clock.advance(seconds)
        return None

    options = LogOptions(follow=True, tail=0, limit=30)
    got = b"".join([piece async for piece in followed(output(), options, clock, until)])
    assert got.startswith(b"2023-11-14T22:15:")
    assert len(got) == 30


# --- options


def parsed(**query: str) -> LogOptions:
    return LogOptions.parse(Query.of(query), "p", START)


def test_options_are_read_from_the_query() -> None:
    options = parsed(follow="true", previous="1", timestamps="true", tailLines="5", limitBytes="100", sinceSeconds="60")
    assert options == LogOptions(True, True, True, START - 60, 5, 100)
    assert parsed(sinceTime="2023-11-14T22:13:20Z").since == START
    assert parsed() == LogOptions()


@cases(
    ({"tailLines": "-1"}, Invalid, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
    ({"limitBytes": "0"}, Invalid, "limitBytes: Invalid value: 0: must be greater than 0"),
    ({"sinceSeconds": "0"}, Invalid, "sinceSeconds: Invalid value: 0: must be greater than 0"),
    ({"sinceSeconds": "5", "sinceTime": "2023-11-14T22:13:20Z"}, Invalid, "at most one of `sinceTime`"),
    ({"stream": "Both"}, Invalid, 'stream: Unsupported value: "Both"'),
    ({"tailLines": "many"}, BadRequest, 'parsing "many": invalid syntax'),
    ({"sinceTime": "yesterday"}, BadRequest, "cannot parse"),
)
def test_bad_options_are_refused(query: dict[str, str], error: type[ApiError], text: str) -> None:
    with pytest.raises(error) as refused:
        LogOptions.parse(Query.of(query), "p", START)
    assert text in refused.value.message


# --- containers


def pod(status: Obj | None = None, *, names: tuple[str, ...] = ("c",), init: tuple[str, ...] = ()) -> Obj:
    spec: Obj = {"containers": [{"name": name} for name in names]}
    if init:
        spec["initContainers"] = [{"name": name} for name in init]
    statuses = [{"name": names[0], **status}] if status is not None else []
    return {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": {"containerStatuses": statuses}}


def test_the_only_container_need_not_be_named_others_must() -> None:
    assert chosen_container(pod(), "")["name"] == "c"
    assert chosen_container(pod(names=("a", "b"), init=("i",)), "i")["name"] == "i"
    with pytest.raises(BadRequest) as refused:
        chosen_container(pod(names=("a", "b")), "")
    assert refused.value.message == "a container name must be specified for pod p, choose one of: [a b]"
    with pytest.raises(BadRequest) as refused:
        chosen_container(pod(names=("a", "b"), init=("i", "j")), "")
    assert refused.value.message.endswith("choose one of: [a b] or one of the init containers: [i j]")
    with pytest.raises(BadRequest, match=r"^container x is not valid for pod p$"):
        chosen_container(pod(), "x")


EARLIER = {"terminated": {"startedAt": rfc3339(START - 50), "finishedAt": rfc3339(START - 40), "exitCode": 1}}


@cases(
    ({"state": {"running": {"startedAt": rfc3339(START)}}}, False, START, None),
    ({"state": {"running": {"startedAt": rfc3339(START)}}, "lastState": EARLIER}, True, START - 50, START - 40),
    ({"state": EARLIER}, False, START - 50, START - 40),
    ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": EARLIER}, False, START - 50, START - 40),
)
def test_the_run_that_is_meant(status: Obj, previous: bool, started: int, ended: int | None) -> None:
    made = output_of(pod(status), "c", None, previous=previous)
    assert made.started == started * NANO
    assert made.ended == (ended * NANO if ended is not None else None)


@cases(
    (None, False, 'container "c" in pod "p" is waiting to start: ContainerCreating'),
    ({"state": {"waiting": {"reason": "PodInitializing"}}}, False, "is waiting to start: PodInitializing"),
    ({"state": {"waiting": {"reason": "ImagePullBackOff"}}}, False, "trying and failing to pull image"),
    ({"state": {"waiting": {"reason": "ErrImagePull"}}}, False, "image can't be pulled"),
    ({"state": {"running": {}}}, True, 'previous terminated container "c" in pod "p" not found'),
)
def test_a_container_without_a_log_says_why(status: Obj | None, previous: bool, text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        output_of(pod(status), "c", None, previous=previous)
    assert text in refused.value.message
