# SPDX-License-Identifier: Apache-2.0
"""Run the acceptance of a server: `make acceptance BASE_URL=...`. See docs/contributing/acceptance.md.

Settings are environment variables, so that the API key does not appear in the list of processes.
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

from airflow_provider_webdata import __version__

if TYPE_CHECKING:
    from tools.acceptance.report import Report, Result
    from tools.acceptance.run import Run
    from tools.acceptance.site import Site

REPORTS = Path(__file__).resolve().parents[2] / "build" / "acceptance"
CONNECTION = "AIRFLOW_CONN_WEBDATA_DEFAULT"
USAGE = """\
BASE_URL= is missing. Usage: make acceptance BASE_URL=... [API_KEY=...] [SERVER=hosted] [CREDITS=50] [WEBHOOK_URL=...]
See docs/contributing/acceptance.md."""


class UnusableError(Exception):
    """The run cannot begin; the message says why."""


@dataclass(frozen=True)
class Settings:
    """What a run is told.

    :param server: the kind of the server; empty: found out.
    :param credits: the most that all calls together may cost.
    :param unbounded: also call what has no documented maximum price.
    :param site: a page that links to others of the same site, instead of the run's own pages.
    :param text: a text of that page.
    :param webhook_url: address at which the server reaches `webhook_port` of this machine's loopback address.
    :param reports: folder of the report.
    """

    base_url: str
    api_key: str = ""
    server: str = ""
    credits: float = 50
    unbounded: bool = False
    site: str = ""
    text: str = ""
    webhook_url: str = ""
    webhook_port: int = 8901
    reports: Path = REPORTS

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings.

        :raises UnusableError: a setting is missing or invalid.
        """
        if not (base_url := environ.get("BASE_URL", "").strip()):
            raise UnusableError(USAGE)
        try:
            credits = float(environ.get("CREDITS") or 50)
            port = int(environ.get("WEBHOOK_PORT") or 8901)
        except ValueError as error:
            raise UnusableError(f"CREDITS and WEBHOOK_PORT must be numbers: {error}") from None
        if environ.get("SITE") and not environ.get("TEXT"):
            raise UnusableError("TEXT= is missing: a text of the page SITE=, which every result must have.")
        return cls(
            base_url,
            environ.get("API_KEY", ""),
            environ.get("SERVER", ""),
            credits,
            environ.get("UNBOUNDED", "").lower() in {"1", "yes", "true"},
            environ.get("SITE", ""),
            environ.get("TEXT", ""),
            environ.get("WEBHOOK_URL", ""),
            port,
            Path(environ.get("REPORT") or REPORTS),
        )


def main() -> int:
    """Run everything in a temporary Airflow home. Return 0, 1 if an operation failed, and 2 if none could run."""
    try:
        settings = Settings.of(os.environ)
        with tempfile.TemporaryDirectory(prefix="acceptance-") as home:
            _prepare(Path(home))
            with _quiet(settings.reports) as terminal:
                return accept(settings, Path(home), terminal)
    except UnusableError as error:
        print(error, file=sys.stderr)
        return 2


def _prepare(home: Path) -> None:
    """Create an Airflow home. Airflow is imported only afterward, because it reads its settings once."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
        del os.environ[name]
    os.environ.update(
        AIRFLOW_HOME=str(home),
        AIRFLOW__API_AUTH__JWT_SECRET=secrets.token_hex(32),
        AIRFLOW__CORE__DAGS_FOLDER=str(home / "dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db",
        # Triggers run in this process, so no worker of a deferred task needs time to exit.
        AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL="0",
    )
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise UnusableError(f"Airflow's database could not be created:\n{done.stdout[-3000:]}")


@contextmanager
def _quiet(reports: Path) -> Iterator[TextIO]:
    """Write the output of this process, such as logs of tasks, to a file; yield a stream to the terminal."""
    reports.mkdir(parents=True, exist_ok=True)
    streams = [sys.stdout.fileno(), sys.stderr.fileno()]
    terminals = [os.dup(number) for number in streams]
    with (
        (reports / "log.txt").open("wb") as log,
        os.fdopen(os.dup(terminals[0]), "w", encoding="utf-8") as terminal,
    ):
        for number in streams:
            os.dup2(log.fileno(), number)
        try:
            yield terminal
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            for number, saved in zip(streams, terminals, strict=True):
                os.dup2(saved, number)
                os.close(saved)


def accept(settings: Settings, home: Path, terminal: TextIO) -> int:
    """Run all cases and write the report; return the exit status.

    :param home: an Airflow home with a migrated database, which this process uses.
    :raises UnusableError: see `kind_of`.
    """
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from tools.acceptance.run import Run, clean_up, stoppable
    from tools.acceptance.watch import Watch
    from webdata_sandbox.testing.execution_api import keep_execution_api

    kind = kind_of(settings, terminal)
    keep_execution_api()
    with ExitStack() as open_parts:
        inbox, fields = _inbox(settings, home, open_parts)
        _connect(settings, kind, fields)
        with WebDataHook() as hook:
            server = hook.get_settings().client.server
            watch = Watch(server, settings.credits, unbounded=settings.unbounded)
            open_parts.enter_context(stoppable(watch))
            open_parts.enter_context(watch.watching())
            site = open_parts.enter_context(pages_for(settings, hook))
            run = Run(watch, site, home, inbox, hook=hook)
            run.folder.mkdir()
            print(f"{settings.base_url}: {kind or 'unknown kind'}. Pages: {site.root}", file=terminal)
            try:
                found = [*_shown(run, home, terminal)]
            finally:
                left = clean_up(run)
    report = _report(settings, kind, site, found, left)
    report.write(settings.reports)
    print(f"\n{report.markdown()}\n{settings.reports}/acceptance.md", file=terminal, flush=True)
    return 0 if report.succeeded and not watch.stopped else 1


def _connect(settings: Settings, kind: str | None, fields: Mapping[str, str]) -> None:
    declared = {"server": kind} if kind else {}
    os.environ[CONNECTION] = json.dumps(
        {
            "conn_type": "webdata",
            "host": settings.base_url,
            "password": settings.api_key,
            "extra": {**declared, **fields},
        }
    )


def kind_of(settings: Settings, terminal: TextIO) -> str | None:
    """Return the kind of the server: the declared one, or the one that its answers show.

    :raises UnusableError: the server does not respond, is not of the declared kind, or must be declared.
    """
    from msgspec.structs import replace

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.api.servers import UNKNOWN
    from airflow_provider_webdata.hooks.probe import probe
    from airflow_provider_webdata.hooks.webdata import WebDataHook

    is_assumed = not settings.server and not settings.api_key
    # Of the kinds without a key, the one whose calls are billed.
    _connect(settings, "gateway" if is_assumed else settings.server, {})
    try:
        found = probe(WebDataHook().get_settings().client)
    except WebDataError as error:
        raise UnusableError(str(error)) from None
    if is_assumed:
        found = replace(found, server=UNKNOWN)
    works, message = found.message()
    if not works:
        hint = "\nIn this run, SERVER= sets the kind." if "--server" in message else ""
        raise UnusableError(f"{message}{hint}")
    if is_assumed and found.kind != "self-hosted":
        raise UnusableError(f"{message} Add API_KEY=, or SERVER= with the kind.")
    if found.is_believed:
        print(message, file=terminal)
    return found.server.kind or found.kind


def _inbox(settings: Settings, home: Path, parts: ExitStack) -> tuple[Any, dict[str, str]]:
    """Start an inbox if the server can reach it; return it and the connection's fields for it."""
    if not settings.webhook_url:
        return None, {}
    from webdata_sandbox.testing.local_inbox import LocalInbox

    inbox = parts.enter_context(LocalInbox(home, settings.webhook_port))
    return inbox, {
        "webhook_url": settings.webhook_url,
        "inbox_url": inbox.url,
        "webhook_secret": inbox.secret,
    }


@contextmanager
def pages_for(settings: Settings, hook: Any) -> Iterator[Site]:
    """Yield the pages to read: the given ones, those of this process if the server reads them, or public ones."""
    from tools.acceptance.site import PUBLIC, Site, local_site

    if settings.site:
        yield Site(settings.site, settings.site, settings.text)
    # Only there is the server's loopback address probably this machine's.
    elif _is_loopback(urlsplit(settings.base_url).hostname or ""):
        with local_site() as own:
            yield own if _reads(hook, own) else PUBLIC
    else:
        yield PUBLIC


def _reads(hook: Any, site: Site) -> bool:
    from airflow_provider_webdata.api.errors import WebDataError
    from tools.acceptance.hook_cases import CHEAP

    try:
        page = hook.scrape(url=site.page, formats=["markdown"], **CHEAP).data
    except WebDataError:
        return False
    return page is not None and site.text in (page.markdown or "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(run: Run, home: Path, terminal: TextIO) -> Iterator[Result]:
    """Run the cases, and print each result."""
    from tools.acceptance import hook_cases, operator_cases
    from tools.acceptance.run import results

    (home / "dags").mkdir(exist_ok=True)
    (home / "dags" / "acceptance.py").write_text(operator_cases.DAG_FILE)
    cases = [*operator_cases.cases(), *hook_cases.cases()]
    for result in results(run, cases, {**operator_cases.reasons(), **hook_cases.reasons()}):
        name, outcome, seconds, *_ = result.cells()
        print(f"{seconds:>6}  {name}: {outcome}", file=terminal, flush=True)
        yield result


def _report(settings: Settings, kind: str | None, site: Site, found: list[Result], left: list[str]) -> Report:
    from importlib.metadata import version

    from tools.acceptance.report import Report

    credits = sum(result.credits for result in found)
    at_most = sum(result.at_most for result in found)
    about = {
        "server": f"{settings.base_url}, {kind or 'of unknown kind'}",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": f"provider {__version__}, Airflow {version('apache-airflow-core')}",
        "pages": site.root,
        "credits": f"{credits:g} reported, at most {at_most:g} more, of {settings.credits:g}",
    }
    return Report(about, found, left)


if __name__ == "__main__":
    sys.exit(main())
