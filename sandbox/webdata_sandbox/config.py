# SPDX-License-Identifier: Apache-2.0
"""Sandbox settings."""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_API_KEY = "wd-sandbox-key"
PROFILES = ("hosted", "self-hosted", "gateway")
ENTITLEMENTS = ("enterprise", "threatProtection", "zeroDataRetention", "robots")
ACTIVITIES = (
    *("scrape", "crawl", "batch_scrape", "search", "extract", "llmstxt"),
    *("deep_research", "map", "agent", "browser", "interact"),
)
RATE_CLASSES = (
    *("search", "scrape", "map", "crawl", "crawl-status", "account"),
    *("agent", "agent-status", "interact", "interact-execute"),
)


@dataclass
class SandboxConfig:
    """Settings of one sandbox.

    :param profile: the kind of server to play: ``hosted``, ``self-hosted``, or ``gateway`` (``reference/profiles.py``).
    :param host: address to listen on.
    :param port: port to listen on; 0 selects a free port.
    :param api_key: the only accepted API key.
    :param state: SQLite file for the state; in memory when absent.
    :param pages: directory of additional pages (see ``engine/web.py``), overlaid on the built-in pages.
    :param quirks: names (or ``name=value``) of the quirks to emulate initially.
    :param speed: sandbox seconds per real second.
    :param latency_ms: latency of each service call, in real milliseconds.
    :param credits: initial credits of the team.
    :param rate_limits: calls per minute by rate class; absent classes are unlimited.
    :param entitlements: entitlements of the team: ``enterprise``, ``threatProtection``, ``zeroDataRetention``,
        ``robots``.
    :param bulk: ``(results, bytes)``: every web search, for any query, returns this many generated results, each with
        this many bytes of markdown; for benchmarks.
    :param compress: whether to gzip responses for clients that accept it.
    :param queue_seconds: queue time of a check or job, in sandbox time; None: as the profile has it.
    :param closing_seconds: time from the last page of a crawl or batch scrape to the end of the job, in sandbox time;
        None: as the profile has it.
    :param check_seconds: duration of a check, in sandbox time.
    :param parse_seconds: processing time of an uploaded file, in sandbox time.
    :param page_seconds: duration of each page of a crawl or batch scrape, in sandbox time.
    :param pdf_seconds: processing time of a PDF in a single-page scrape, in sandbox time.
    :param settle: whether each call completes all due work before it returns. A job without a duration then ends
        within the call that starts it.
    :param concurrency: maximum number of pages that the team scrapes concurrently.
    :param step_seconds: duration of each step of an extract or agent job, in sandbox time.
    :param free_runs: free agent runs per day.
    :param max_sessions: maximum number of open browser sessions.
    :param webhook_secret: key that signs webhook deliveries; unsigned when absent.
    :param webhook_timeout: timeout of a webhook delivery, in real seconds.
    :raises ValueError: the profile is unknown.
    """

    profile: str = "hosted"
    host: str = "127.0.0.1"
    port: int = 0
    api_key: str = field(default=DEFAULT_API_KEY, repr=False)
    state: str | None = None
    pages: str | None = None
    quirks: tuple[str, ...] = ()
    speed: float = 1.0
    latency_ms: float = 0.0
    credits: int = 100_000
    rate_limits: dict[str, int] = field(default_factory=dict)
    entitlements: tuple[str, ...] = ()
    bulk: tuple[int, int] | None = None
    compress: bool = True
    queue_seconds: float | None = None
    closing_seconds: float | None = None
    check_seconds: float = 0.0
    parse_seconds: float = 0.0
    page_seconds: float = 0.0
    pdf_seconds: float = 0.0
    settle: bool = False
    concurrency: int = 1
    step_seconds: float = 0.0
    free_runs: int = 5
    max_sessions: int = 50
    webhook_secret: str | None = field(default=None, repr=False)
    webhook_timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"unknown profile {self.profile!r}; use one of {', '.join(PROFILES)}")
