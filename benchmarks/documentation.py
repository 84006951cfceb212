"""The figures in docs/performance.md: made from results, put between markers, so that nobody copies numbers by hand.

Text outside the markers is written by people and stays. The plots and the results themselves are beside the page, in
docs/performance.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import plots, report
from benchmarks.results import Profile, Results

PAGE = "performance.md"
FOLDER = "performance"
RESULTS = "results.json"
PROFILE = "profile.svg"
_MARKED = re.compile(r"(<!-- (?P<name>[a-z]+): made by [^\n]* -->\n).*?(<!-- end -->)", re.DOTALL)


class NoMarkers(ValueError):
    """A page without a place for what is to be put in."""


def refresh(docs: Path, results: Results, flame: str = "") -> list[Path]:
    """What was written. Without a flame graph the one that is there stays."""
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    written = [folder / RESULTS]
    results.write(written[0])
    for name, drawing in drawings(results).items():
        written.append(folder / name)
        written[-1].write_text(drawing)
    if flame:
        written.append(folder / PROFILE)
        written[-1].write_text(flame)
    page = docs / PAGE
    page.write_text(filled(page.read_text(), sections(results)))
    return [*written, page]


def profile_shown(docs: Path) -> Profile | None:
    """The profile that the page has now."""
    shown = docs / FOLDER / RESULTS
    return Results.read(shown).profile if shown.exists() else None


def drawings(results: Results) -> dict[str, str]:
    """The plots by file name."""
    found = {f"{result.name}.svg": plots.growth(result) for result in results.scenarios}
    return {name: drawing for name, drawing in found.items() if drawing}


def filled(page: str, sections: dict[str, str]) -> str:
    """The page with these sections between their markers."""
    missing = set(sections) - {found["name"] for found in _MARKED.finditer(page)}
    if missing:
        raise NoMarkers(f"the page has no place for: {', '.join(sorted(missing))}")

    def put(found: re.Match[str]) -> str:
        text = sections.get(found["name"])
        return found[0] if text is None else f"{found[1]}\n{text}\n\n{found[3]}"

    return _MARKED.sub(put, page)


def sections(results: Results) -> dict[str, str]:
    drawn = drawings(results)
    figures = [
        f"Taken {results.taken[:10]} in {results.seconds / 60:.0f} minutes on {report.described(results.machine)}."
    ]
    if results.speed is not None:
        speeds = f"{report.number(results.speed.median)} rounds/s, {report.spread(results.speed)}"
        figures.append(f"The machine's speed during the run: {speeds}.")
    figures += [f"**{warning}**" for warning in results.machine.warnings]
    for result in results.scenarios:
        figures += [f"### {result.title}", f"`python -m benchmarks {result.name}`", report.markdown(result)]
        if f"{result.name}.svg" in drawn:
            figures.append(f"![{result.title}: growth]({FOLDER}/{result.name}.svg)")
    found = {"figures": "\n\n".join(figures)}
    if results.profile is not None:
        profile = results.profile
        intro = f"{profile.samples:,} samples while {profile.size:,} were on their way ({profile.scenario})."
        found["profile"] = "\n\n".join(
            [intro, report.profile_markdown(profile), f"![Where the samples were]({FOLDER}/{PROFILE})"]
        )
    return found
