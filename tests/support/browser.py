"""A real browser on the dashboard: Debian's Chromium, driven by Playwright's blocking API.

A test gets a `Tab` and says what should be seen; whatever the browser complains about meanwhile (console errors,
requests that fail, exceptions in scripts) fails it at the end. Waiting is Playwright's (`expect`, `wait_for`): it needs
this thread, in which `asyncio.run` does not work while a browser is open.

With KARMADA_SCREENSHOTS=folder, `Tab.shot` writes what the tab shows there; those in docs/images are made so.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
"""As distributions call it."""
WIDE, NARROW = 1280, 390
LIMIT_MS: Final = 30_000
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_TOO_WIDE: Final = """() => [...document.querySelectorAll(".scroll:not(.sideways)")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.trim().slice(0, 80))"""
_HINDRANCES: Final = (Path(__file__).parent / "readability.js").read_text().partition("\n")[2]
Scheme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """One for all tests of a worker; each opens tabs with cookies and storage of their own."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail("chromium is not installed; the tests of the dashboard need it (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS), chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of the dashboard at `url`, and what went wrong in it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.problems: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("console", lambda message: self._complain(message.type, message.text, message.location.get("url", "")))
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("requestfailed", lambda request: self._request_failed(request.url, request.failure or ""))

    def _complain(self, kind: str, text: str, where: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(f"console {kind}: {text} ({where})")

    def _request_failed(self, url: str, failure: str) -> None:
        if "ERR_ABORTED" in failure:
            return  # of a page that was left
        self.problems.append(f"request failed: {url}: {failure}")

    def expect_problem(self, pattern: str) -> None:
        """Something that the browser is right to complain about in this test."""
        self._expected.append(re.compile(pattern))

    def check(self) -> None:
        """Nothing unexpected was complained about."""
        unexpected = [one for one in self.problems if not any(known.search(one) for known in self._expected)]
        assert not unexpected, "\n".join(unexpected)

    # going somewhere

    def open(self, path: str) -> None:
        self.page.goto(self.url + path, wait_until="load")

    def log_in(self, token: str, path: str = "/") -> None:
        """By the form, as people do; then to the page."""
        self.open(f"/login?to={path}")
        self.page.fill("#token", token)
        self.page.locator("#token-form button[type=submit]").click()
        expect(self.page.locator("nav.side")).to_be_attached(timeout=LIMIT_MS)

    # looking

    def see(self, text: str | re.Pattern[str], within: str = "main") -> Locator:
        """Wait until this text is visible in a part of the page."""
        found = self.page.locator(within).get_by_text(text).first
        expect(found).to_be_visible(timeout=LIMIT_MS)
        return found

    def gone(self, selector: str) -> None:
        """Wait until nothing matches."""
        expect(self.page.locator(selector)).to_have_count(0, timeout=LIMIT_MS)

    def is_live(self) -> None:
        expect(self.page.locator("#live")).to_have_attribute("data-state", "on", timeout=LIMIT_MS)

    def is_readable(self) -> None:
        """Nothing sticks out to the right: the page itself never scrolls sideways, and on a narrow screen no table.
        Texts have contrast, and whatever can be used has a name."""
        sizes = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert sizes[0] <= sizes[1], f"the page is {sizes[0]} pixels wide, the window {sizes[1]}"
        if sizes[1] <= NARROW:
            wide = self.page.evaluate(_TOO_WIDE)
            assert not wide, f"tables that have to be moved sideways to be read: {wide}"
        hindrances = self.page.evaluate(_HINDRANCES)
        assert not hindrances, "\n".join(hindrances)

    def reach(self, selector: str, most: int = 60) -> None:
        """Move the focus there with the Tab key alone, and see where it is."""
        self.page.locator("body").press("Home")
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus on {selector} cannot be seen"
                return
        raise AssertionError(f"{selector} is not reached with {most} Tabs")

    def shot(self, name: str, *, whole: bool = False) -> None:
        """What is seen now, as NAME.png, if screenshots are wanted."""
        folder = os.environ.get("KARMADA_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=whole, animations="disabled")


@contextmanager
def tab(
    browser: Browser,
    url: str,
    *,
    width: int = WIDE,
    height: int = 800,
    scheme: Scheme = "light",
    certificate: tuple[bytes, bytes] | None = None,
) -> Iterator[Tab]:
    """A tab with cookies of its own, and a client certificate with its key if one is given; at the end nothing
    unexpected was complained about."""
    presented: Any = [{"origin": url, "cert": certificate[0], "key": certificate[1]}] if certificate else None
    context = browser.new_context(
        ignore_https_errors=True,
        client_certificates=presented,
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    try:
        opened = Tab(context.new_page(), url)
        yield opened
        opened.check()
    finally:
        context.close()
