"""Detection of pages shown in place of the requested one: block, consent, and login pages, soft 404s, empty shells.

A rule is a phrase and its place. A phrase in the text counts only on a short page: an article about CAPTCHAs is long.
`docs/checks.md` lists the rules with their sources, and their detection rates on the test pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_webdata.common.item_urls import site_failed

Kind = Literal["error", "challenge", "consent", "not_found", "login", "shell"]

MOST_CHARACTERS = 2_000
"""Maximum visible characters of a page on which a phrase in its text or title counts."""

_LEAST_CHARACTERS = 8
_LONGEST_HTML = 200_000


class Rule(NamedTuple):
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


RULES: tuple[Rule, ...] = (
    Rule(
        "challenge", "title",
        ("just a moment...", "un momento...", "einen moment bitte...", "un instant...", "attention required!"),
        "Cloudflare, challenge and block pages",
    ),
    Rule("challenge", "html", ("_cf_chl_opt", "/orchestrate/chl_page"), "Cloudflare, challenge script"),
    Rule(
        "challenge", "text",
        ("checking your browser before accessing", "checking if the site connection is secure",
         "enable javascript and cookies to continue", "sorry, you have been blocked"),
        "Cloudflare, challenge and block pages",
    ),
    Rule("challenge", "title", ("access denied", "access to this page has been denied"), "Akamai; HUMAN, block pages"),
    Rule("challenge", "text", ("errors.edgesuite.net", "you don't have permission to access \""), "Akamai, block page"),
    Rule(
        "challenge", "text",
        ("request unsuccessful. incapsula incident id", "powered by incapsula"),
        "Imperva Incapsula, block page",
    ),
    Rule("challenge", "html", ("_incapsula_resource?cwudnsai",), "Imperva Incapsula, frame of the block page"),
    Rule("challenge", "html", ("captcha-delivery.com/",), "DataDome, script"),
    Rule("challenge", "text", ("please enable js and disable any ad blocker",), "DataDome, text without JavaScript"),
    Rule("challenge", "html", ("px-captcha", "captcha.px-cdn.net"), "HUMAN (PerimeterX), captcha"),
    Rule("challenge", "text", ("press & hold to confirm you are a human",), "HUMAN (PerimeterX)"),
    Rule("challenge", "html", ("gokuprops",), "AWS WAF, challenge script"),
    Rule(
        "challenge", "text",
        ("enter the characters you see below", "we need to verify that you're not a robot"),
        "Amazon; AWS WAF, captcha",
    ),
    Rule(
        "challenge", "text",
        ("our systems have detected unusual traffic", "unsere systeme haben ungewöhnlichen datenverkehr",
         "nos systèmes ont détecté un trafic exceptionnel", "nuestros sistemas han detectado tráfico inusual"),
        "Google, \"sorry\" page",
    ),
    Rule("challenge", "text", ("sucuri website firewall - access denied",), "Sucuri, block page"),
    Rule(
        "challenge", "title",
        ("ddos-guard", "vercel security checkpoint", "making sure you're not a bot!", "human verification",
         "robot check", "client challenge", "security check", "pardon our interruption", "request rejected",
         "are you a robot?"),
        "DDoS-Guard; Vercel; Anubis; AWS WAF; Amazon; Fastly; Imperva; F5; Bloomberg",
    ),
    Rule(
        "challenge", "text",
        ("the requested url was rejected. please consult with your administrator",),
        "F5 BIG-IP ASM, block page",
    ),
    Rule("challenge", "text", ("not acceptable! an appropriate representation",), "ModSecurity, block page"),
    Rule(
        "challenge", "text",
        ("verify you are human", "verify that you are human", "verifying you are human",
         "bestätigen sie, dass sie ein mensch sind", "vérifiez que vous êtes humain", "verifica que eres humano",
         "verifica di essere umano", "verifique se você é humano", "controleer of u een mens bent",
         "подтвердите, что вы не робот", "あなたが人間であることを確認", "请完成安全验证"),
        "reCAPTCHA, hCaptcha, and Turnstile, in the languages of their pages",
    ),
    Rule(
        "consent", "host",
        ("consent.google.com", "consent.youtube.com", "consent.yahoo.com", "guce.yahoo.com", "guce.advertising.com"),
        "Google and Yahoo, consent redirects",
    ),
    Rule(
        "consent", "text",
        ("before you continue to google", "before you continue to youtube", "bevor sie zu google weitergehen",
         "bevor sie zu youtube weitergehen", "avant d'accéder à google", "avant d'accéder à youtube"),
        "Google, consent page",
    ),
    Rule(
        "consent", "text",
        ("store and/or access information on a device", "informationen auf einem gerät speichern und/oder abrufen",
         "stocker et/ou accéder à des informations", "almacenar y/o acceder a información",
         "archiviare e/o accedere a informazioni"),
        "IAB Europe TCF, purpose 1",
    ),
    Rule(
        "consent", "text",
        ("mit werbung weiterlesen", "weiter mit werbung lesen", "werbefrei lesen", "accepter et continuer",
         "continuer sans accepter", "accetta e continua", "accept and continue", "accept cookies or subscribe"),
        "pay-or-consent walls of publishers",
    ),
    Rule(
        "not_found", "title",
        ("404", "404 error", "error 404", "404 not found", "404 page not found", "not found", "page not found",
         "page not found (404)", "this page does not exist", "seite nicht gefunden", "nicht gefunden",
         "page introuvable", "page non trouvée", "página no encontrada", "pagina non trovata",
         "página não encontrada", "pagina niet gevonden", "nie znaleziono strony", "strona nie istnieje",
         "sidan hittades inte", "siden blev ikke fundet", "страница не найдена",
         "ページが見つかりません", "页面不存在"),
        "RFC 9110, section 15.5.5, in the words of content management systems",
    ),
    Rule(
        "not_found", "text",
        ("the page you requested could not be found", "the page you are looking for",
         "sorry, this page isn't available", "die gesuchte seite", "la page que vous cherchez",
         "la página que buscas no existe", "お探しのページは見つかりません"),
        "content management systems, text of their 404 page",
    ),
    Rule(
        "login", "title",
        ("login", "log in", "sign in", "log in or sign up", "anmelden", "einloggen", "connexion", "se connecter",
         "iniciar sesión", "accedi", "entrar", "fazer login", "inloggen", "logga in", "zaloguj się", "войти",
         "вход", "ログイン", "登录"),
        "form of a login page, if the text names a password and the requested URL no login",
    ),
    Rule(
        "login", "text",
        ("you must be logged in to view", "you must be logged in to access", "you need to log in to view",
         "log in to continue", "sign in to continue", "sie müssen angemeldet sein", "bitte melden sie sich an, um",
         "connectez-vous pour continuer", "vous devez être connecté", "inicia sesión para continuar",
         "accedi per continuare", "faça login para continuar", "войдите, чтобы продолжить", "ログインしてください"),
        "forums and shops, notice in place of the content",
    ),
    Rule(
        "shell", "text",
        ("you need to enable javascript to run this app", "please enable javascript to continue using this application",
         "doesn't work properly without javascript enabled", "javascript is not available",
         "this site requires javascript", "please turn on javascript", "bitte aktivieren sie javascript",
         "veuillez activer javascript", "por favor, habilita javascript"),
        "noscript text of Create React App, Angular, Vue CLI, and X",
    ),
)  # fmt: skip
"""The rules, tried in this order."""

_OF_PLACE = {
    place: [(phrase, rule.kind) for rule in RULES if rule.place == place for phrase in rule.phrases]
    for place in ("title", "text", "html", "host")
}
_TITLES = dict(_OF_PLACE["title"])
_SEPARATOR = re.compile(r"\s+[|·•–—-]\s+|\s*\|\s*|: ")
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
_LOADING = re.compile(r"(?:loading|please wait|lädt|wird geladen|chargement|cargando|caricamento)[\s.…]*")
_TAG = re.compile(r"<[^<>]*>")
_HIDING_TAG = re.compile(r"<(/?)(script|style|template|svg|title)(?=[\s/>])[^<>]*>", re.IGNORECASE)
_MARKDOWN = re.compile(r"!\[[^\[\]]*\]\([^()\s]*\)|\[([^\[\]]*)\]\([^()\s]*\)|[#*_`>|\\]+")


def is_page(item: Any) -> bool:
    """Return whether an item has the content of a page, so that `substitute_kind` can judge it."""
    return isinstance(item, Mapping) and isinstance(item.get("metadata"), Mapping)


def substitute_kind(item: Mapping[str, Any]) -> Kind | None:
    """Return the kind of page that a site showed in place of the requested one, or None.

    :param item: a page as the service returned it: `metadata`, and if requested `markdown`, `html`, or `rawHtml`.
    """
    metadata: Mapping[str, Any] = item["metadata"]
    if site_failed(metadata):
        return "error"
    if kind := _by_redirect(metadata):
        return kind
    markdown = item.get("markdown")
    source = next((item[name] for name in ("html", "rawHtml") if isinstance(item.get(name), str)), None)
    # Fast path for most pages.
    if isinstance(markdown, str) and len(markdown) > 4 * MOST_CHARACTERS:
        return None
    text = _plain(_MARKDOWN.sub(r" \1 ", markdown) if isinstance(markdown, str) else _visible(source or ""))
    if len(text) > MOST_CHARACTERS:
        return None
    requested = str(metadata.get("sourceURL") or metadata.get("url") or "").lower()
    excluded: set[Kind] = set()
    if _LOGIN_PATH.search(requested):
        excluded.add("login")
    # On a page with content, a consent banner is a small part of the text.
    if len(_CONSENT_WORD.findall(text)) * _CHARACTERS_PER_CONSENT_WORD <= len(text):
        excluded.add("consent")
    if not isinstance(markdown, str) and (source is None or len(source) > _LONGEST_HTML):
        # The content may follow after the examined part.
        excluded.add("shell")
    title = _plain(str(metadata.get("title") or ""))
    for part in (title, *_SEPARATOR.split(title)):
        kind = _TITLES.get(part.strip())
        if kind is not None and kind not in excluded and (kind != "login" or _PASSWORD.search(text)):
            return kind
    for place, content in (("html", (source or "")[:_LONGEST_HTML].lower()), ("text", text)):
        for phrase, kind in _OF_PLACE[place]:
            if kind not in excluded and phrase in content:
                return kind
    is_empty = len(text) < _LEAST_CHARACTERS or _LOADING.fullmatch(text)
    return "shell" if is_empty and "shell" not in excluded else None


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


def _visible(html: str) -> str:
    """Return the text of HTML without tags, scripts, and styles, in linear time."""
    html = html[:_LONGEST_HTML]
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
