# SPDX-License-Identifier: Apache-2.0
"""The connection form in a real browser: what a user sees, what is masked, and that a saved connection works.

With `WEBDATA_SCREENSHOTS` set to a folder (`make screenshot`), it takes the pictures of the docs.
"""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import API_KEY, CONNECTION_HEADER
from tests.support.browser import PICTURES, picture
from tests.support.stack import Stack
from webdata_sandbox.control import SandboxControl

STANDARD_FIELDS = {"host": "text", "password": "password"}
EXTRA_FIELDS = {
    "server": "hidden",  # of a list to choose from
    "webhook_url": "text",
    "webhook_secret": "password",
    "timeout": "text",
    "retry_budget": "text",
    "max_concurrency": "text",
    "max_response_mb": "text",
    "verify": "checkbox",
    "ca_file": "text",
    "client_cert_file": "text",
    "client_key_file": "text",
    "client_key_password": "password",
    "proxy": "password",
    "secret_headers": "password",
    "media_hosts": "text",
    "previous_webhook_secret": "password",
    "signing_secret": "password",
    "previous_signing_secret": "password",
    "signature_header": "text",
    "inbox_url": "text",
    "dashboard_url": "text",
}


def test_connection_made_with_the_form_works(page: Page, stack: Stack, sandbox: SandboxControl) -> None:
    page.set_viewport_size({"width": 1100, "height": 900})
    page.goto("/connections")
    page.get_by_role("button", name="Add Connection").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Connection ID").fill("webdata_browser")
    form.get_by_role("combobox").fill("Web Data")
    page.keyboard.press("Enter")

    for name in ("host", "password", "port"):
        expect(form.locator(f"[name={name}]")).to_have_attribute(
            "placeholder", re.compile("Base URL|Key|http")
        )
    _picture(page, form, "connection-form")
    form.get_by_label("Base URL").fill(stack.sandbox_url)
    form.get_by_label("API Key", exact=True).fill(API_KEY)
    for name, kind in STANDARD_FIELDS.items():
        expect(form.locator(f"[name={name}]")).to_have_attribute("type", kind)
    for hidden in ("login", "schema"):
        expect(form.locator(f"[name={hidden}]")).to_have_count(0)

    form.get_by_role("button", name="Extra Fields", exact=True).click()
    shown = {
        box.get_attribute("name").removeprefix("element_"): box.get_attribute("type") or "text"
        for box in form.locator("input[name^=element_]").all()
    }
    # What a user must fill in comes first.
    assert [*shown.items()] == [*EXTRA_FIELDS.items()]
    form.locator("#element_server").click()
    page.get_by_role("option", name="hosted", exact=True).click()
    form.locator("[name=element_retry_budget]").fill("5")
    form.locator("[name=element_secret_headers]").fill(f'{{"X-Team": "{CONNECTION_HEADER}"}}')
    assert API_KEY not in form.inner_text()
    assert CONNECTION_HEADER not in form.inner_text()

    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="webdata_browser")).to_be_visible()

    # What the server stored, tested by the server; the password is not sent again.
    stored = stack.api.call("GET", "/connections/webdata_browser")
    assert stored["password"] == "***"
    assert CONNECTION_HEADER not in str(stored)
    assert json.loads(stored["extra"])["server"] == "hosted"
    verdict = stack.api.call("POST", "/connections/test", json=stored)
    assert verdict["status"], verdict
    headers = [request["headers"] for request in sandbox.requests()]
    assert CONNECTION_HEADER in [given.get("x-team") for given in headers]


def test_test_button_says_what_is_wrong_and_what_is_right(page: Page, stack: Stack) -> None:
    wrong = {
        "connection_id": "webdata_wrong",
        "conn_type": "webdata",
        "host": "http://127.0.0.1",
        "port": 9,
        "password": "no-such-key",
    }
    stack.api.add_connection(wrong)
    page.goto("/connections")
    # A message disappears after two seconds.
    page.evaluate(
        "window.shown = '';"
        "new MutationObserver(() => { window.shown += document.body.innerText })"
        ".observe(document.body, {childList: true, subtree: true, characterData: true})"
    )

    for connection_id, works in (("webdata_default", True), ("webdata_wrong", False)):
        row = page.get_by_role("row").filter(has_text=connection_id)
        with page.expect_response(lambda answer: answer.url.endswith("/connections/test")) as answer:
            row.get_by_role("button", name="Test Connection").click()
        verdict = answer.value.json()
        assert verdict.get("status") is works, verdict
        # Airflow shows the lines of a message as one.
        message = " ".join(verdict["message"].split())
        page.wait_for_function("message => window.shown.replace(/\\s+/g, ' ').includes(message)", arg=message)


def _picture(page: Page, part: Locator, name: str) -> None:
    if PICTURES:
        # What is scrolled out of the dialog would be a blank band: the window is made higher than the dialog.
        page.set_viewport_size({"width": 1100, "height": 3000})
    picture(part, name)
