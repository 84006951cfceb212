from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger, setup


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_text_line_looks_like_those_of_kubernetes() -> None:
    out = io.StringIO()
    setup(stream=out)
    get_logger("x").bind(controller="binding").info(
        'Work "created"', work=Key("ns", "w"), count=3, ok=True, data={"a": 1}
    )
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logging\.py:\d+\] "
        r'"Work \\"created\\"" controller="binding" work="ns/w" count=3 ok=true data=\{"a":1\}\n',
        out.getvalue(),
    )


def test_a_json_line_is_one_object_with_its_caller() -> None:
    out = io.StringIO()
    setup(stream=out, format="json", verbosity=4)
    get_logger("x").v(4).info("hello", key="v")
    line = json.loads(out.getvalue())
    assert (line["msg"], line["v"], line["key"], line["level"]) == ("hello", 4, "v", "info")
    assert line["caller"].startswith("test_logging.py:")


def test_details_are_silent_below_their_verbosity() -> None:
    out = io.StringIO()
    setup(stream=out, verbosity=2)
    log = get_logger("x")
    log.v(3).info("too much")
    log.v(2).info("enough")
    assert "too much" not in out.getvalue()
    assert "enough" in out.getvalue()
    assert log.v(2).enabled
    assert not log.v(3).enabled


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_unexpected_error_comes_with_its_traceback(style: str) -> None:
    out = io.StringIO()
    setup(stream=out, format=style)
    try:
        raise RuntimeError("broken")
    except RuntimeError as error:
        get_logger("x").exception("Failed", error, key="a")
    assert "Traceback" in out.getvalue()
    assert "RuntimeError('broken')" in out.getvalue()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown log format 'xml'"):
        setup(format="xml")
