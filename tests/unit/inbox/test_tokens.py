# SPDX-License-Identifier: Apache-2.0
"""A reader's token grants access to one connection's deliveries for a short time, and no other text does."""

from __future__ import annotations

import hmac
import string
import time
from datetime import datetime, timezone

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.inbox import tokens

SECRET = "a-secret-of-the-connection"
LONG = "a-secret-as-long-as-a-key-should-be"
NOW = 1_800_000_000.0
CLAIMS = {"aud": "web", "exp": int(NOW) + 300}
GENUINE = tokens.issue(SECRET, "web", now=NOW)
HEADER, PAYLOAD, SIGNATURE = GENUINE.split(".")


def signed(claims: dict[str, object], secret: str = SECRET, **options: str) -> str:
    """Return a token that a holder of the secret could sign, with any claims and algorithm."""
    key = hmac.digest(secret.encode(), b"webdata inbox reader, version 1", "sha256")
    return jwt.encode(claims, key, **options)


def unsigned(claims: dict[str, object]) -> str:
    return jwt.encode(claims, "", algorithm="none")


TOKENS = [
    # token, secrets, connection, seconds later, whether it opens
    pytest.param(GENUINE, [SECRET], "web", 0, True, id="genuine"),
    pytest.param(GENUINE, ["newer", SECRET], "web", 0, True, id="signed with the previous secret"),
    pytest.param(GENUINE, [SECRET], "web", 359, True, id="within the clocks' difference"),
    pytest.param(GENUINE, [SECRET], "web", 361, False, id="over"),
    pytest.param(GENUINE, [SECRET], "web", -59, True, id="the reader's clock is ahead"),
    pytest.param(GENUINE, [SECRET], "other", 0, False, id="another connection"),
    pytest.param(GENUINE, ["other"], "web", 0, False, id="another secret"),
    pytest.param(GENUINE, [], "web", 0, False, id="no secret"),
    pytest.param(GENUINE[:-1], [SECRET], "web", 0, False, id="cut short"),
    pytest.param(GENUINE.upper(), [SECRET], "web", 0, False, id="upper case"),
    pytest.param(f"{HEADER}.{PAYLOAD}.", [SECRET], "web", 0, False, id="no signature"),
    pytest.param(f"{HEADER}.{PAYLOAD}.{'A' * 43}", [SECRET], "web", 0, False, id="any signature"),
    pytest.param(
        ".".join([HEADER, unsigned({**CLAIMS, "exp": int(NOW) + 301}).split(".")[1], SIGNATURE]),
        [SECRET],
        "web",
        0,
        False,
        id="other claims",
    ),
    pytest.param(unsigned(CLAIMS), [SECRET], "web", 0, False, id="alg none"),
    pytest.param(
        ".".join([unsigned(CLAIMS).split(".")[0], PAYLOAD, SIGNATURE]),
        [SECRET],
        "web",
        0,
        False,
        id="alg none, signed",
    ),
    pytest.param(signed(CLAIMS), [SECRET], "web", 0, True, id="signed by another program"),
    pytest.param(signed(CLAIMS, algorithm="HS384"), [SECRET], "web", 0, False, id="another algorithm"),
    pytest.param(jwt.encode(CLAIMS, LONG), [LONG], "web", 0, False, id="the secret itself as the key"),
    pytest.param(signed({"aud": "web"}), [SECRET], "web", 0, False, id="without end"),
    pytest.param(signed({"exp": int(NOW) + 300}), [SECRET], "web", 0, False, id="without connection"),
    pytest.param(
        signed({**CLAIMS, "aud": ["web", "other"]}), [SECRET], "web", 0, False, id="for several connections"
    ),
    pytest.param(signed({**CLAIMS, "padding": "x" * 9000}), [SECRET], "web", 0, False, id="too long"),
    pytest.param(SECRET, [SECRET], "web", 0, False, id="the secret itself"),
    pytest.param("\udcff..", [SECRET], "web", 0, False, id="no text at all"),
    pytest.param("W1tb" * 1900 + "..", [SECRET], "web", 0, False, id="nested beyond measure"),
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
def test_token(token, secrets, conn_id, later, opens, monkeypatch):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=timezone.utc):
            return datetime.fromtimestamp(NOW + later, tz)

    monkeypatch.setattr("jwt.api_jwt.datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: NOW + later)
    assert tokens.verify(token, secrets, conn_id) is opens


def test_every_secret_is_tried(monkeypatch):
    """The time that an answer takes does not tell which secret fits."""
    keys = []
    monkeypatch.setattr(
        jwt,
        "decode",
        lambda *given, decode=jwt.decode, **more: keys.append(given[1]) or decode(*given, **more),
    )
    assert tokens.verify(tokens.issue("first", "web"), ["first", "second"], "web")
    assert len(set(keys)) == len(keys) == 2


@given(st.text(), st.text(min_size=1))
def test_any_text_is_no_token(text, secret):
    assert tokens.verify(text, [secret], "web") is False


@given(st.text(alphabet=string.printable, min_size=1), st.text(min_size=1, max_size=250))
def test_any_secret_and_connection(secret, conn_id):
    token = tokens.issue(secret, conn_id)
    assert tokens.verify(token, [secret], conn_id)
    assert not tokens.verify(token, [secret + "x"], conn_id)
    assert secret not in token or len(secret) < 4


@pytest.mark.parametrize("character", ["a", "\u00e4", "\U00020000"])
def test_the_longest_id(character):
    assert tokens.verify(tokens.issue(SECRET, character * 250), [SECRET], character * 250)
