# SPDX-License-Identifier: Apache-2.0
"""Synchronize a vector store with a site: embed new and changed pages, and mark removed ones.

The store is PostgreSQL with pgvector, in the connection `vectors`. The example needs no model: it hashes the words of
each page into its vector. To use a model, call it in `embedding`, split longer pages there, and set `DIMENSIONS` to the
size of its vectors.

Requires `pip install apache-airflow-providers-postgres`.
"""

from __future__ import annotations

import math
import re
import tempfile
import zlib
from typing import Any

import pendulum
from airflow.sdk import BaseHook, Param, dag, task

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator

CONNECTION = "vectors"
DIMENSIONS = 256


def embedding(text: str) -> str:
    """Return the vector of a text in pgvector's notation."""
    counts = [0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    length = math.hypot(*counts) or 1
    return str([count / length for count in counts])


@dag(
    dag_id="webdata_pgvector",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    # Of a page that two runs embed at the same time, the last one wins.
    max_active_runs=1,
    params={
        "site": Param("https://river.example/", type="string", format="uri"),
        "question": Param("How high is the water at the bridge?", type="string"),
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Folder for files that all workers share, such as s3://conn_id@bucket/key.",
        ),
    },
    default_args={"retries": 2},
    tags=["webdata", "example"],
)
def webdata_pgvector():
    crawl = WebDataCrawlOperator(
        task_id="crawl",
        url="{{ params.site }}",
        limit=100,
        deferrable=True,
        # Without this, a change may show two days late, from the service's cache.
        scrape_options={"max_age": 0},
        # If a later task fails, the next run emits these pages again.
        changes="{{ params.folder }}/seen",
        save_to="{{ params.folder }}/{{ dag.dag_id }}/*.jsonl",
        documents=True,
    )
    # It creates the table. Columns that are missing in the file are unchanged.
    load = WebDataToTableOperator(task_id="load", path=crawl.output, table="web_pages", conn_id=CONNECTION)

    @task
    def embed() -> int:
        """Embed the pages whose text has no vector yet; an attempt continues where the previous one ended."""
        hook = BaseHook.get_connection(CONNECTION).get_hook()
        hook.run(
            [
                "CREATE EXTENSION IF NOT EXISTS vector",
                f"ALTER TABLE web_pages ADD COLUMN IF NOT EXISTS embedding vector({DIMENSIONS})",
                # The digest of the embedded text.
                "ALTER TABLE web_pages ADD COLUMN IF NOT EXISTS embedded text",
            ]
        )
        stale = hook.get_records(
            "SELECT page, text, digest FROM web_pages "
            "WHERE webdata_removed_at IS NULL AND embedded IS DISTINCT FROM digest"
        )
        for page, text, digest in stale:
            hook.run(
                "UPDATE web_pages SET embedding = %s::vector, embedded = %s WHERE page = %s",
                parameters=(embedding(text), digest, page),
            )
        return len(stale)

    @task
    def report(embedded: int, params: dict[str, Any]) -> str:
        hook = BaseHook.get_connection(CONNECTION).get_hook()
        nearest = hook.get_records(
            "SELECT title, url FROM web_pages WHERE webdata_removed_at IS NULL "
            "ORDER BY embedding <=> %s::vector, url LIMIT 3",
            parameters=(embedding(params["question"]),),
        )
        summary = f"{embedded} pages embedded; nearest to {params['question']!r}:"
        return "\n".join([summary, *(f"{title} {url}" for title, url in nearest)])

    embedded = embed()
    crawl >> load >> embedded
    report(embedded)


webdata_pgvector()
