"""The figures in docs/performance.md: a summary of results between markers, so that nobody copies numbers by hand.

Text outside the markers is written by people and stays. The page shows one table and one plot; the results themselves
stay in build/benchmarks.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import plots, report
from benchmarks.results import Results

PAGE = "performance.md"
PLOT = "performance.svg"
PLOTTED = "propagation.deployments"
"""The scenario whose growth is drawn."""
_MARKED = re.compile(r"(<!-- (?P<name>[a-z]+): made by [^\n]* -->\n).*?(<!-- end -->)", re.DOTALL)


class NoMarkers(ValueError):
    """A page without a place for what is to be put in."""


def refresh(docs: Path, results: Results) -> list[Path]:
    """Update the page and the plot beside it; return what was written."""
    page, plot = docs / PAGE, docs / PLOT
    page.write_text(filled(page.read_text(), {"figures": figures(results)}))
    plotted = results.scenario(PLOTTED)
    if plotted is None or not (drawing := plots.growth(plotted)):
        return [page]
    plot.write_text(drawing)
    return [page, plot]


def filled(page: str, sections: dict[str, str]) -> str:
    """The page with these sections between their markers."""
    missing = set(sections) - {found["name"] for found in _MARKED.finditer(page)}
    if missing:
        raise NoMarkers(f"the page has no place for: {', '.join(sorted(missing))}")

    def put(found: re.Match[str]) -> str:
        text = sections.get(found["name"])
        return found[0] if text is None else f"{found[1]}\n{text}\n\n{found[3]}"

    return _MARKED.sub(put, page)


def figures(results: Results) -> str:
    taken = f"Taken {results.taken[:10]} in {results.seconds / 60:.0f} minutes on {report.described(results.machine)}."
    parts = [taken]
    if results.speed is not None:
        speeds = f"{report.number(results.speed.median)} rounds/s, {report.spread(results.speed)}"
        parts.append(f"The machine's speed during the run: {speeds}.")
    parts += [f"**{warning}**" for warning in results.machine.warnings]
    return "\n\n".join([*parts, report.summary(results)])
