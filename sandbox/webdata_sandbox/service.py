# SPDX-License-Identifier: Apache-2.0
"""Assembly of an emulated service from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webdata_sandbox.engine.canned import CannedAnswers
from webdata_sandbox.engine.check_runner import CheckRunner
from webdata_sandbox.engine.index import Index
from webdata_sandbox.engine.media import Media
from webdata_sandbox.engine.scrape_store import ScrapeStore
from webdata_sandbox.engine.scraper import Scraper
from webdata_sandbox.engine.sites import Sites
from webdata_sandbox.engine.target_runner import TargetRunner
from webdata_sandbox.engine.web import Web
from webdata_sandbox.engine.webhooks import Webhooks
from webdata_sandbox.http.dispatcher import Dispatcher
from webdata_sandbox.http.downloads import Downloads
from webdata_sandbox.http.rate_limits import RateLimits
from webdata_sandbox.http.recorder import Recorder
from webdata_sandbox.operations.activity import Activity
from webdata_sandbox.operations.agent import Agent
from webdata_sandbox.operations.batch_scrape import BatchScrape
from webdata_sandbox.operations.crawl import Crawl
from webdata_sandbox.operations.developer import DeveloperSearch
from webdata_sandbox.operations.extract import Extract
from webdata_sandbox.operations.feedback import Feedback
from webdata_sandbox.operations.interact import Interact
from webdata_sandbox.operations.map import Map
from webdata_sandbox.operations.monitor import Monitor
from webdata_sandbox.operations.parse import Parse
from webdata_sandbox.operations.providers import Providers
from webdata_sandbox.operations.research import Research
from webdata_sandbox.operations.scrape import Scrape
from webdata_sandbox.operations.search import Search
from webdata_sandbox.operations.team import Team
from webdata_sandbox.state.core import Core
from webdata_sandbox.state.processing import Processing

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

    from .config import SandboxConfig


class Sandbox:
    """An emulated service: its state, engine, operations, and HTTP application.

    :raises ValueError: a setting is invalid.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        core = self.core = Core(config)

        self.sites = Sites(core.store)
        self.web = Web(core.store, core.clock, self.sites, config.pages)
        self.media = Media(core.store, core.clock)
        self.canned = CannedAnswers(core.store, self.media)
        self.webhooks = Webhooks(core, secret=config.webhook_secret, timeout=config.webhook_timeout)
        index = Index(self.web, core.clock, core.quirks)
        scraper = Scraper(core, self.web, self.canned)
        scrapes = ScrapeStore(core.store, self.web, scraper)
        processing = Processing(core.store, core.clock)
        self._checks = CheckRunner(core, TargetRunner(core, self.web, index, scraper), self.webhooks)

        self.crawl = Crawl(core, self.web, self.canned, scrapes, self.webhooks)
        self.batch_scrape = BatchScrape(core, self.canned, scrapes, self.webhooks)
        self.crawl.others, self.batch_scrape.others = (self.batch_scrape,), (self.crawl,)
        self.extract = Extract(core, self.web, index, scraper, self.webhooks)
        self.providers = Providers(core)
        self.agent = Agent(core, self.providers, self.web, index, scraper, self.webhooks)
        self.interact = Interact(core, self.web, scrapes, self.media)
        activity = Activity(core.store, core.clock)
        operations = (
            Search(core, index, scraper),
            DeveloperSearch(core, index),
            Research(core, index),
            Feedback(core),
            Scrape(core, self.web, self.canned, scrapes, processing, self.providers),
            self.batch_scrape,
            self.crawl,
            Map(core, self.web),
            Parse(core, self.canned, processing),
            self.extract,
            self.agent,
            self.interact,
            Monitor(core, self._checks),
            Team(core, (self.crawl, self.batch_scrape), self.extract),
            activity,
        )

        self.recorder = Recorder()
        self.rate_limits = RateLimits(core.clock, core.quirks, config.rate_limits)
        self.downloads = Downloads(self.media)
        self.dispatcher = Dispatcher(
            core,
            [endpoint for operation in operations for endpoint in operation.endpoints()],
            api_key=config.api_key,
            rate_limits=self.rate_limits,
            recorder=self.recorder,
            activity=activity,
            media=self.media,
        )

    def resume(self) -> None:
        """Resume the unfinished work of the stored state."""
        self._checks.resume()
        self.webhooks.resume()
        for jobs in (self.crawl, self.batch_scrape, self.interact, self.extract, self.agent):
            jobs.resume()

    def configure(self, settings: Json) -> None:
        """Change settings while the sandbox runs.

        :param settings: any of :data:`~webdata_sandbox.state.settings.Settings.NAMES`, ``credits``,
            and ``rate_limits``, as in :class:`SandboxConfig`.
        :raises ValueError: a name is unknown or a value is invalid.
        """
        core = self.core
        unknown = settings.keys() - {*core.settings.NAMES, "credits", "rate_limits"}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        core.settings.change(settings)
        if "credits" in settings:
            core.credits.set(int(settings["credits"]))
        if "rate_limits" in settings:
            self.rate_limits.set(settings["rate_limits"])

    async def reset(self) -> None:
        """Restore the initial state: credits, pages, and settings; no monitors, requests, or faults."""
        await self.core.reset()
        self.recorder.clear()
        self.sites.clear()
        self.web.reset()
        self.rate_limits.set(self._config.rate_limits)

    async def close(self) -> None:
        """Stop all work and close the store."""
        await self.core.agenda.close()
        await self.webhooks.close()
        self.core.close()
