# SPDX-License-Identifier: Apache-2.0
"""An interpreter for the few statements that a browser session of the sandbox supports.

No real code runs. Statements are separated by newlines or semicolons, and each must match a pattern of
:data:`STATEMENTS`. Any other statement fails the run: an error on stderr, and exit code 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webdata_sandbox.reference.urls import canonical

from . import html as markup
from .page import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml.html import HtmlElement

    from .web import Web

_STRING = r"""(?:"([^"\\\n]*)"|'([^'\\\n]*)')"""
_WORD = r"""(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"']+))"""
_NUMBER = r"(\d{1,6}(?:\.\d{1,3})?)"
_STATEMENT = re.compile(r"""(?:"[^"\n]*"|'[^'\n]*'|[^;\n])+""")
_COMMENTS = {"node": "//", "python": "#", "bash": "#"}

STATEMENTS: dict[str, dict[str, str]] = {
    "node": {
        "open": rf"await page\.goto\({_STRING}\)",
        "click": rf"await page\.click\({_STRING}\)",
        "print title": r"console\.log\(await page\.title\(\)\)",
        "print url": r"console\.log\(page\.url\(\)\)",
        "print html": r"console\.log\(await page\.content\(\)\)",
        "print text": rf"console\.log\(await page\.(?:textContent|innerText)\({_STRING}\)\)",
        "print kept": rf"console\.log\(await page\.evaluate\(\(\) => localStorage\.getItem\({_STRING}\)\)\)",
        "print": rf"console\.log\({_STRING}\)",
        "keep": rf"await page\.evaluate\(\(\) => localStorage\.setItem\({_STRING}, ?{_STRING}\)\)",
        "wait ms": rf"await page\.waitForTimeout\({_NUMBER}\)",
        "fail": rf"throw new Error\({_STRING}\)",
        "exit": r"process\.exit\((\d{1,3})\)",
    },
    "python": {
        "open": rf"(?:await )?page\.goto\({_STRING}\)",
        "click": rf"(?:await )?page\.click\({_STRING}\)",
        "print title": r"print\((?:await )?page\.title\(\)\)",
        "print url": r"print\(page\.url\)",
        "print html": r"print\((?:await )?page\.content\(\)\)",
        "print text": rf"print\((?:await )?page\.(?:text_content|inner_text)\({_STRING}\)\)",
        "print": rf"print\({_STRING}\)",
        "wait s": rf"(?:time|await asyncio)\.sleep\({_NUMBER}\)",
        "fail": rf"raise \w+\({_STRING}\)",
        "exit": r"sys\.exit\((\d{1,3})\)",
        "nothing": r"import (?:asyncio|sys|time)",
    },
    "bash": {
        "open": rf"agent-browser open {_WORD}",
        "click": rf"agent-browser click {_WORD}",
        "print title": r"agent-browser get title",
        "print url": r"agent-browser get url",
        "print html": r"agent-browser get html",
        "print text": rf"agent-browser get text {_WORD}",
        "print": r"""echo (?:"([^"\n]*)"|'([^'\n]*)'|([^"'$`|<>&\n]*))""",
        "wait s": rf"sleep {_NUMBER}",
        "exit": r"exit (\d{1,3})",
    },
}
"""The supported statements by language: meaning and regular expression."""


class CodeError(Exception):
    """The code failed; the text is the message of its exception."""


class _ExitError(Exception):
    """The code exited by itself."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Tab:
    """The state of a session's browser: the current URL, and the local storage."""

    url: str = "about:blank"
    kept: dict[str, str] = field(default_factory=dict)


class CodeRun:
    """One run of code, which updates the browser's tab."""

    def __init__(self, web: Web, tab: Tab) -> None:
        self._web, self._tab = web, tab
        self._printed: list[str] = []
        self.exit_code: int | None = None
        self.error: str | None = None

    @property
    def stdout(self) -> str:
        """The output printed so far."""
        return "".join(f"{line}\n" for line in self._printed)

    def run(self, code: str, language: str) -> Iterator[float]:
        """Run the code; yield the seconds of each wait in it."""
        try:
            for number, statement in _statements(code, language):
                yield from self._do(statement, language, number)
            self.exit_code = 0
        except _ExitError as end:
            self.exit_code = end.code
        except CodeError as failure:
            self.exit_code, self.error = 1, str(failure)

    def _do(self, statement: str, language: str, number: int) -> Iterator[float]:
        meaning, arguments = _parse(statement, language)
        if meaning is None:
            raise CodeError(f"line {number}: the sandbox runs no code and does not support this statement")
        if meaning.startswith("wait"):
            yield float(arguments[0]) / (1000 if meaning == "wait ms" else 1)
        elif meaning == "exit":
            raise _ExitError(int(arguments[0]))
        elif meaning == "fail":
            raise CodeError(arguments[0])
        elif meaning.startswith("print"):
            self._printed.append(self._value(meaning.removeprefix("print").strip(), arguments))
        elif meaning != "nothing":
            self._change(meaning, arguments)

    def _change(self, meaning: str, arguments: list[str]) -> None:
        if meaning == "keep":
            self._tab.kept[arguments[0]] = arguments[1]
            return
        address = arguments[0]
        if meaning == "click":
            href = self._element(arguments[0]).get("href")
            if not href:
                raise CodeError(f"the sandbox can only click links, and {arguments[0]} is not a link")
            address = markup.absolute(self._tab.url, href)
        self._tab.url = open_page(self._web, address).url

    def _value(self, what: str, arguments: list[str]) -> str:
        readers: dict[str, Callable[[], str]] = {
            "": lambda: arguments[0],
            "title": lambda: self._page().title,
            "url": lambda: self._tab.url,
            "html": lambda: self._page().html,
            "text": lambda: markup.text(self._element(arguments[0])),
            "kept": lambda: self._tab.kept.get(arguments[0], "null"),
        }
        return readers[what]()

    def _page(self) -> Page:
        return Page("about:blank") if self._tab.url == "about:blank" else open_page(self._web, self._tab.url)

    def _element(self, text: str) -> HtmlElement:
        try:
            wanted = markup.selector(text)
        except ValueError as error:
            raise CodeError(str(error)) from None
        found = next(iter(wanted(self._page().tree)), None)
        if found is None:
            raise CodeError(f"no element matches {text}")
        return found


def open_page(web: Web, address: str) -> Page:
    """Return the page that a browser shows at an address; a 404 page if a known host lacks it.

    :raises CodeError: the host does not exist, or the page cannot be loaded.
    """
    if not address.startswith(("http://", "https://")):
        raise CodeError(f"net::ERR_INVALID_URL at {address}")
    page = web.get(address)
    if page is None:
        found = Page(
            canonical(address), "<html><head><title>404 Not Found</title></head><h1>Not Found</h1></html>"
        )
        if not web.knows_host(found.host):
            raise CodeError(f"net::ERR_NAME_NOT_RESOLVED at {address}")
        return found
    if page.error is not None:
        raise CodeError(f"net::ERR_FAILED at {address}")
    return page


def _parse(statement: str, language: str) -> tuple[str | None, list[str]]:
    """Return the meaning of a statement, or None if it is unsupported, and its arguments."""
    for meaning, pattern in STATEMENTS[language].items():
        match = re.fullmatch(pattern, statement)
        if match:
            return meaning, [text for text in match.groups() if text is not None]
    return None, []


def _statements(code: str, language: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(code.splitlines(), 1):
        for match in _STATEMENT.finditer(line):
            statement = match[0].strip()
            if statement.startswith(_COMMENTS[language]):
                break  # a comment extends to the end of its line
            if statement:
                yield number, statement
