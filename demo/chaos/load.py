# SPDX-License-Identifier: Apache-2.0
"""The load during the faults: deliveries to both inboxes, a reader of each inbox, and runs of the DAG."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx

from airflow_provider_webdata.inbox.reader import InboxAddress, InboxError, InboxReader
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url

if TYPE_CHECKING:
    from demo.chaos.stack import ChaosStack
    from webdata_sandbox.control import SandboxControl

DAG = "webdata_chaos"
EVENT_DAGS = ("webdata_chaos_on_webdata_default", "webdata_chaos_on_webdata_other_api_server")
SITE = "https://chaos.example/p"
JOBS_PER_RUN = 4
"""Crawls and batch scrapes."""
PAGES_PER_JOB = 100
CONCURRENT_JOBS = 4
# Number of one-page jobs that start together and complete together.
BURST = 5


def run_id_of(number: int) -> str:
    """Return the id of a run."""
    return f"chaos__{number}"


def page_of(number: int) -> str:
    """Return the page of a run that is no page of its crawls and batch scrapes."""
    return f"{SITE}/{900_000 + number}"


def query_of(number: int) -> str:
    """Return the query of a run; those of its batch search begin with it."""
    return f"page {900_000 + number} of chaos"


def monitor_of(number: int) -> str:
    """Return the name of a run's monitor."""
    return f"chaos {number}"


class Load:
    """Deliveries, readers, and runs in separate threads, until they are stopped.

    :ivar runs: ids of the DAG's runs.
    :ivar urls: pages of the runs' crawls and batch scrapes.
    :ivar calls: requests of searches and scrapes, by their number.
    :ivar read: number of times that each delivery was read, by id.
    """

    def __init__(self, stack: ChaosStack, sandbox: SandboxControl, pause: float) -> None:
        self.runs: list[str] = []
        self.urls: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.read: Counter[int] = Counter()
        self._stack, self._sandbox, self._pause = stack, sandbox, pause
        self._ending = threading.Event()
        self._drained = threading.Event()
        self._service = httpx.Client(
            base_url=stack.sandbox_url, headers={"authorization": f"Bearer {stack.api_key}"}, timeout=60
        )
        # Not the default number of threads, which depends on the machine.
        self._threads = ThreadPoolExecutor(8)
        self._feeders: list[Future[None]] = []
        self._readers: list[Future[None]] = []

    def __enter__(self) -> Load:
        """Start the threads."""
        self._feeders = [self._threads.submit(self._feed), self._threads.submit(self._run)]
        self._watcher = self._threads.submit(self._watch)
        self._readers = [self._threads.submit(self._read, *inbox) for inbox in self._stack.inboxes.items()]
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads."""
        self._ending.set()
        self._drained.set()
        self._threads.shutdown()
        self._service.close()

    def stop_feeding(self) -> None:
        """Stop starting jobs and runs; return when the last start has ended."""
        self._ending.set()
        for feeder in self._feeders:
            feeder.result()

    def stop_reading(self) -> None:
        """Return when the readers have read all deliveries."""
        self._drained.set()
        for reader in (*self._readers, self._watcher):
            reader.result()

    def _feed(self) -> None:
        """Keep jobs running that send a delivery for every page, alternately to both inboxes."""
        running: list[str] = []
        targets = itertools.cycle(self._stack.inboxes.items())
        # Different pages than those that the tasks crawl.
        pages = itertools.count(500_000)
        while not self._ending.wait(0.5):
            running = [job for job in running if self._status(job) == "scraping"]
            if len(running) < CONCURRENT_JOBS:
                conn_id, url = next(targets)
                webhook = {
                    "url": delivery_url(url, conn_id, None),
                    "headers": {SECRET_HEADER: self._stack.webhook_secret},
                    "events": ["started", "page", "completed"],
                }
                for size in (PAGES_PER_JOB, *[1] * BURST):
                    body = {"urls": [f"{SITE}/{next(pages)}" for _ in range(size)], "webhook": webhook}
                    job = self._call("POST", "/v2/batch/scrape", json=body)["id"]
                    running += [job] if size > 1 else []

    def _status(self, job: str) -> str:
        return str(self._call("GET", f"/v2/batch/scrape/{job}?limit=1")["status"])

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        response = self._service.request(method, path, **kwargs)
        response.raise_for_status()
        return response.json()

    def _run(self) -> None:
        """Start runs of the DAG periodically, through any API server that is alive."""
        pages = itertools.count(1)
        while not self._ending.wait(self._pause):
            urls = [f"{SITE}/{next(pages)}" for _ in range(JOBS_PER_RUN)]
            number = len(self.runs) + 1
            run_id = run_id_of(number)
            while not self._triggered(run_id, urls, number):
                if self._drained.wait(1):
                    return
            self.runs.append(run_id)
            self.urls += urls

    def _triggered(self, run_id: str, urls: list[str], number: int) -> bool:
        conf = {
            "urls": urls,
            "page": page_of(number),
            "query": query_of(number),
            "monitor": monitor_of(number),
        }
        try:
            self._stack.api.trigger(DAG, conf, run_id=run_id)
        except httpx.HTTPStatusError as error:
            # An earlier attempt created the run, but its response was lost.
            return error.response.status_code == httpx.codes.CONFLICT
        except httpx.HTTPError:
            return False
        return True

    def _watch(self) -> None:
        """Read the sandbox's log of calls without a job before it drops the oldest."""
        while True:
            last = self._drained.wait(5)
            found = self._sandbox.requests("/v2/(search|scrape)$", "POST")
            self.calls |= {call["number"]: call for call in found}
            if last:
                return

    def _read(self, conn_id: str, url: str) -> None:
        """Read the feed from the start, as triggers do."""
        cursor = None
        address = InboxAddress(url, conn_id, self._stack.webhook_secret)
        with InboxReader(address) as reader:
            while True:
                last = self._drained.is_set()
                try:
                    page = reader.feed(cursor, 0 if last else 5.0, limit=1000)
                except InboxError:
                    time.sleep(0.5)
                    continue
                cursor = page.cursor
                self.read.update(delivery.id for delivery in page.deliveries)
                if last and not page.deliveries:
                    return
