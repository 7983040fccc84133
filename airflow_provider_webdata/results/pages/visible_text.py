# SPDX-License-Identifier: Apache-2.0
"""The visible text of a page, and pages without one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

TEXT_FORMATS = ("markdown", "html", "rawHtml", "summary")
"""Formats that are the text of a page."""

TEXTS_OF_FILES = frozenset({"markdown", "summary"})
"""Those that a file, such as a PDF, has too."""

_WEB_TYPES = ("text/html", "application/xhtml", "application/octet-stream")
"""Types of pages that have HTML, and the type that says nothing, as of an uploaded file."""

MAX_HTML = 200_000
"""Characters of HTML that are examined."""

_NO_CONTENT = frozenset({"metadata", "warning"})
_MAX_LOADING = 200
_START = 2_000
_LOADING = re.compile(
    r"(?:[\s.…!,:;·()–—⏳⌛-]|loading|loader|spinner|please wait|just a second"
    r"|lädt|wird geladen|bitte warten|chargement(?: en cours)?|veuillez patienter"
    r"|cargando|espere|por favor|caricamento(?: in corso)?|attendere prego"
    r"|carregando|aguarde|wordt geladen|even geduld|laddar|ładowanie|proszę czekać"
    r"|загрузка|загружается|пожалуйста|подождите|yükleniyor|lütfen bekleyin|đang tải"
    r"|読み込み中(?:です)?|ロード中|しばらくお待ちください|お待ちください"
    r"|正在加载|加载中|載入中|请稍候|请稍等|로딩 ?중|불러오는 중|잠시만 기다려 ?주세요"
    r"|กำลังโหลด|โปรดรอสักครู่|جار[ٍي]? ?التحميل|يرجى الانتظار)+"
)
# Letters and symbols that are shown as nothing.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")
_SYNTAX = frozenset("+<=>|~^`")
_DESTINATION = re.compile(r"\]\(\s?<?[^()\s]*(?:\([^()]*\)[^()\s]*)*>?(?:\s{1,3}[\"'][^\"']*[\"'])?\s?\)")
_PUNCTUATION = re.compile(r"<br\s*/?>|!?\[|[]#*_`>|\\]+")
_TAG = re.compile(r"<[^<>]*>")
_HIDING_TAG = re.compile(r"<(/?)(script|style|template|svg|title)(?=[\s/>])[^<>]*>", re.IGNORECASE)


def is_file(metadata: Any) -> bool:
    """Return whether a page is a file, such as a PDF, which has no HTML.

    :param metadata: metadata of the page.
    """
    if not isinstance(metadata, Mapping):
        return False
    kind = metadata.get("contentType")
    return type(metadata.get("numPages")) is int or (
        isinstance(kind, str) and "/" in kind and not kind.strip().lower().startswith(_WEB_TYPES)
    )


def is_empty(item: Mapping[str, Any], *, text_formats: Collection[str] | None = None) -> bool:
    """Return whether a page should have a text, but has none or only one that asks to wait.

    The length of a text, its language, and its script do not matter. Alternative texts of images and texts of links
    count; punctuation and addresses alone do not.

    :param item: a page as the service returned it.
    :param text_formats: the requested formats among `TEXT_FORMATS`. None: unknown; then a page with one of these
        fields, or without any content, should have a text.
    """
    if text_formats is None:
        others = (value for name, value in item.items() if name not in _NO_CONTENT)
        should = any(isinstance(item.get(name), str) for name in TEXT_FORMATS) or all(
            value is None for value in others
        )
    else:
        should = any(name in TEXTS_OF_FILES or not is_file(item.get("metadata")) for name in text_formats)
    # If there is markdown, it is the text of the page: HTML also has navigation and notices.
    names = ("markdown",) if isinstance(item.get("markdown"), str) else TEXT_FORMATS
    return should and not any(_has_content(name, item.get(name)) for name in names)


def has_text(text: str) -> bool:
    """Return whether a text contains a letter, a digit, or a symbol that is shown and no syntax of markdown."""
    return any(
        character not in _BLANK
        and (character.isalnum() or (character not in _SYNTAX and unicodedata.category(character)[0] == "S"))
        for character in text
    )


def is_blank(text: str) -> bool:
    """Return whether a text consists of whitespace and characters that are shown as nothing."""
    return all(
        character.isspace() or character in _BLANK or unicodedata.category(character) in ("Cc", "Cf")
        for character in text
    )


def markdown_text(markdown: str) -> str:
    """Return the text of markdown without its syntax, with the texts of links and the alternative texts of images."""
    return _PUNCTUATION.sub(" ", unescape(_DESTINATION.sub("] ", markdown)))


def html_text(html: str) -> str:
    """Return the text of HTML without tags, scripts, and styles, in linear time."""
    html = html[:MAX_HTML]
    parts: list[str] = []
    hidden, begin = "", 0
    for tag in _HIDING_TAG.finditer(html):
        closes, name = tag[1], tag[2].lower()
        if name == "svg" and tag[0].endswith("/>"):
            continue
        if not hidden and not closes:
            parts.append(html[begin : tag.start()])
            hidden = name
        elif closes and name == hidden:
            hidden, begin = "", tag.end()
    if not hidden:
        parts.append(html[begin:])
    return unescape(_TAG.sub(" ", "".join(parts)))


def _has_content(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        # A value in another form than documented may have any content.
        return value is not None
    is_html = name in ("html", "rawHtml")
    if not is_html and len(value) > _START:
        # Fast path for most pages, without the last link, which may be cut.
        start, _, _ = value[:_START].rpartition("](")
        text = markdown_text(start or value[:_START])
        if len(text) > _MAX_LOADING and has_text(text):
            return True
    if is_html and len(value) > MAX_HTML:
        # The text may follow after the examined part.
        return True
    text = html_text(value) if is_html else markdown_text(value)
    return has_text(text) and not (len(text) <= _MAX_LOADING and _LOADING.fullmatch(text.lower()))
