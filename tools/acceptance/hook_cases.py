# SPDX-License-Identifier: Apache-2.0
"""How each method of the hook is tried, in an order in which earlier methods provide the ids that later ones need."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.prices import CATALOG
from airflow_provider_webdata.hooks.operations.providers import FIND
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tools.acceptance.content import ContentError, remark, require_text
from tools.acceptance.run import Case, NotRunError

if TYPE_CHECKING:
    from tools.acceptance.run import Run

PREFIX = "hook."
FILE = b"<html><head><title>Level</title></head><body><h1>Level</h1><p>412 cm</p></body></html>"
FILE_TEXT = "412 cm"
# One credit for a page: basic proxies only, and no pages of PDFs.
CHEAP: dict[str, Any] = {"proxy": "basic", "parsers": [], "maxAge": 0}
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
QUERY = "river level"
PRINT_PAGE = "console.log(await page.content())"

REASONS = {
    "close": "sends no request",
    "get_conn": "sends no request",
    "get_settings": "sends no request",
    "guarded": "sends no request",
    "guarded_by": "sends no request",
    "of": "sends no request",
    "optional": "sends no request",
    "sibling": "sends no request",
    "replace_threat_policy": "would change the policy of the whole organization",
}
"""Why methods have no case."""

_cases: dict[str, Case] = {}


def methods() -> list[str]:
    """Return the names of the hook's own public methods."""
    return [
        name
        for part in WebDataHook.__mro__
        if part.__module__.startswith("airflow_provider_webdata.")
        for name, value in vars(part).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, classmethod))
    ]


def cases() -> Iterator[Case]:
    """Yield the cases in order."""
    yield from _cases.values()


def reasons() -> dict[str, str]:
    """Return why operations have no case, by operation."""
    return {PREFIX + name: why for name, why in REASONS.items()}


def _case(perform: Callable[[Run], str | None]) -> Callable[[Run], str | None]:
    """Register a function as the case of the method with its name, without the underscore."""
    name = perform.__name__.removeprefix("_")
    _cases[name] = Case(PREFIX + name, perform, of_plan=name == "threat_policy")
    return perform


def _plain(*names: str) -> None:
    """Register cases that call methods without arguments."""

    def perform(run: Run, name: str) -> None:
        found = getattr(run.hook, name)()
        if isinstance(found, Iterator):
            _first(found)

    for name in names:
        _cases[name] = Case(PREFIX + name, partial(perform, name=name))


def _first(items: Any) -> Any:
    """Read at most three items of an iterator and return the first."""
    return next(iter([*islice(items, 3)]), None)


@_case
def _test_connection(run: Run) -> str | None:
    works, message = run.hook.test_connection()
    if not works:
        raise RuntimeError(message)
    return None


_plain("concurrency", "queue_status", "credit_usage", "credit_history", "token_usage", "token_history")


@_case
def _activity(run: Run) -> str | None:
    run.hook.activity(limit=3)
    return None


_plain("iter_activity")


@_case
def _request(run: Run) -> str | None:
    run.hook.request("GET", "/v2/team/queue-status", billed=False)
    return None


@_case
def _threat_policy(run: Run) -> str | None:
    run.hook.threat_policy()
    return None


@_case
def _search(run: Run) -> str | None:
    data = run.hook.search(query=QUERY, limit=1).data
    return remark(data and data.web)


@_case
def _scrape(run: Run) -> str | None:
    require_text(run.site.text, run.hook.scrape(url=run.site.page, formats=["markdown"], **CHEAP).data)
    return None


@_case
def _get_scrape(run: Run) -> str | None:
    require_text(run.site.text, run.hook.get_scrape(_scrape_id(run)).data)
    return None


@_case
def _map(run: Run) -> str | None:
    links = run.hook.map(url=run.site.root, limit=3).links or []
    require_listed(run, [link.url or "" for link in links])
    return None


@_case
def _parse(run: Run) -> str | None:
    require_text(
        FILE_TEXT, run.hook.parse(io.BytesIO(FILE), "level.html", options={"formats": ["markdown"]}).data
    )
    return None


_plain("parse_formats")


@_case
def _start_crawl(run: Run) -> str | None:
    options = {"formats": ["markdown"], **CHEAP}
    run.hook.start_crawl(url=run.site.root, limit=2, scrape_options=options)
    return None


_plain("active_crawls")


@_case
def _job_status(run: Run) -> str | None:
    state = run.ended("crawl", run.known("start_crawl", lambda answer: answer.id))
    if state.status != "completed":
        raise RuntimeError(f"the crawl ended as {state.status}")
    return None


@_case
def _iter_job_documents(run: Run) -> str | None:
    parts = run.hook.iter_job_documents("crawl", run.known("start_crawl", lambda answer: answer.id))
    require_text(run.site.text, [document for part in parts for document in part.documents])
    return None


@_case
def _job_errors(run: Run) -> str | None:
    run.hook.job_errors("crawl", run.known("start_crawl", lambda answer: answer.id))
    return None


@_case
def _start_batch_scrape(run: Run) -> str | None:
    run.hook.start_batch_scrape(urls=run.site.urls, ignore_invalid_urls=True, **CHEAP)
    return None


@_case
def _cancel_job(run: Run) -> str | None:
    job_id = run.known("start_batch_scrape", lambda answer: answer.id)
    was_running = run.hook.cancel_job("batch_scrape", job_id)
    run.ended("batch_scrape", job_id)
    return None if was_running else "it had already ended"


@_case
def _crawl_params(run: Run) -> str | None:
    run.hook.crawl_params(url=run.site.root, prompt="At most 2 pages, only below /level")
    return None


@_case
def _search_developer(run: Run) -> str | None:
    run.hook.search_developer(query="time zone of a cron schedule", k=1)
    return None


@_case
def _search_papers(run: Run) -> str | None:
    return remark(run.hook.search_papers(query="rain", k=1).results)


@_case
def _get_paper(run: Run) -> str | None:
    run.hook.get_paper(_paper_id(run))
    return None


@_case
def _read_paper(run: Run) -> str | None:
    run.hook.read_paper(_paper_id(run), "How was it measured?", k=1)
    return None


@_case
def _similar_papers(run: Run) -> str | None:
    run.hook.similar_papers(_paper_id(run), intent="rain", k=1)
    return None


@_case
def _find_tools(run: Run) -> str | None:
    return remark(_first(run.hook.find_tools(level="providers", limit=3)))


@_case
def _data_tool(run: Run) -> str | None:
    tool = _first(run.hook.find_tools(level="tools", limit=1))
    if tool is None:
        raise NotRunError("the catalog lists no capability")
    provider, _, capability = tool.address.partition("/")
    run.hook.data_tool(provider, capability)
    return None


@_case
def _run_provider(run: Run) -> str | None:
    # The only capability that is free on every server: the catalog itself.
    run.hook.run_provider([{"provider": CATALOG, "capability": FIND, "options": {"limit": 1}}])
    return None


@_case
def _open_session(run: Run) -> str | None:
    run.hook.open_session(ttl=60, record_session=True)
    return None


@_case
def _list_sessions(run: Run) -> str | None:
    run.hook.list_sessions(status="active")
    return None


@_case
def _execute(run: Run) -> str | None:
    code = f'await page.goto("{run.site.page}")\n{PRINT_PAGE}'
    ended = run.hook.execute(_session_id(run), {"code": code, "language": "node", "timeout": 30})
    if failure := ended.failure():
        raise RuntimeError(failure)
    require_text(run.site.text, ended)
    return None


@_case
def _close_session(run: Run) -> str | None:
    run.hook.close_session(_session_id(run))
    return None


@_case
def _replay(run: Run) -> str | None:
    return remark(run.hook.replay(_session_id(run)))


@_case
def _replay_page(run: Run) -> str | None:
    page_id = run.known("replay", lambda answer: answer.pages[0].page_id if answer.pages else None, "0")
    run.hook.replay_page(_session_id(run), page_id)
    return None


@_case
def _interact_with_scrape(run: Run) -> str | None:
    code = {"code": PRINT_PAGE, "language": "node", "timeout": 30}
    ended = run.hook.interact_with_scrape(_scrape_id(run), code)
    if failure := ended.failure():
        raise RuntimeError(failure)
    require_text(run.site.text, ended)
    return None


@_case
def _stop_scrape_interaction(run: Run) -> str | None:
    run.known("interact_with_scrape", lambda _: "opened")
    run.hook.stop_scrape_interaction(_scrape_id(run))
    return None


@_case
def _create_monitor(run: Run) -> str | None:
    run.hook.create_monitor(monitor(run, "hook"))
    return None


@_case
def _list_monitors(run: Run) -> str | None:
    run.hook.list_monitors(limit=1)
    return None


_plain("iter_monitors")


@_case
def _get_monitor(run: Run) -> str | None:
    run.hook.get_monitor(_monitor_id(run))
    return None


@_case
def _update_monitor(run: Run) -> str | None:
    run.hook.update_monitor(_monitor_id(run), retention_days=7)
    return None


@_case
def _run_monitor(run: Run) -> str | None:
    run.hook.run_monitor(_monitor_id(run))
    return None


@_case
def _list_monitor_checks(run: Run) -> str | None:
    run.hook.list_monitor_checks(_monitor_id(run), limit=1)
    return None


@_case
def _get_monitor_check(run: Run) -> str | None:
    run.check_ended(_monitor_id(run), _check_id(run))
    return None


@_case
def _iter_monitor_check_pages(run: Run) -> str | None:
    require_read(run, _first(run.hook.iter_monitor_check_pages(_monitor_id(run), _check_id(run))))
    return None


@_case
def _changed_pages(run: Run) -> str | None:
    event = {"monitor_id": _monitor_id(run), "check_id": _check_id(run)}
    require_read(run, _first(run.hook.changed_pages(event)))
    return None


@_case
def _delete_monitor(run: Run) -> str | None:
    run.hook.delete_monitor(_monitor_id(run))
    return None


@_case
def _inbox(run: Run) -> str | None:
    run.deliveries()
    with run.hook.inbox() as reader:
        deliveries = reader.feed().deliveries
    if not deliveries:
        raise RuntimeError(
            "no delivery of the run has arrived. Check WEBHOOK_URL and the server's webhook settings"
        )
    return None


@_case
def _start_agent(run: Run) -> str | None:
    request = {"prompt": "What is the title of the page?", "urls": [run.site.page], "max_credits": 100}
    started = run.hook.start_agent(request)
    run.hook.cancel_job("agent", str(started.id))
    run.ended("agent", str(started.id))
    return None


def monitor(run: Run, name: str) -> dict[str, Any]:
    """Return the request for a monitor of one page that is due once a week."""
    target = {"type": "scrape", "urls": [run.site.page], "scrapeOptions": {"proxy": "basic", "parsers": []}}
    return {
        "name": f"{run.name}-{name}",
        "schedule": {"cron": "0 3 * * 0", "timezone": "UTC"},
        "targets": [target],
    }


def require_listed(run: Run, urls: list[str]) -> None:
    """Require the URL of a page of the site in a map, with or without its last slash.

    :raises ContentError: it is not there.
    :raises NotRunError: the server lists only sitemaps, and the site has none.
    """
    if not urls and run.watch.server.is_self_hosted:
        raise NotRunError("needs a site with a sitemap, because a self-hosted server has no other index")
    pages = run.site.urls
    if not {url.rstrip("/") for url in urls} & {url.rstrip("/") for url in pages}:
        raise ContentError(f"the map lists none of the pages {', '.join(pages)}")


def require_read(run: Run, page: Any) -> None:
    """Require that a check read a page.

    :raises ContentError: it did not.
    """
    found = page if isinstance(page, Mapping) or page is None else page.to_wire()
    if not found or found.get("status") == "error" or (found.get("statusCode") or 200) >= 400:
        raise ContentError(f"the check did not read {run.site.page}: {found and found.get('error')}")


def _scrape_id(run: Run) -> str:
    return run.known("scrape", lambda answer: answer.data and answer.data.metadata.scrape_id)


def _paper_id(run: Run) -> str:
    return run.known("paper_search", lambda answer: answer.results[0].paper_id if answer.results else None)


def _session_id(run: Run) -> str:
    return run.known("open_session", lambda answer: answer.id)


def _monitor_id(run: Run) -> str:
    return run.known("create_monitor", lambda answer: answer.data.id)


def _check_id(run: Run) -> str:
    return run.known("run_monitor", lambda answer: answer.id or (answer.data and answer.data.id))
