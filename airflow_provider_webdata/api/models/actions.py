# SPDX-License-Identifier: Apache-2.0
"""Browser actions on a page, before its content is extracted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import Integer, Number, String, Switch, Text, one_of
from airflow_provider_webdata.api.models.formats import Viewport


class WaitAction(RequestModel):
    """Waits for a time or for an element; exactly one is required.

    :param milliseconds: at least 1.
    :param selector: CSS selector of the element to wait for.
    """

    type: Literal["wait"] = "wait"
    milliseconds: Annotated[Integer, Field(ge=1)] | None = None
    selector: Text | None = None

    def _check(self) -> None:
        if (self.milliseconds is None) == (self.selector is None):
            raise problem("wait", "a wait action requires exactly one of 'milliseconds' and 'selector'")


class ScreenshotAction(RequestModel):
    """Takes a screenshot; the response has its URL in `actions.screenshots`.

    :param full_page: capture the whole page. Service default: false.
    :param quality: 1 to 100.
    :param viewport: window size.
    """

    type: Literal["screenshot"] = "screenshot"
    full_page: Switch | None = None
    quality: Annotated[Integer, Field(ge=1, le=100)] | None = None
    viewport: Viewport | None = None


class ClickAction(RequestModel):
    """Clicks an element.

    :param selector: CSS selector, required.
    :param all: click all matches, and succeed without a match. Service default: false.
    """

    type: Literal["click"] = "click"
    selector: Text
    all: Switch | None = None


class WriteAction(RequestModel):
    """Types into the focused field; focus it with a click action first.

    :param text: text to type. It may be a password, so reprs omit it.
    """

    type: Literal["write"] = "write"
    text: String = Field(repr=False)


class PressAction(RequestModel):
    """Presses a key.

    :param key: name of the key, such as `Enter`.
    """

    type: Literal["press"] = "press"
    key: Annotated[String, Field(min_length=1)]


class ScrollAction(RequestModel):
    """Scrolls the page or an element.

    :param direction: `up` or `down`. Service default: down.
    :param selector: CSS selector of the element to scroll.
    """

    type: Literal["scroll"] = "scroll"
    direction: Literal["up", "down"] | None = None
    selector: Text | None = None


class ScrapeAction(RequestModel):
    """Captures the URL and HTML of the page in its current state."""

    type: Literal["scrape"] = "scrape"


class ExecuteJavascriptAction(RequestModel):
    """Runs a script on the page.

    :param script: JavaScript, required.
    """

    type: Literal["executeJavascript"] = "executeJavascript"
    script: Text


class PdfAction(RequestModel):
    """Prints the page; the response has the PDF in `actions.pdfs`.

    :param format: paper size. Service default: Letter.
    :param landscape: service default: false.
    :param scale: service default: 1.
    """

    type: Literal["pdf"] = "pdf"
    format: (
        Literal["A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"] | None
    ) = None
    landscape: Switch | None = None
    scale: Number | None = None


Action = Annotated[
    WaitAction
    | ScreenshotAction
    | ClickAction
    | WriteAction
    | PressAction
    | ScrollAction
    | ScrapeAction
    | ExecuteJavascriptAction
    | PdfAction,
    one_of("an action"),
]
