"""All parts of one sandbox, put together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.engine.check_runner import Checks
from airflow_provider_webdata.sandbox.engine.index import Index
from airflow_provider_webdata.sandbox.engine.media import Media
from airflow_provider_webdata.sandbox.engine.page import Web
from airflow_provider_webdata.sandbox.engine.scraper import Scraper
from airflow_provider_webdata.sandbox.engine.sites import Sites
from airflow_provider_webdata.sandbox.engine.webhooks import Webhooks
from airflow_provider_webdata.sandbox.http.rate_limits import RateLimits
from airflow_provider_webdata.sandbox.http.recorder import Recorder
from airflow_provider_webdata.sandbox.operations.agent import Agents
from airflow_provider_webdata.sandbox.operations.batch_scrape import BatchScrapes
from airflow_provider_webdata.sandbox.operations.crawl import Crawls
from airflow_provider_webdata.sandbox.operations.extract import Extracting
from airflow_provider_webdata.sandbox.operations.interact import Sessions
from airflow_provider_webdata.sandbox.operations.map import Mapping
from airflow_provider_webdata.sandbox.operations.monitor import Monitors
from airflow_provider_webdata.sandbox.operations.parse import Parsing
from airflow_provider_webdata.sandbox.operations.scrape import Scraping
from airflow_provider_webdata.sandbox.operations.search import Searching
from airflow_provider_webdata.sandbox.operations.team import Team
from airflow_provider_webdata.sandbox.state.clock import Agenda, Clock
from airflow_provider_webdata.sandbox.state.credits import Credits
from airflow_provider_webdata.sandbox.state.faults import Faults
from airflow_provider_webdata.sandbox.state.processing import StillWorking
from airflow_provider_webdata.sandbox.state.quirks import Quirks
from airflow_provider_webdata.sandbox.state.replica import Replica
from airflow_provider_webdata.sandbox.state.store import Store

from .config import ENTITLEMENTS, SandboxConfig

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json

SETTINGS: dict[str, type] = {
    "latency_ms": float,
    "queue_seconds": float,
    "check_seconds": float,
    "parse_seconds": float,
    "page_seconds": float,
    "pdf_seconds": float,
    "concurrency": int,
    "step_seconds": float,
    "free_runs": int,
    "max_sessions": int,
    "compress": bool,
}


class Sandbox:
    """One emulated service.

    :raises ValueError: when a setting is wrong.
    """

    latency_ms: float
    queue_seconds: float
    check_seconds: float
    parse_seconds: float
    page_seconds: float
    pdf_seconds: float
    concurrency: int
    step_seconds: float
    free_runs: int
    max_sessions: int
    compress: bool
    entitlements: frozenset[str]
    bulk: tuple[int, int] | None

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.quirks = Quirks(config.quirks)
        self.store = Store(config.state)
        self.clock = Clock(config.speed, self._stored_time())
        self.agenda = Agenda(self.clock)
        self.faults = Faults()
        self.recorder = Recorder()
        self.replica = Replica(self.quirks)
        self.credits = Credits(self.store, self.clock, self.quirks, config.credits)
        self.limits = RateLimits(self.clock, self.quirks, config.rate_limits)
        self.sites = Sites(self.store)
        self.web = Web(self.store, self.clock, self.sites, config.pages)
        self.media = Media(self.store, self.clock)
        self.index = Index(self.web, self.clock, self.quirks)
        self.scraper = Scraper(self.web, self.store, self.clock, self.quirks, self.media)
        self.webhooks = Webhooks(
            self.store,
            self.clock,
            self.agenda,
            self.quirks,
            self.faults,
            secret=config.webhook_secret,
            timeout=config.webhook_timeout,
        )
        self.searching = Searching(self)
        self.still_working = StillWorking(self)
        self.scraping, self.mapping, self.team = Scraping(self), Mapping(self), Team(self)
        self.crawls, self.batches = Crawls(self), BatchScrapes(self)
        self.parsing = Parsing(self)
        self.sessions = Sessions(self)
        self.extracting, self.agents = Extracting(self), Agents(self)
        self.checks = Checks(self)
        self.monitors = Monitors(self)
        self._apply_config()

    def resume(self) -> None:
        """Take up what the state holds unfinished."""
        self.checks.resume()
        self.webhooks.resume()
        self.crawls.resume()
        self.batches.resume()
        self.sessions.resume()
        self.extracting.resume()
        self.agents.resume()

    def configure(self, settings: Json) -> None:
        """Change settings while the sandbox runs.

        :param settings: any of ``latency_ms``, ``queue_seconds``, ``check_seconds``, ``parse_seconds``,
            ``page_seconds``, ``pdf_seconds``, ``concurrency``, ``step_seconds``,
            ``free_runs``, ``max_sessions``, ``compress``, ``credits``, ``entitlements``,
            ``rate_limits``, ``bulk``; as in :class:`SandboxConfig`.
        :raises ValueError: when a name is unknown or a value is wrong.
        """
        unknown = settings.keys() - {*SETTINGS, "credits", "entitlements", "rate_limits", "bulk"}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        for name, kind in SETTINGS.items():
            if name in settings:
                setattr(self, name, kind(settings[name]))
        if "credits" in settings:
            self.credits.set(int(settings["credits"]))
        if "entitlements" in settings:
            self.entitlements = _entitlements(settings["entitlements"])
        if "rate_limits" in settings:
            self.limits.set(settings["rate_limits"])
        if "bulk" in settings:
            self.bulk = (int(settings["bulk"][0]), int(settings["bulk"][1])) if settings["bulk"] else None

    def state(self) -> Json:
        """Return what the sandbox holds: time, credits, quirks, monitors (the deleted ones too), checks."""
        return {
            "now": self.clock.iso(),
            "speed": self.clock.speed,
            "credits": self.credits.remaining,
            "quirks": self.quirks.names(),
            "monitors": self.store.list("monitor"),
            "checks": self.store.list("check"),
            "requests": self.recorder.total,
        }

    async def advance(self, seconds: float) -> None:
        """Move the clock forward and do all that falls due on the way."""
        await self.agenda.advance(seconds)
        self.note_time()

    def note_time(self) -> None:
        """Keep the present time, so that a restarted sandbox does not go back in it."""
        self.store.put("meta", "clock", {"now": self.clock.now()})

    async def reset(self) -> None:
        """Go back to the start: no monitors, requests or faults; all credits; the first pages and settings."""
        self.agenda.clear()
        await self.agenda.close()
        self.store.clear()
        self.note_time()
        self.credits.reset()
        self.recorder.clear()
        self.faults.clear()
        self.sites.clear()
        self.web.reset()
        self.quirks.set(self.config.quirks)
        self.limits.set(self.config.rate_limits)
        self._apply_config()

    async def close(self) -> None:
        """Stop all work and let go of the state."""
        await self.agenda.close()
        await self.webhooks.close()
        self.note_time()
        self.store.close()

    def _apply_config(self) -> None:
        config = self.config
        self.latency_ms, self.compress = config.latency_ms, config.compress
        self.queue_seconds, self.check_seconds = config.queue_seconds, config.check_seconds
        self.parse_seconds, self.max_sessions = config.parse_seconds, config.max_sessions
        self.page_seconds, self.pdf_seconds = config.page_seconds, config.pdf_seconds
        self.concurrency = config.concurrency
        self.step_seconds, self.free_runs = config.step_seconds, config.free_runs
        self.entitlements = _entitlements(config.entitlements)
        self.bulk = config.bulk

    def _stored_time(self) -> float | None:
        """Return the time to begin at when the state comes from a sandbox whose clock was moved ahead."""
        stored = self.store.get("meta", "clock")
        return max(time.time(), stored["now"]) if stored else None


def _entitlements(names: Any) -> frozenset[str]:
    unknown = set(names) - set(ENTITLEMENTS)
    if unknown:
        raise ValueError(
            f"unknown entitlements: {', '.join(sorted(unknown))}; known are {', '.join(ENTITLEMENTS)}"
        )
    return frozenset(names)
