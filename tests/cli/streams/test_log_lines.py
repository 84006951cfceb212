"""Log streams: the requests, and how the response becomes whole lines."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.cli.streams.log_streams import Lines, LogOptions, copy
from karmada.cli.targeting.connect import Failure
from tests.support.cases import cases


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_however_it_is_cut_the_same_lines_come_out(text: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    lines = Lines()
    found = [line for start, end in pairwise(places) for line in lines.feed(text[start:end])]
    rest = lines.end()
    assert found == [line for line in text.split(b"\n")[:-1] for line in [line + b"\n"]]
    assert b"".join(found) + rest == text
    assert lines.end() == b""


class Stream:
    """Stands in for a container's log."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    async def chunks(self, _options: LogOptions) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def copied(*chunks: bytes, prefix: bytes = b"", whole: bool = False) -> bytes:
    sink = io.BytesIO()
    stream: Any = Stream(*chunks)
    await copy(stream, LogOptions(follow=True), sink, prefix, whole=whole)
    return sink.getvalue()


async def test_every_line_has_the_prefix_once() -> None:
    assert await copied(b"one\nt", b"wo\n", prefix=b"[p] ") == b"[p] one\n[p] two\n"


async def test_a_last_line_gets_an_end_only_where_more_may_follow() -> None:
    assert await copied(b"one\ntwo") == b"one\ntwo"
    assert await copied(b"one\ntwo", prefix=b"- ", whole=True) == b"- one\n- two\n"
    assert await copied() == b""


@cases(
    (LogOptions(), {}),
    (LogOptions(follow=True, previous=True, timestamps=True), dict.fromkeys(("follow", "previous", "timestamps"))),
    (LogOptions(insecure_backend=True), {"insecureSkipTLSVerifyBackend": None}),
    (LogOptions(tail=0), {"tailLines": "0"}),
    (LogOptions(tail=-1), {}),
    (LogOptions(limit_bytes=7), {"limitBytes": "7"}),
    (LogOptions(since=90.5), {"sinceSeconds": "91"}),
    (LogOptions(since=0.4), {"sinceSeconds": "0"}),
    (LogOptions(since_time="2024-01-01T01:00:00.9+01:00"), {"sinceTime": "2024-01-01T00:00:00Z"}),
)
def test_which_requests_a_server_gets(options: LogOptions, query: dict[str, str | None]) -> None:
    options.check()
    wanted = {name: "true" if value is None else value for name, value in query.items()}
    assert options.query("c") == {"container": "c", **wanted}


@cases(
    (LogOptions(since=1, since_time="x"), "at most one of `sinceTime` or `sinceSeconds` may be specified"),
    (LogOptions(since=-1), "--since must be greater than 0"),
    (LogOptions(since_time="x"), 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    (
        LogOptions(all_containers=True, container="c"),
        "--all-containers=true should not be specified with container name c",
    ),
)
def test_what_no_server_would_understand(options: LogOptions, message: str) -> None:
    with pytest.raises(Failure) as caught:
        options.check()
    assert caught.value.message == f"error: {message}"
