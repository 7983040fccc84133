# SPDX-License-Identifier: Apache-2.0
"""Detection of pages shown in place of the requested one: block, consent, and login pages, soft 404s, empty shells.

A rule is a phrase and its place; `substitutes.json` has the rules. A phrase in the text counts only on a short
page: an article about CAPTCHAs is long. `docs/contributing/substitutes.md` lists the rules with their sources.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from airflow_provider_webdata.common.item_urls import site_failed
from airflow_provider_webdata.results.pages.visible_text import MAX_HTML, html_text, is_empty, markdown_text

Kind = Literal["error", "challenge", "consent", "not_found", "login", "shell"]

MAX_CHARACTERS = 2_000
"""Maximum visible characters of a page on which a phrase in its text or title counts."""


class Rule(msgspec.Struct, frozen=True):
    """A sign of a substitute page.

    :param kind: kind of the substitute page.
    :param place: `title`: a part of the title between separators is the phrase. `text`: the visible text contains it.
        `html`: the source contains it. `host`: the site redirected to this host or a host below it.
    :param phrases: in lower case, with single spaces.
    :param source: the product or site that documents or shows it.
    """

    kind: Kind
    place: Literal["title", "text", "html", "host"]
    phrases: tuple[str, ...]
    source: str


RULES: tuple[Rule, ...] = msgspec.json.decode(
    Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Rule, ...]
)
"""The rules, tried in this order."""

_OF_PLACE = {
    place: [(phrase, rule.kind) for rule in RULES if rule.place == place for phrase in rule.phrases]
    for place in ("title", "text", "html", "host")
}
_TITLES = dict(_OF_PLACE["title"])
_SEPARATOR = re.compile(r"\s+[|·•–—-]\s+|\s*[|｜]\s*|: |：")
_LOGIN_PATH = re.compile(
    r"/(?:(?:user|users|account|accounts|member|wp)[-_])?"
    r"(?:login|log-in|signin|sign-in|authwall|sso|anmelden|connexion)(?:\.\w+)?(?:[/?]|$)"
)
_PASSWORD = re.compile(
    r"password|passwort|mot de passe|contraseña|senha|wachtwoord|lösenord|hasło|пароль|パスワード|密码"
)
_CONSENT_WORD = re.compile(
    r"cookie|consent|partner|personal|privacy|werbung|einwilligung|datenschutz|données|datos|dati"
)
_CHARACTERS_PER_CONSENT_WORD = 120
# These scripts need less than half of the characters for the same content.
_DENSE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f]")


def is_page(item: Any) -> bool:
    """Return whether an item has the content of a page, so that `substitute_kind` can judge it."""
    return isinstance(item, Mapping) and isinstance(item.get("metadata"), Mapping)


def substitute_kind(item: Mapping[str, Any], *, text_formats: Collection[str] | None = None) -> Kind | None:
    """Return the kind of page that a site showed in place of the requested one, or None.

    :param item: a page as the service returned it: `metadata`, and if requested `markdown`, `html`, or `rawHtml`.
    :param text_formats: see `visible_text.is_empty`.
    """
    metadata: Mapping[str, Any] = item["metadata"]
    if site_failed(metadata):
        return "error"
    if kind := _by_redirect(metadata):
        return kind
    markdown = item.get("markdown")
    # Fast path for most pages.
    is_long = isinstance(markdown, str) and len(markdown) > 4 * MAX_CHARACTERS
    if not is_long and (kind := _by_phrase(item, metadata)):
        return kind
    return "shell" if is_empty(item, text_formats=text_formats) else None


def _by_phrase(item: Mapping[str, Any], metadata: Mapping[str, Any]) -> Kind | None:
    """Return the kind of a short page by a phrase in its title, source, or text."""
    markdown = item.get("markdown")
    source = next((item[name] for name in ("html", "rawHtml") if isinstance(item.get(name), str)), "")
    text = _plain(markdown_text(markdown) if isinstance(markdown, str) else html_text(source))
    length = len(text) + len(_DENSE.findall(text))
    if length > MAX_CHARACTERS:
        return None
    excluded: set[Kind] = set()
    if not isinstance(markdown, str) and len(source) > MAX_HTML:
        # The content may follow after the examined part.
        excluded.add("shell")
    requested = str(metadata.get("sourceURL") or metadata.get("url") or "").lower()
    if _LOGIN_PATH.search(requested):
        excluded.add("login")
    # On a page with content, a consent banner is a small part of the text.
    if len(_CONSENT_WORD.findall(text)) * _CHARACTERS_PER_CONSENT_WORD <= length:
        excluded.add("consent")
    title = _plain(str(metadata.get("title") or ""))
    for part in (title, *_SEPARATOR.split(title)):
        kind = _TITLES.get(part.strip())
        if kind is not None and kind not in excluded and (kind != "login" or _PASSWORD.search(text)):
            return kind
    for place, content in (("html", source[:MAX_HTML].lower()), ("text", text)):
        for phrase, kind in _OF_PLACE[place]:
            if kind not in excluded and phrase in content:
                return kind
    return None


def _by_redirect(metadata: Mapping[str, Any]) -> Kind | None:
    """Return the kind of page by the URL after redirects."""
    found, requested = metadata.get("url"), metadata.get("sourceURL")
    if not isinstance(found, str) or not isinstance(requested, str) or found == requested:
        return None
    try:
        host, path = urlsplit(found).hostname or "", urlsplit(found).path.lower()
    except ValueError:
        return None
    if any(host == named or host.endswith(f".{named}") for named, _ in _OF_PLACE["host"]):
        return "consent"
    return "login" if _LOGIN_PATH.search(path) and not _LOGIN_PATH.search(requested.lower()) else None


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("\u2019", "'").replace("\u2026", "...").split())
