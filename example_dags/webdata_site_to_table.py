# SPDX-License-Identifier: Apache-2.0
"""Turn a site into a table: list its pages, scrape them in batches, and write one Parquet file per batch.

Each batch is one job at the service and one mapped task. The tasks share the pool `webdata`, which limits the
concurrent jobs of all DAGs. Create it before the first run:

    airflow pools set webdata 8 "Jobs at the web data service" --include-deferred

Deferred tasks must count, because a job continues while its task waits without a worker. Parquet needs
`pip install pyarrow`.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pendulum
from airflow.sdk import ObjectStoragePath, Param, dag, task

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator


@dag(
    dag_id="webdata_site_to_table",
    schedule="@weekly",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    params={
        "site": Param("https://river.example/", type="string", format="uri"),
        # A list maps to at most 1024 tasks: [core] max_map_length.
        "pages_per_batch": Param(
            5, type="integer", minimum=1, description="Pages that a retry of a failed batch scrapes again."
        ),
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Folder for files that all workers share, such as s3://conn_id@bucket/key.",
        ),
    },
    tags=["webdata", "example"],
)
def webdata_site_to_table():
    find_pages = WebDataMapOperator(
        task_id="find_pages",
        url="{{ params.site }}",
        sitemap="include",
        limit=1000,
        returns="urls",
    )

    @task
    def batches(urls: list[str], params: dict[str, Any]) -> list[list[str]]:
        # Sorted, so that a batch has the same pages on a retry.
        urls, size = sorted(set(urls)), params["pages_per_batch"]
        return [urls[start : start + size] for start in range(0, len(urls), size)]

    scrape = WebDataBatchScrapeOperator.partial(
        task_id="scrape",
        pool="webdata",
        formats=["markdown"],
        # Without this, pages may be up to two days old, from the service's cache.
        max_age=0,
        # Browsers per batch. The team shares its browsers among all jobs.
        max_concurrency=5,
        # The batch fails if more than a tenth of its pages do; the results are still in its file.
        max_error_ratio=0.1,
        save_to="{{ params.folder }}/{{ dag.dag_id }}/*.parquet",
        deferrable=True,
        retries=2,
    ).expand(urls=batches(find_pages.output))

    @task
    def report(scraped: list[dict[str, Any]]) -> str:
        """Read the files of all batches as one table."""
        import pyarrow
        from pyarrow import parquet

        tables = []
        for batch in scraped:
            with ObjectStoragePath(batch["path"]).open("rb") as file:
                tables.append(parquet.read_table(file, columns=["source_url", "title", "markdown"]))
        table = pyarrow.concat_tables(tables)
        characters = sum(len(text or "") for text in table["markdown"].to_pylist())
        pages = table.select(["source_url", "title"]).sort_by("source_url").to_pylist()
        summary = f"{table.num_rows} pages in {len(tables)} files, {characters} characters"
        return "\n".join([summary, *(f"{page['title']} {page['source_url']}" for page in pages)])

    report(scrape.output)


webdata_site_to_table()
