"""A reader's token opens one connection's deliveries for a short time, and nothing else does."""

from __future__ import annotations

import base64
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.inbox import tokens

SECRET = "a-secret-of-the-connection"
NOW = 1_800_000_000.0


def forged(conn_id: str, end: float, signature: str = "0" * 64) -> str:
    claims = base64.urlsafe_b64encode(json.dumps([conn_id, end]).encode()).decode().rstrip("=")
    return f"wd1.{claims}.{signature}"


GENUINE = tokens.issue(SECRET, "web", now=NOW)

TOKENS = [
    # token, secrets, connection, seconds later, whether it opens
    pytest.param(GENUINE, [SECRET], "web", 0, True, id="genuine"),
    pytest.param(GENUINE, ["newer", SECRET], "web", 0, True, id="signed with the previous secret"),
    pytest.param(GENUINE, [SECRET], "web", 300, True, id="at its end"),
    pytest.param(GENUINE, [SECRET], "web", 359, True, id="within the clocks' difference"),
    pytest.param(GENUINE, [SECRET], "web", 361, False, id="over"),
    pytest.param(GENUINE, [SECRET], "web", -59, True, id="the reader's clock is ahead"),
    pytest.param(GENUINE, [SECRET], "other", 0, False, id="another connection"),
    pytest.param(GENUINE, ["other"], "web", 0, False, id="another secret"),
    pytest.param(GENUINE, [], "web", 0, False, id="no secret"),
    pytest.param(GENUINE[:-1], [SECRET], "web", 0, False, id="cut short"),
    pytest.param(GENUINE.replace("wd1.", "wd2."), [SECRET], "web", 0, False, id="another scheme"),
    pytest.param(GENUINE.upper(), [SECRET], "web", 0, False, id="upper case"),
    pytest.param(forged("web", NOW + 300), [SECRET], "web", 0, False, id="no signature"),
    pytest.param(
        forged("web", NOW + 301, GENUINE.split(".")[2]), [SECRET], "web", 0, False, id="other claims"
    ),
    pytest.param(SECRET, [SECRET], "web", 0, False, id="the secret itself"),
    pytest.param("", [SECRET], "web", 0, False, id="empty"),
    pytest.param("\udcff..", [SECRET], "web", 0, False, id="no text at all"),
    pytest.param(
        tokens.issue(SECRET, "web", lifetime=3601 + 60, now=NOW),
        [SECRET],
        "web",
        0,
        False,
        id="good for too long",
    ),
    pytest.param(
        tokens.issue(SECRET, "web", lifetime=3600, now=NOW), [SECRET], "web", 0, True, id="for an hour"
    ),
]


@pytest.mark.parametrize(("token", "secrets", "conn_id", "later", "opens"), TOKENS)
def test_token(token, secrets, conn_id, later, opens):
    assert tokens.verify(token, secrets, conn_id, now=NOW + later) is opens


@given(st.text(), st.text(min_size=1))
def test_any_text_is_no_token(text, secret):
    assert tokens.verify(text, [secret], "web", now=NOW) is False


@given(st.text(alphabet=string.printable, min_size=1), st.text(min_size=1))
def test_any_secret_and_connection(secret, conn_id):
    token = tokens.issue(secret, conn_id, now=NOW)
    assert tokens.verify(token, [secret], conn_id, now=NOW)
    assert not tokens.verify(token, [secret + "x"], conn_id, now=NOW)
    assert secret not in token or len(secret) < 4


def test_clock():
    assert tokens.verify(tokens.issue(SECRET, "web"), [SECRET], "web")
