# SPDX-License-Identifier: Apache-2.0
"""A real browser, logged in to an Airflow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FrameLocator, Locator, Page, expect, sync_playwright

from tests.support.stack import Stack
from tests.support.waiting import PATIENCE

MILLISECONDS = PATIENCE * 1000
expect.set_options(timeout=MILLISECONDS)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
WIDTHS = (1440, 700, 390)
PICTURES = os.environ.get("WEBDATA_SCREENSHOTS")
"""Folder for the pictures in the docs (`make screenshot`); unset: no pictures are taken."""


def chromium() -> str:
    """The executable; fails the test if none is installed."""
    for candidate in (os.environ.get("CHROMIUM"), *map(shutil.which, NAMES)):
        if candidate:
            return candidate
    pytest.fail(
        "This test needs a Chromium: install one (on Debian: apt-get install chromium) so that it is on the "
        "PATH, or name its executable in the environment variable CHROMIUM."
    )


@contextmanager
def logged_in(stack: Stack) -> Iterator[Page]:
    """A page of Airflow's UI, of its list of connections."""
    user, password = stack.login
    with opened(stack.airflow_url) as page:
        page.goto("/connections")
        page.get_by_label("Username").fill(user)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Add Connection")).to_be_visible()
        yield page


@contextmanager
def opened(url: str, token: str = "") -> Iterator[Page]:
    """A page of a browser, whose paths are below `url`; with a token of the API server, it needs no login."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        # Without a graphics card, animations take a sixth of a processor.
        page = browser.new_page(
            viewport={"width": 1100, "height": 900},
            base_url=url,
            reduced_motion="reduce",
        )
        if token:
            page.context.add_cookies([{"name": "_token", "value": token, "url": url}])
        page.set_default_timeout(MILLISECONDS)
        yield page
        browser.close()


def faults(page: Page, path: str, status: int = 200) -> list[tuple[str, str, int, object]]:
    """What axe finds on a page of ours, and what is cut off, in each color scheme and width."""
    found: list[tuple[str, str, int, object]] = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        response = page.goto(path)
        assert response is not None
        assert response.status == status
        wait_for_parts(page)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        # As in Airflow's frame, which hides what Airflow shows above it.
        page.evaluate("document.documentElement.classList.add('framed')")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            found += [(path, scheme, width, one) for one in (*violations(page), *cut_off(page))]
    return found


def cut_off(page: Page) -> list[str]:
    """The parts of a page that are wider than their place, and the texts of charts that are outside of it."""
    found: list[str] = page.evaluate(
        """() => {
            const wide = (one) => one.scrollWidth > one.clientWidth;
            const parts = [...document.querySelectorAll(":root, main, .part, section")].filter(wide);
            const texts = [...document.querySelectorAll(".chart text")].filter((text) => {
                const [own, place] = [text, text.closest(".chart")].map((one) => one.getBoundingClientRect());
                return own.width && (own.right > place.right + 1 || own.left < place.left - 1);
            });
            return [...parts, ...texts].map((one) => `${one.tagName} ${one.textContent.trim().slice(0, 40)}`);
        }"""
    )
    return found


def violations(page: Page, within: str | None = None) -> list[tuple[str, list[str]]]:
    """What axe finds, of any impact: each rule with the elements that violate it.

    :param within: selector of the only part that is examined.
    """
    return [
        (violation["id"], [node["html"] for node in violation["nodes"]])
        for violation in Axe().run(page, within).response["violations"]
    ]


def wait_for_parts(where: Page | FrameLocator) -> None:
    """Wait until a page of ours has loaded all parts behind its frame."""
    expect(where.locator("main")).to_be_visible()
    expect(where.get_by_text("Loading…")).to_have_count(0)


def picture(part: Page | Locator, name: str) -> None:
    """Take a picture for the docs in light and in dark colors, `<name>.png` and `<name>-dark.png`, if requested."""
    if PICTURES:
        page = part if isinstance(part, Page) else part.page
        schemes: dict[Literal["dark", "light"], str] = {"dark": "-dark", "light": ""}
        for scheme, suffix in schemes.items():
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(500)
            save_small(part.screenshot(animations="disabled"), Path(PICTURES) / f"{name}{suffix}.png")


def save_small(png: bytes, path: Path) -> None:
    """Save a picture in 256 colors without dithering: a third of the size."""
    # Only in environments with Python 3.11 or newer.
    from PIL import Image

    shot = Image.open(BytesIO(png)).convert("RGB")
    shot.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
