# SPDX-License-Identifier: Apache-2.0
"""Pages that sites show, written for the tests of the detector: those in place of the requested one, and others.

The texts are ours, in the shape that the vendors' and sites' own pages have. They were written before the rules were
run over them, and those that the rules get wrong have stayed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airflow_provider_webdata.results.pages.substitutes import Kind


class Shown(NamedTuple):
    """A page, and what it is in place of the requested one; None: it is the page."""

    name: str
    kind: Kind | None
    item: dict[str, Any]


def page(
    title: str,
    markdown: str | None,
    *,
    html: str | None = None,
    url: str = "https://shop.example/products/42",
    found: str | None = None,
    status: int = 200,
    **metadata: Any,
) -> dict[str, Any]:
    content = {"markdown": markdown, "html": html}
    return {
        **{name: text for name, text in content.items() if text is not None},
        "metadata": {
            "title": title,
            "sourceURL": url,
            "url": found or url,
            "statusCode": status,
            **metadata,
        },
    }


NAVIGATION = "[Home](/) [Products](/p) [Deals](/d) [Help](/h) [About us](/a) [Contact](/c)\n\n"
PARAGRAPH = (
    "Reed beds slow the water down before it reaches the weir. Sediment settles there, and with it most of the "
    "phosphate that fields upstream have lost. In the third summer the count of dragonflies doubled, which nobody "
    "had "
    "planned for. The keepers now mow in strips so that some stand stays every winter. "
)
ARTICLE = PARAGRAPH * 8

INSTEAD = (
    Shown("cloudflare challenge", "challenge", page(
        "Just a moment...", "# shop.example\n\nVerifying you are human. This may take a few "
        "seconds.\n\nshop.example needs "
        "to review the security of your connection before proceeding.")),
    Shown("cloudflare challenge without text", "challenge", page(
        "", None, html="<html><head><script>window._cf_chl_opt={cvId:'3'}</script></head><body></body></html>")),
    Shown("cloudflare challenge in German", "challenge", page(
        "Nur einen Moment…", "# shop.example\n\nBestätigen Sie, dass Sie ein Mensch sind, indem Sie die Aktion "
        "ausführen.")),
    Shown("cloudflare challenge in Spanish", "challenge", page(
        "Un momento…", "# tienda.example\n\nVerifica que eres humano completando la acción a continuación.")),
    Shown("cloudflare block", "challenge", page(
        "Attention Required! | Cloudflare", "# Sorry, you have been blocked\n\n## You are unable to access "
        "shop.example\n\n"
        "Why have I been blocked? This website is using a security service to protect itself from online attacks.")),
    Shown("cloudflare rate limit", "challenge", page(
        "Access denied | shop.example used Cloudflare to restrict access", "# Error 1015\n\nYou are being rate "
        "limited\n\n"
        "The owner of this website has banned you temporarily from accessing this website.")),
    Shown("akamai", "challenge", page(
        "Access Denied", "# Access Denied\n\nYou don't have permission to access "
        "\"http://shop.example/products/42\" on this "
        "server.\n\nReference #18.5e2b1702.1764000000.1c5a1f")),
    Shown("imperva frame", "challenge", page(
        "", None, html='<html><body><iframe src="/_Incapsula_Resource?CWUDNSAI=23&xinfo=5-1">Request unsuccessful. '
        "Incapsula incident ID: 508000-55</iframe></body></html>")),
    Shown("imperva interruption", "challenge", page(
        "Pardon Our Interruption", "As you were browsing something about your browser made us think you were a "
        "bot. There "
        "are a few reasons this might happen: you're a power user moving at super-human speed.")),
    Shown("datadome", "challenge", page(
        "shop.example", "Please enable JS and disable any ad blocker",
        html='<html><body><p id="cmsg">Please enable JS and disable any ad blocker</p><script '
        'src="https://ct.captcha-delivery.com/c.js"></script></body></html>')),
    Shown("human press and hold", "challenge", page(
        "Access to this page has been denied", "# Before we continue...\n\nPress & Hold to confirm you are a "
        "human (and not "
        "a bot).\n\nReference ID 7f6b")),
    Shown("human without text", "challenge", page(
        "shop", "", html='<html><body><div id="px-captcha"></div></body></html>')),
    Shown("aws waf", "challenge", page(
        "", "", html="<html><head><script>window.gokuProps={key:'A'}</script></head><body><div "
        "id='challenge-container'>"
        "</div></body></html>")),
    Shown("aws waf captcha", "challenge", page(
        "Human Verification", "JavaScript is disabled\n\nIn order to continue, we need to verify that you're not "
        "a robot. "
        "This requires JavaScript.")),
    Shown("bookshop robot check", "challenge", page(
        "Robot Check", "#### Enter the characters you see below\n\nSorry, we just need to make sure you're not a "
        "robot.")),
    Shown("search engine", "challenge", page(
        "https://search.example/search?q=reed", "Our systems have detected unusual traffic from your computer "
        "network. This "
        "page checks to see if it's really you sending the requests, and not a robot.")),
    Shown("search engine in French", "challenge", page(
        "https://search.example/search?q=roseau", "Nos systèmes ont détecté un trafic exceptionnel sur votre réseau "
        "informatique. Cette page permet de vérifier que c'est bien vous.")),
    Shown("ddos-guard", "challenge", page("DDoS-Guard", "Checking your browser before accessing forum.example.")),
    Shown("vercel", "challenge", page("Vercel Security Checkpoint", "We're verifying your browser\n\n[Website "
    "owner?](/o)")),
    Shown("anubis", "challenge", page(
        "Making sure you're not a bot!", "Loading...\n\nWhy am I seeing this? You are seeing this because the "
        "administrator "
        "of this website has set up Anubis to protect the server.")),
    Shown("f5", "challenge", page(
        "Request Rejected", "The requested URL was rejected. Please consult with your administrator. Your support "
        "ID is: "
        "4045204596866416688")),
    Shown("sucuri", "challenge", page(
        "Sucuri WebSite Firewall - Access Denied", "# Access Denied - Sucuri Website Firewall\n\nIf you are the "
        "site owner, "
        "please whitelist your IP below.")),
    Shown("blocked by a shop's own words", "challenge", page(
        "Hoppla!", "Ihre Anfrage wurde als automatisiert erkannt. Bitte versuchen Sie es in einer Stunde wieder.")),
    Shown("captcha in Russian", "challenge", page(
        "Вы не робот?", "Подтвердите, что вы не робот, чтобы продолжить пользоваться сайтом.")),
    Shown("slider in Chinese", "challenge", page("验证", "请完成安全验证\n\n向右滑动滑块")),
    Shown("consent redirect", "consent", page(
        "Before you continue", "We use cookies and data to deliver and maintain our services.",
        url="https://www.youtube.com/watch?v=1", found="https://consent.youtube.com/m?continue=x")),
    Shown("consent of a video site in German", "consent", page(
        "YouTube", "# Bevor Sie zu YouTube weitergehen\n\nWir verwenden Cookies und Daten, um Dienste "
        "bereitzustellen.")),
    Shown("portal", "consent", page(
        "Yahoo is part of the Yahoo family of brands", "We, and our partners, store and/or access information on "
        "a device "
        "through the use of cookies. If you click 'Accept all', we and our partners will use personal data.",
        url="https://finance.yahoo.com/quote/X", found="https://consent.yahoo.com/v2/collectConsent?sessionId=1")),
    Shown("pay or consent in German", "consent", page(
        "zeitung.example", "# zeitung.example mit Werbung lesen\n\nBesuchen Sie uns wie gewohnt mit Werbung und "
        "Tracking. "
        "Details in den Datenschutzhinweisen. Einwilligung jederzeit widerrufbar.\n\nMit Werbung weiterlesen\n\n"
        "oder werbefrei im Abo, mit Cookies unserer Partner nur wo nötig.")),
    Shown("consent in French", "consent", page(
        "journal.example", "Avec votre accord, nous et nos 821 partenaires utilisons des cookies pour stocker "
        "et/ou accéder "
        "à des informations personnelles. Vos données de navigation.\n\nAccepter et fermer")),
    Shown("consent in Polish", "consent", page(
        "gazeta.example", "Szanujemy Twoją prywatność. Wraz z zaufanymi partnerami przechowujemy pliki cookie.\n\n"
        "Akceptuję i przechodzę do serwisu")),
    Shown("soft 404", "not_found", page(
        "Page not found | Garden tools", NAVIGATION + "# Oops!\n\nWe can't find the page. It may have moved.")),
    Shown("soft 404 by text", "not_found", page(
        "Garden tools", NAVIGATION + "Sorry, the page you are looking for does not exist any more.")),
    Shown("soft 404 in German", "not_found", page("Seite nicht gefunden – Gartenwelt", "Leider gibt es diese "
    "Seite nicht.")),
    Shown("soft 404 in French", "not_found", page("Page introuvable - Le Jardin", "Cette adresse ne mène nulle "
    "part.")),
    Shown("soft 404 in Spanish", "not_found", page("Página no encontrada | Jardín", "Vuelve a la portada.")),
    Shown("soft 404 in Japanese", "not_found", page("ページが見つかりません | 庭",
    "お探しのページは見つかりませんでした。")),
    Shown("soft 404 that redirects to the front page", "not_found", page(
        "Garden tools: spades, rakes, and more", NAVIGATION + "# Welcome\n\nOur deals of the week.",
        found="https://shop.example/")),
    Shown("hard 404", "error", page("Not here", "Nothing here.", status=404)),
    Shown("page that the service could not load", "error", page("", None, error="timed out")),
    Shown("server error", "error", page("503", "Backend fetch failed", status=503)),
    Shown("login by redirect", "login", page(
        "Garden forum", "Username\n\nPassword\n\nRemember me", url="https://forum.example/t/7",
        found="https://forum.example/login?next=/t/7")),
    Shown("authwall", "login", page(
        "Sign Up | Network", "Join to see who you already know.", url="https://network.example/in/reed",
        found="https://network.example/authwall?trk=x")),
    Shown("login form at the page's own address", "login", page(
        "Login • Photos", "Phone number, username, or email\n\nPassword\n\nLog in\n\nForgot password?",
        url="https://photos.example/reed/")),
    Shown("login form in French", "login", page(
        "Se connecter | Intranet", "Identifiant\n\nMot de passe\n\nMot de passe oublié ?",
        url="https://intra.example/doc/3")),
    Shown("forum notice", "login", page(
        "Garden forum", "You must be logged in to view this thread. Register in one minute.")),
    Shown("forum notice in Spanish", "login", page("Foro", "Inicia sesión para continuar con la lectura.")),
    Shown("react shell", "shell", page("App", "You need to enable JavaScript to run this app.")),
    Shown("vue shell", "shell", page(
        "portal", "**We're sorry but portal doesn't work properly without JavaScript enabled. Please enable it.**")),
    Shown("empty root", "shell", page(
        "Garden", None, html='<html><head><title>Garden</title><style>a{}</style></head><body><div id="root"></div>'
        '<script>window.__STATE__={"a":"' + "x" * 3000 + '"}</script></body></html>')),
    Shown("empty markdown", "shell", page("Garden", "\n\n")),
    Shown("spinner", "shell", page("Garden", "![spinner](/s.gif)\n\nLoading...")),
    Shown("shell with navigation only", "shell", page("Garden", NAVIGATION)),
    Shown("shell in German", "shell", page("Garten", "Bitte aktivieren Sie JavaScript, um diese Seite zu sehen.")),
)  # fmt: skip

PAGES = tuple(
    Shown(name, None, item)
    for name, item in {
        "article": page("Reed beds | River notes", ARTICLE),
        "article about CAPTCHAs": page(
            "How CAPTCHAs work", "# How CAPTCHAs work\n\nA site asks you to verify you are human before it answers. "
            + ARTICLE),
        "article about a challenge page": page(
            "What does \"Just a moment...\" mean? | Help", "# What does \"Just a moment...\" mean?\n\nThe page says: "
            "verifying you are human. Checking your browser before accessing a site takes seconds. " + ARTICLE),
        "short note about CAPTCHAs": page(
            "CAPTCHA fatigue - Notes", "# CAPTCHA fatigue\n\nI solved nine of them today. Bicycles, hydrants, "
            "bicycles."),
        "article on 404 errors": page(
            "How to design a 404 page", "# How to design a 404 page\n\nSay that the page was not found, and link "
            "to search."),
        "reference of a status": page(
            "404 Not Found - HTTP | Reference", "# 404 Not Found\n\nThe HTTP **404 Not Found** client error "
            "response status "
            "code indicates that the server cannot find the requested resource. Links that lead to a 404 page are "
            "often "
            "called broken or dead links.\n\n## Status\n\n`404 Not Found`\n\n## Example\n\n" + PARAGRAPH * 6),
        "encyclopedia": page("HTTP 404 - Encyclopedia", ARTICLE),
        "car": page("Peugeot 404 - Cars of the sixties", "# Peugeot 404\n\nA saloon of 1960 with fins, by "
        "Pininfarina."),
        "room": page("Room 404 | Hotel by the weir", "# Room 404\n\nTwo beds, a view of the reeds. 98 EUR a night."),
        "login documentation": page(
            "Log in with a passkey | Docs", "# Log in with a passkey\n\nOpen Settings. Choose Passkeys. You no "
            "longer need a "
            "key phrase.", url="https://docs.example/passkeys"),
        "password documentation": page(
            "Reset your password - Help center", "# Reset your password\n\nOpen the login page and choose "
            "\"Forgot password\". "
            "A mail with a link arrives within a minute.", url="https://help.example/reset"),
        "login page that was requested": page(
            "Log in | Bank", "Customer number\n\nPassword\n\nLog in", url="https://bank.example/login"),
        "login page at a path of an account": page(
            "Anmelden", "Kundennummer\n\nPasswort", url="https://bank.example/user/login.php"),
        "comments need a login": page(
            "A day at the weir - River notes", "# A day at the weir\n\nWe counted 31 dragonflies before "
            "noon.\n\n## Leave a "
            "reply\n\nYou must be logged in to post a comment."),
        "coffee by redirect": page(
            "Espresso machines", "# Espresso machines\n\nThree of them, from 199 EUR.",
            url="https://shop.example/c/9",
            found="https://shop.example/espresso-machines"),
        "short product": page("Spade | Garden tools", "# Spade\n\n24.90 EUR\n\nAsh handle, 1.2 kg. In stock."),
        "very short page": page("Status", "All systems operational."),
        "price alone": page("Quote", "101.25 EUR"),
        "product with a cookie banner": page(
            "Rake | Garden tools", "# Rake\n\n18.50 EUR. Fourteen tines of spring steel, an ash handle of 150 cm, "
            "0.9 kg. It "
            "gathers leaves without scratching the lawn. Spare handles fit all our rakes since 2019. Delivery in "
            "two to "
            "three days, returns within 30 days, and a guarantee of ten years on the head. Customers also bought "
            "the spade "
            "and the wheelbarrow.\n\nWe and our partners store and/or access information on a device, such as "
            "cookies.\n\n"
            "Accept all"),
        "German article with a consent banner": page(
            "Schilf am Wehr | Flussblatt", "# Schilf am Wehr\n\nDas Schilf bremst das Wasser vor dem Wehr. Dort "
            "setzt sich ab, "
            "was die Felder verloren haben. Im dritten Sommer flogen doppelt so viele Libellen wie zuvor, womit "
            "niemand "
            "gerechnet hatte. Gemäht wird nun in Streifen, damit im Winter immer etwas stehen bleibt. Die "
            "Gemeinde zahlt "
            "dafür 4.000 EUR im Jahr, der Verein stellt die Leute.\n\nWir möchten Informationen auf einem Gerät "
            "speichern "
            "und/oder abrufen (Cookies).\n\nAblehnen"),
        "cookie policy": page(
            "Cookie policy | Garden tools", "# Cookie policy\n\nWe store a session cookie while you shop, and a "
            "cookie for your "
            "language. No others."),
        "privacy policy": page("Privacy", "# Privacy\n\nWe keep your address for as long as the law asks. "
        "Personal data stays "
                               "here; partners get none. Write to us about consent."),
        "recipe for cookies": page("Oat cookies", "# Oat cookies\n\n200 g oats, 100 g butter, 80 g sugar. 12 "
        "minutes at 180 °C."),
        "tutorial on enabling JavaScript": page(
            "Enable JavaScript in your browser", "# Enable JavaScript\n\nOpen Settings, then Site settings, then "
            "JavaScript, "
            "and switch it on. Reload the page."),
        "JavaScript course": page(
            "Learn JavaScript", "# Learn JavaScript\n\nJavaScript is required for this course; bring a laptop. "
            "Six evenings."),
        "access rights": page(
            "Access denied errors in object storage - Docs", "# Access denied errors\n\nA 403 means that the "
            "policy of the "
            "bucket does not allow the call. Check the role first."),
        "security check at an airport": page(
            "Airport security check: how long before departure?", "# How long before departure?\n\nNinety minutes "
            "on weekdays."),
        "page about bots": page("Bots on our network | Statistics", "# Bots\n\n41 percent of requests in May came "
        "from bots."),
        "press and hold": page("Reset the router - Manual", "# Reset\n\nPress and hold the button for ten seconds."),
        "loading dock": page("Loading dock 3", "Loading dock 3 is closed until noon."),
        "French article": page(
            "Les roselières | Carnet", "# Les roselières\n\nLes roseaux ralentissent l'eau. Connexion au réseau "
            "des sentiers "
            "prévue en mai."),
        "Spanish product": page("Pala | Jardín", "# Pala\n\n24,90 EUR. Mango de fresno. En existencias."),
        "Japanese article": page("葦原 | 川の記録", "# 葦原\n\n葦は水の流れ"
        "を緩め、堰の手前に土砂を沈めます。三年目の夏、トンボは倍になりました。"),
        "Russian article": page("Тростник у плотины", "# Тростник у плотины\n\nТростник замедляет воду. Летом "
        "стрекоз вдвое больше."),
        "Chinese product": page("铁锹 | 园艺", "# 铁锹\n\n售价 199 元。白蜡木手柄，净重一点二公斤，现货供应。"),
        "page behind a vendor's script": page(
            "Spade", None, html='<html><head><script '
            'src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script><script '
            'src="https://x.edge.sdk.awswaf.com/y/challenge.js"></script></head><body><h1>Spade</h1><p>24.90 EUR, '
            'ash '
            "handle, in stock.</p></body></html>"),
        "page behind another vendor's script": page(
            "Rake", None, html='<html><body><script src="/_Incapsula_Resource?SWJIYLWA=1"></script><script '
            'src="https://js.datadome.co/tags.js"></script><h1>Rake</h1><p>18.50 EUR, spring '
            'steel.</p></body></html>'),
        "structured data alone": {
            "json": {"price": 24.9},
            "metadata": {"title": "Spade", "sourceURL": "https://shop.example/p", "statusCode": 200},
        },
        "screenshot alone": {
            "screenshot": "https://cdn.example/s.png",
            "metadata": {"title": "Spade", "sourceURL": "https://shop.example/p", "statusCode": 200},
        },
        "discontinued product": page(
            "Hedge trimmer | Garden tools", "# Hedge trimmer\n\nDiscontinued. Last price 79 EUR. Spare blades are "
            "still sold."),
        "search without results": page("Search: unicorn | Garden tools", "0 results for unicorn. Try another word."),
        "notice on a login page that was requested": page(
            "Garden forum", "Sign in to continue.", url="https://forum.example/login"),
        "head without an end": page(
            "Spade", None, html="<html><head><title>Spade</title><body><h1>Spade</h1><p>24.90 EUR.</p></body>"),
        "long script before the body": page(
            "Spade", None, html="<html><head><script>" + "x" * 250_000 + "</script></head><body><p>24.90 EUR, ash "
            "handle, in stock.</p></body></html>"),
        "icon without an end tag": page(
            "Spade", None, html="<html><body><svg/><h1>Spade</h1><p>24.90 EUR, in stock.</p></body></html>"),
        "element named like a hidden one": page(
            "Spade", None, html="<html><body><template-page><h1>Spade</h1><p>24.90 EUR.</p></template-page></body>"),
        "music single": page("Not Found", "# Not Found\n\nSingle by The Weirs, 2019. Label: Reed Records. 3:41."),
    }.items()
)  # fmt: skip
