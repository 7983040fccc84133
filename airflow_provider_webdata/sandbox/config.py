"""The settings of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_API_KEY = "wd-sandbox-key"
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

    :param host: address to listen on.
    :param port: port to listen on; 0 selects a free one.
    :param api_key: the only key that is accepted.
    :param state: SQLite file that holds the state; memory when absent.
    :param pages: directory of more pages (see ``engine/web.py``), laid over the built-in ones.
    :param quirks: names (or ``name=value``) of the quirks to show from the start.
    :param speed: how many times faster than real time the sandbox's clock runs.
    :param latency_ms: milliseconds each call of the service takes, in real time.
    :param credits: credits of the team at the start.
    :param rate_limits: calls per minute by rate class; a class that is absent is not limited.
    :param entitlements: features the team has: ``enterprise``, ``threatProtection``, ``zeroDataRetention``,
        ``robots``.
    :param bulk: ``(results, bytes)``: every web search, for any query, returns that many generated results with that
        many bytes of markdown each; for measurements.
    :param compress: gzip answers for callers that accept it.
    :param queue_seconds: how long a check stays queued (sandbox time).
    :param check_seconds: how long a check runs (sandbox time).
    :param parse_seconds: how long an uploaded file is worked on (sandbox time).
    :param page_seconds: how long each page of a crawl or batch takes (sandbox time).
    :param pdf_seconds: how long a PDF is worked on when it is scraped alone (sandbox time).
    :param settle: whether the sandbox does all due work before it answers a call. A job that takes no time has then
        ended when the call that started it returns.
    :param concurrency: pages the team may have scraped at a time.
    :param step_seconds: how long each step of an extract or agent job takes (sandbox time).
    :param free_runs: agent runs a day that cost nothing.
    :param max_sessions: browser sessions the team may have open at a time.
    :param webhook_secret: key of the signature on webhook deliveries; unsigned when absent.
    :param webhook_timeout: real seconds a webhook receiver has to answer.
    """

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
    queue_seconds: float = 0.0
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
