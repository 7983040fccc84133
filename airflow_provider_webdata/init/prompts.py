"""Input of `airflow webdata init`: flags, terminal, environment, or standard input."""

from __future__ import annotations

import getpass
import os
import sys

from airflow_provider_webdata.api.errors import ConfigurationError

KEY_VARIABLE = "WEBDATA_API_KEY"


def asked(what: str, flag: str, default: str | None) -> str:
    """Return the input from the terminal; the default if it is empty or there is no terminal.

    :param flag: the flag that sets the value, too.
    :param default: None where there is none.
    :raises ConfigurationError: there is no terminal and no default.
    """
    if not sys.stdin.isatty():
        if default is None:
            raise ConfigurationError(f"{flag} is missing, and standard input is no terminal; give {flag}")
        return default
    entered = input(f"{what} [{default}]: " if default else f"{what}: ").strip()
    return entered or default or ""


def api_key(stored: str | None) -> str:
    """Return the key, which is never shown: of the environment, the terminal or the first line of standard input.

    :param stored: the key that nothing entered at the terminal stands for.
    :raises ConfigurationError: there is none.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if not key and sys.stdin.isatty():
        hint = "not shown; empty keeps the present one" if stored else "not shown"
        key = getpass.getpass(f"API key ({hint}): ") or stored or ""
    elif not key:
        key = sys.stdin.readline()
    if not key.strip():
        raise ConfigurationError(
            f"there is no API key; enter it when asked, write it to standard input, or set {KEY_VARIABLE}"
        )
    return key.strip()
