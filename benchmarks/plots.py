"""Plots as SVG, written here: a few lines and labels do not need a library.

`growth` draws costs against sizes on logarithmic scales, where a power law is a straight line whose slope is the
exponent; the points have whiskers from the least to the greatest repeat. `flame` draws where the samples of a profile
were: a box is a function, its width the share of the samples that were in it or in what it called, which is below it.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from xml.sax.saxutils import escape

from benchmarks.results import Results, ScenarioResult

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 110
_COLOURS = ("#1b6ca8", "#c8553d", "#4b8b3b", "#8458b3", "#b8860b", "#2a9d8f", "#6b705c", "#d1495b")
_FONT = 'font-family="Helvetica, Arial, sans-serif"'
_FLAME_WIDTH = 1_100
_ROW = 16
_NARROWEST = 0.002
"""Boxes below this share of the samples are left out."""
_TEXT_WIDTH = 6.2
"""Of a letter, about."""


class Scale:
    """A logarithmic scale from numbers to places."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        spare = max((high - low) * 0.05, 0.02)
        self._low, self._high = low - spare, high + spare
        self._first, self._last = first, last

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)

    def ticks(self) -> list[float]:
        """Powers of ten; steps between them where there would be fewer than two."""
        for steps in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
            powers = range(math.floor(self._low), math.ceil(self._high) + 1)
            found = [step * 10.0**power for power in powers for step in steps]
            inside = [value for value in found if self._low <= math.log10(value) <= self._high]
            if len(inside) >= 3:
                return inside
        return inside


def drawings(results: Results) -> dict[str, str]:
    """The growth of every scenario, by file name."""
    found = {f"{result.name}.svg": growth(result) for result in results.scenarios}
    return {name: drawing for name, drawing in found.items() if drawing}


def growth(result: ScenarioResult) -> str:
    """Empty where there is nothing to draw: at least two sizes with a cost."""
    costs = {name: _points(result, name) for name in result.growth}
    if not costs:
        return ""
    values = [value for points in costs.values() for _, *spread in points for value in spread]
    x = Scale([size.size for size in result.sizes], _LEFT, _WIDTH - _RIGHT)
    y = Scale(values, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_axes(x, y, result.counted)]
    for number, (name, points) in enumerate(costs.items()):
        colour, fit = _COLOURS[number % len(_COLOURS)], result.growth[name]
        ends = [(size, fit.at(size)) for size in (points[0][0], points[-1][0])]
        parts.append(_line([(x(size), y(cost)) for size, cost in ends], colour, dashed=True))
        for size, least, middle, most in points:
            parts.append(_line([(x(size), y(least)), (x(size), y(most))], colour))
            parts.append(f'<circle cx="{x(size):.1f}" cy="{y(middle):.1f}" r="4" fill="{colour}"/>')
        row, column = divmod(number, 2)
        left, top = _LEFT + column * 320, _HEIGHT - 62 + row * 15
        parts.append(f'<circle cx="{left}" cy="{top - 4}" r="4" fill="{colour}"/>')
        parts.append(_text(left + 10, top, f"{name} ~ size^{fit.exponent:.2f}", size=11))
    height = _HEIGHT + max(0, (len(costs) + 1) // 2 - 4) * 15
    return _document(_WIDTH, height, f"{result.name}: {result.title}", parts)


def _points(result: ScenarioResult, name: str) -> list[tuple[float, float, float, float]]:
    """Size, least, median, greatest; only what a logarithm can be taken of."""
    found = ((size.size, size.costs[name]) for size in result.sizes if name in size.costs)
    return [(size, cost.min, cost.median, cost.max) for size, cost in found if cost.min > 0]


def _axes(x: Scale, y: Scale, counted: str) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for value in x.ticks():
        yield _line([(x(value), _TOP), (x(value), bottom)], "#ddd")
        yield _text(x(value), bottom + 16, _short(value), anchor="middle", size=11)
    for value in y.ticks():
        yield _line([(_LEFT, y(value)), (_WIDTH - _RIGHT, y(value))], "#ddd")
        yield _text(_LEFT - 6, y(value) + 4, _short(value), anchor="end", size=11)
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 32, counted, anchor="middle", size=12)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def flame(stacks: Mapping[tuple[str, ...], int], title: str) -> str:
    """Of samples by stack, outermost function first. What all stacks begin with is left out."""
    total = sum(stacks.values())
    boxes = list(_boxes(_without_common(stacks), total)) if total else []
    depth = max((row for row, *_ in boxes), default=0) + 1
    parts = []
    for row, start, share, name in boxes:
        left, width = start * (_FLAME_WIDTH - 20) + 10, share * (_FLAME_WIDTH - 20)
        top = _TOP + row * _ROW
        letters = int((width - 6) / _TEXT_WIDTH)
        function = name.rpartition(":")[2]
        label = function if len(function) <= letters else f"{function[: letters - 1]}…" if letters > 3 else ""
        parts.append(
            f'<g><title>{escape(name)}: {share:.1%}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" '
            f'height="{_ROW - 1}" fill="{_warm(name)}"/>'
            + (_text(left + 3, top + 11, label, size=10) if label else "")
            + "</g>"
        )
    return _document(_FLAME_WIDTH, _TOP + depth * _ROW + 10, title, parts)


def _without_common(stacks: Mapping[tuple[str, ...], int]) -> Mapping[tuple[str, ...], int]:
    """Stacks from where they part; one that ends there is its last function."""
    together = takewhile(lambda frames: len(set(frames)) == 1, zip(*stacks, strict=False))
    common = sum(1 for _ in together)
    found: Counter[tuple[str, ...]] = Counter()
    for stack, count in stacks.items():
        found[stack[common:] or stack[-1:]] += count
    return found


def _boxes(stacks: Mapping[tuple[str, ...], int], total: int) -> Iterator[tuple[int, float, float, str]]:
    """Row, where it starts, how wide, whose; the widest first in each row."""
    waiting: list[tuple[int, float, list[tuple[tuple[str, ...], int]]]] = [(0, 0.0, list(stacks.items()))]
    while waiting:
        row, start, group = waiting.pop()
        callees: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for stack, count in group:
            if len(stack) > row:
                callees.setdefault(stack[row], []).append((stack, count))
        weights = {name: sum(count for _, count in found) / total for name, found in callees.items()}
        for name in sorted(callees, key=lambda name: -weights[name]):
            if weights[name] >= _NARROWEST:
                yield row, start, weights[name], name
                waiting.append((row + 1, start, callees[name]))
            start += weights[name]


def _warm(name: str) -> str:
    """The same colour for the same package wherever it is; its name shows when the mouse is there."""
    code = zlib.crc32(name.rsplit(":", 1)[0].encode())
    return f"hsl({20 + code % 40}, {60 + code // 40 % 30}%, {62 + code // 1200 % 18}%)"


def _line(points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"{style}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {_FONT}>{escape(text)}</text>'


def _document(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, _text(10, 22, title, size=14), *parts, "</svg>", ""])
