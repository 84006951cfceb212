"""Jinja's environment: autoescaping everywhere, an undefined name is an error, and the filters of formatting.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from karmada.dashboard import formatting
from karmada.dashboard.assets import Assets


def environment(assets: Assets) -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "age": formatting.age,
        "duration": formatting.duration,
        "cores": formatting.cores,
        "size": formatting.size,
        "number": formatting.number,
        "yaml": formatting.as_yaml,
    }
    made.globals |= {"asset": assets.url, "percent": formatting.percent, "live": live}
    return made


def live(url: str, topics: Sequence[str]) -> Markup:
    """Return the attributes of an element that is requested again from `url` when a topic changes (see live.py).

    What is there is morphed into the new content: focus, open details and typed text stay.
    """
    joined = " ".join(topics)
    return Markup(
        'hx-get="{}" hx-trigger="live" hx-ext="morph" hx-swap="morph:innerHTML show:none" data-live="{}"'
    ).format(escape(url), escape(joined))
