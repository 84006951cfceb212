"""Plots: well-formed SVG with everything in it, inside its frame."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import plots
from tests.benchmarks.measurements import scenario_result

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def test_growth_is_drawn_with_points_exponent_and_scales() -> None:
    drawing = plots.growth(scenario_result())
    root = ElementTree.fromstring(drawing)
    assert len(list(root.iter(f"{SVG}circle"))) == 3 + 1  # one for each size, one in the legend
    assert "example: An example" in texts(drawing)
    assert "until done, s ~ size^1.00" in texts(drawing)
    assert {"100", "1,000", "things"} <= set(texts(drawing))


def test_everything_of_a_plot_is_inside_its_frame() -> None:
    root = ElementTree.fromstring(plots.growth(scenario_result()))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for circle in root.iter(f"{SVG}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height


def test_one_size_is_not_drawn() -> None:
    assert plots.growth(scenario_result(100)) == ""


def test_a_cost_that_was_nothing_once_is_drawn_without_that_size() -> None:
    found = scenario_result(100, 300, 1_000, repeats=(1.0,))
    first = found.sizes[0].costs["until done, s"]
    found.sizes[0].costs["until done, s"] = type(first).of([0.0])
    drawing = plots.growth(found)
    assert len(list(ElementTree.fromstring(drawing).iter(f"{SVG}circle"))) == 2 + 1


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=10))
def test_a_scale_keeps_the_order_and_has_ticks_inside(values: list[float]) -> None:
    scale = plots.Scale(values, 0.0, 100.0)
    placed = [scale(value) for value in sorted(values)]
    assert placed == sorted(placed)
    assert all(0 <= place <= 100 for place in placed)
    assert all(-0.01 <= scale(tick) <= 100.01 for tick in scale.ticks())


def test_a_flame_graph_has_a_box_as_wide_as_its_share() -> None:
    stacks = {("a:run", "b:one"): 60, ("a:run", "b:two"): 30, ("c:stop",): 10}
    root = ElementTree.fromstring(plots.flame(stacks, "Where it was"))
    widths = {
        (group.findtext(f"{SVG}title") or "").split(": ")[0]: float(rect.attrib["width"])
        for group in root.iter(f"{SVG}g")
        if (rect := group.find(f"{SVG}rect")) is not None
    }
    assert widths["b:one"] / widths["a:run"] == pytest.approx(60 / 90, rel=0.01)
    assert widths["b:two"] / widths["a:run"] == pytest.approx(30 / 90, rel=0.01)
    assert widths["c:stop"] / widths["a:run"] == pytest.approx(10 / 90, rel=0.01)


def test_what_all_stacks_begin_with_is_not_drawn() -> None:
    drawing = plots.flame({("main", "loop", "a"): 2, ("main", "loop", "b"): 1, ("main", "loop"): 1}, "x")
    titles = [found.text for found in ElementTree.fromstring(drawing).iter(f"{SVG}title")]
    assert titles == ["a: 50.0%", "b: 25.0%", "loop: 25.0%"]


def test_names_are_escaped_and_narrow_boxes_left_out() -> None:
    stacks: dict[tuple[str, ...], int] = {("x:<listcomp>",): 100_000, ("x:rare",): 1}
    drawing = plots.flame(stacks, "a & b")
    assert "&lt;listcomp&gt;" in drawing
    assert "rare" not in drawing
    assert "a & b" in texts(drawing)


def test_no_samples_are_an_empty_drawing() -> None:
    assert ElementTree.fromstring(plots.flame({}, "nothing")).tag == f"{SVG}svg"
