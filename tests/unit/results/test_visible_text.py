# SPDX-License-Identifier: Apache-2.0
"""Pages with and without a text, in any script, and whatever its length."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.results.pages.substitutes import substitute_kind
from airflow_provider_webdata.results.pages.visible_text import is_empty
from tests.unit.results.shown_pages import page

TEXTS = {
    "a price": "42 EUR",
    "a number": "1299",
    "one digit": "7",
    "a letter": "x",
    "a currency": "€",
    "a price in Arabic digits": "٤٢ د.إ",
    "weather": "晴 25°C",
    "closed today": "本日休業",
    "Chinese": "售罄",
    "Korean": "품절",
    "Thai": "ปิด",
    "Arabic": "مغلق",
    "Hebrew": "סגור",
    "Hindi": "बंद",
    "Greek": "Κλειστό",
    "Cyrillic": "Нет",
    "an emoji": "🎉",
    "a flag": "🇯🇵",
    "stars": "★★★☆☆",
    "a tick": "✓",
    "a fraction": "½",
    "a heading": "# 404",
    "a table": "| A | B |\n|---|---|\n| 1 | 2 |",
    "a table of prices": "|  |  |\n|---|---|\n| 12,90 € |  |",
    "code": "```\nx = 1\n```",
    "inline code": "`y`",
    "a link": "[Home](/)",
    "a bare address": "<https://shop.example/>",
    "an image with an alternative text": "![Menu of the day](/menu.png)",
    "an image in a link, with an alternative text": "[![Karte](/m.png)](/menu)",
    "an image in Japanese": "![献立](/menu.png)",
    "escaped characters": "\\# 1",
    "a text between spaces": "\u200b\n\n\u00a0 5 \u3000\ufeff",
    "a loading dock": "Loading dock 3",
    "a product that loads": "Please wait to be seated",
    "a number that waits": "Loading 3",
}
NO_TEXTS = {
    "nothing": "",
    "white space": " \n\t\u00a0\u3000",
    "zero-width characters": "\u200b\u200d\ufeff\u2060\u00ad",
    "blank letters": "\u3164\u115f\u2800",
    "headings": "#\n\n##\n\n###",
    "lines": "---\n\n***\n\n___",
    "bullets": "- \n- \n* ",
    "a quotation": "> \n>",
    "an empty table": "|  |  |\n|---|:-:|\n|  |  |",
    "breaks": "<br><br/>\n<br />",
    "entities": "&nbsp;&#8203;",
    "an image": "![](/menu.png)",
    "an image with a title": '![](/menu.png "Menu")',
    "an image with parentheses": "![](/menu_(1).png)",
    "an embedded image": "![](data:image/png;base64,iVBORw0KGgo=)",
    "a removed image": "![](<Base64-Image-Removed>)",
    "an image in a link": "[![](/m.png)](/menu)",
    "links without texts": "[](/a) [](https://shop.example/b)",
    "dots": "...\n\n…",
    "an icon font": "\uf007 \uf0c9",
    "loading": "Loading...",
    "loading with a picture": "![spinner](/s.gif)\n\nLoading…",
    "loading in German": "Wird geladen …",
    "loading, in two phrases": "Loading, please wait!",
    "loading in Japanese": "読み込み中です。".rstrip("。"),
    "loading in Chinese": "正在加载…",
    "loading in Korean": "로딩 중...",
    "loading in Thai": "กำลังโหลด...",
    "loading in Arabic": "جاري التحميل...",
    "loading in Russian": "Загрузка… Пожалуйста, подождите.",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_no_shell(name: str) -> None:
    found = page("Shop", TEXTS[name])
    assert not is_empty(found)
    assert substitute_kind(found) is None


@pytest.mark.parametrize("name", NO_TEXTS)
def test_no_text_is_a_shell(name: str) -> None:
    found = page("Shop", NO_TEXTS[name])
    assert is_empty(found)
    assert substitute_kind(found) == "shell"


HTML = "<html><head><title>Shop</title><style>a{}</style></head><body>%s</body></html>"
CUT = HTML % ("<script>" + "x" * 250_000 + "</script>")
FIELDS: list[tuple[dict[str, Any], list[str] | None, bool]] = [
    # The content, the requested formats that are a text, and whether the page is empty.
    ({}, None, True),
    ({}, ["markdown"], True),
    ({}, [], False),
    ({"markdown": None}, None, True),
    ({"markdown": ""}, [], False),
    ({"html": HTML % "<p>晴</p>"}, None, False),
    ({"html": HTML % '<div id="root"></div>'}, None, True),
    ({"rawHtml": CUT}, None, False),
    ({"markdown": "", "rawHtml": CUT}, None, True),
    ({"markdown": "", "html": HTML % "<nav>Home</nav>"}, None, True),
    ({"markdown": None, "html": HTML % "<p>1299</p>"}, ["markdown"], False),
    ({"summary": "Closed."}, None, False),
    ({"summary": ""}, None, True),
    ({"json": {"price": 1}}, None, False),
    ({"json": {"price": 1}}, ["markdown"], True),
    ({"json": {"price": 1}, "markdown": ""}, None, True),
    ({"json": None}, [], False),
    ({"screenshot": "https://cdn.example/s.png"}, None, False),
    ({"links": []}, None, False),
    ({"images": ["https://cdn.example/1.png"]}, None, False),
    ({"product": {"name": "Spade"}}, None, False),
    ({"new": "x"}, None, False),
    ({"new": None}, None, True),
    ({"warning": "The page was slow."}, None, True),
    ({"markdown": "![](/a.png)" * 2000}, None, True),
    ({"markdown": "![](/a.png)" * 2000 + "完"}, None, False),
    ({"markdown": None, "json": {"price": 1}}, None, False),
    ({"metadata": {"contentType": "application/pdf"}}, ["html"], False),
    ({"metadata": {"numPages": 2}}, ["rawHtml"], False),
    ({"metadata": {"numPages": 2}}, ["markdown", "html"], True),
    ({"metadata": {"contentType": "text/html; charset=utf-8"}}, ["html"], True),
]


@pytest.mark.parametrize(("content", "requested", "empty"), FIELDS)
def test_only_a_requested_text_can_be_missing(
    content: dict[str, Any], requested: list[str] | None, empty: bool
) -> None:
    found = page("Shop", None) | content
    assert is_empty(found, text_formats=requested) is empty
    assert substitute_kind(found, text_formats=requested) == ("shell" if empty else None)


def test_a_script_that_needs_few_characters_is_not_a_short_page() -> None:
    """A Chinese article that mentions a check says as much as a Latin one of twice its length."""
    article = "芦苇减缓了堰前的水流，沉积物留在那里。" * 60
    assert substitute_kind(page("验证", f"{article}请完成安全验证")) is None
    assert substitute_kind(page("ページが見つかりません｜庭", "お探しのもの")) == "not_found"
