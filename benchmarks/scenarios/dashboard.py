"""The dashboard in a real browser: when a page is painted, and what an open one costs the control plane at rest.

Debian's Chromium opens each page several times, with its cache, as a viewer who clicks around has it; what counts is
the first contentful paint since the navigation. Then pages stay open while nothing happens; their cost is what the
control plane uses beyond what it used before, when none was open.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import objects
from benchmarks.planes import (
    Plane,
    bare_members,
    connected,
    join_all,
    plane_config,
    started_members,
    started_plane,
    until_ready,
)
from benchmarks.processes import CLIENT, CONTROL_PLANE, Meter, at_rest, until_at_rest
from benchmarks.propagating import space
from benchmarks.scenario import Figure, Measurement, Place, Sizes, Skipped

if TYPE_CHECKING:
    from playwright.async_api import Page

_TIMES: Final = 5
_REST_SECONDS: Final = 10.0
"""One round of health checks."""
_OPEN_PAGES: Final = 5
_FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_PAINTED: Final = """() => new Promise((done) => {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByName("first-contentful-paint")) done(entry.startTime);
  }).observe({ type: "paint", buffered: true });
})"""
_FIRST, _WORKLOAD, _OPEN = "the fleet is painted in", "a workload is painted in", "an open page uses"


class Dashboard:
    name = "dashboard"
    title = "The dashboard of a control plane with 10 clusters"
    counted = "workloads"
    sizes = Sizes(quick=50, base=300)
    foreign = False
    clusters = 10
    figures: tuple[Figure, ...] = (
        Figure(name=_FIRST, unit="ms"),
        Figure(name=_WORKLOAD, unit="ms"),
        Figure(name=_OPEN, unit="% of a core"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        chromium = shutil.which("chromium")
        if chromium is None:
            raise Skipped("chromium is not installed")
        async with _plane(place, self.clusters) as (plane, url):
            place.progress("placing workloads")
            some = Plane(plane.control, plane.members[:1], plane.pids, ours=True)
            async with space(some, objects.DEPLOYMENTS) as room:
                await room.make(size)
                await room.until_there(size)
                pids = [plane.pids[CONTROL_PLANE]]
                await until_at_rest(pids, above=0.1)
                meter = Meter(plane.pids)
                workload = f"/workloads/apps/v1/deployments/{room.namespace}/{objects.numbered(0)}"
                figures = await _measured(place, Path(chromium), url, workload, pids)
                return Measurement(figures=figures, processes=meter.use())


class Large(Dashboard):
    """By name only: a hundred clusters take their time to join, and ten thousand workloads to be placed."""

    name = "dashboard.large"
    title = "The dashboard of a control plane with 100 clusters"
    sizes = Sizes(quick=10_000, base=1_000)
    clusters = 100
    figures = (
        Figure(name=_FIRST, unit="ms", goals={10_000: 300}),
        Figure(name=_WORKLOAD, unit="ms", goals={10_000: 500}),
        Figure(name=_OPEN, unit="% of a core", goals={10_000: 2}),
    )


@asynccontextmanager
async def _plane(place: Place, clusters: int) -> AsyncIterator[tuple[Plane, str]]:
    with (
        started_members(place.folder, clusters) as others,
        started_plane(place, "--dashboard", "--dashboard-port", "0") as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        found = re.search(r"https://\S+", process.stdout.readline())
        assert found is not None, "the address of the dashboard is not printed"
        pids = {CONTROL_PLANE: process.pid, "members": others.pid, CLIENT: os.getpid()}
        async with connected(plane_config(place.folder)) as control, bare_members(place.folder, clusters) as members:
            await join_all(control, members)
            await until_ready(control, [member.name for member in members])
            yield Plane(control, members, pids, ours=True), found[0]


async def _measured(place: Place, chromium: Path, url: str, workload: str, pids: Sequence[int]) -> dict[str, float]:
    from playwright.async_api import async_playwright

    kubeconfig = place.folder / "plane" / "admin.kubeconfig"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=str(chromium), args=list(_FLAGS), chromium_sandbox=False
        )
        context = await browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
        page = await context.new_page()
        await _log_in(page, url, kubeconfig)
        place.progress("opening pages")
        figures = {
            _FIRST: await _painted(page, url + "/", pids),
            _WORKLOAD: await _painted(page, url + workload, pids),
        }
        await page.goto("about:blank")
        place.progress("looking at open pages")
        await until_at_rest(pids, above=0.1)
        before = await at_rest(pids, _REST_SECONDS)
        for _ in range(_OPEN_PAGES):
            tab = await context.new_page()
            await tab.goto(url + "/")
        await until_at_rest(pids, above=0.1)
        used = (await at_rest(pids, _REST_SECONDS) - before) / _OPEN_PAGES
        await browser.close()
    return {**figures, _OPEN: max(0.0, used) * 100}


async def _log_in(page: Page, url: str, kubeconfig: Path) -> None:
    await page.goto(url + "/login")
    await page.click("#tab-kubeconfig")
    await page.set_input_files("#file", str(kubeconfig))
    await page.click("#kubeconfig-form button[type=submit]")
    await page.wait_for_selector("nav.side")


async def _painted(page: Page, url: str, pids: Sequence[int]) -> float:
    """The median of several, each once what the one before had requested is done; the first fills the cache."""
    times = []
    for _ in range(_TIMES + 1):
        await page.goto("about:blank")
        await until_at_rest(pids, above=0.1, seconds=5.0)
        await page.goto(url, wait_until="load")
        times.append(float(await page.evaluate(_PAINTED)))
    return statistics.median(times[1:])
