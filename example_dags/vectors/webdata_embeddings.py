# SPDX-License-Identifier: Apache-2.0
"""Split and embed changed pages of a site, with the operators of Airflow's provider Common AI.

The vectors are stored in PostgreSQL with pgvector, in the connection `vectors`. The example needs no model: it hashes
the words of each text into its vector. To use a model, set `embed_model` to its name, such as "text-embedding-3-small"
(with `llm_conn_id`), or to an embedding of LlamaIndex, and `DIMENSIONS` to its size.

Tasks exchange texts and vectors by XCom; for large sites, configure an XCom backend in an object storage. Requires
`pip install 'apache-airflow-providers-common-ai[llamaindex]' apache-airflow-providers-postgres`.
"""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
import zlib
from typing import Any

import pendulum
from airflow.providers.common.ai.operators.document_loader import DocumentLoaderOperator
from airflow.providers.common.ai.operators.llamaindex_embedding import LlamaIndexEmbeddingOperator
from airflow.sdk import BaseHook, Param, dag, task

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator

CONNECTION = "vectors"
DIMENSIONS = 256


class WordHashes:
    """An embedding without a model, with the methods that the operator calls."""

    def get_text_embedding_batch(self, texts: list[str], **_: Any) -> list[list[float]]:
        """Return a vector for each text."""
        return [self._get_query_embedding(text) for text in texts]

    def _get_query_embedding(self, text: str) -> list[float]:
        counts = [0] * DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
        length = math.hypot(*counts) or 1
        return [count / length for count in counts]

    def __repr__(self) -> str:
        """Omit the address in memory, which would change the serialized DAG on each parse."""
        return f"WordHashes({DIMENSIONS})"


@dag(
    dag_id="webdata_embeddings",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    # Of a page that two runs embed at the same time, the last one wins.
    max_active_runs=1,
    params={
        "site": Param("https://river.example/", type="string", format="uri"),
        "folder": Param(
            f"file://{tempfile.gettempdir()}/webdata",
            type="string",
            description="Folder for files that all workers share, such as s3://conn_id@bucket/key.",
        ),
    },
    default_args={"retries": 2},
    tags=["webdata", "example"],
)
def webdata_embeddings():
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
    # All fields except the text become metadata, such as `id`, `url`, `change` (new, changed, or removed), and
    # `webdata_version`.
    load = DocumentLoaderOperator(
        task_id="load", source_path="{{ ti.xcom_pull('crawl')['path'] }}", json_text_field="text"
    )

    @task
    def to_embed(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # The operator embeds the metadata with each part of the text.
        return [
            {
                "text": page["text"],
                "metadata": {name: page["metadata"][name] for name in ("id", "url", "title")},
            }
            for page in pages
            if page["metadata"]["change"] != "removed"
        ]

    embed = LlamaIndexEmbeddingOperator(
        task_id="embed", documents=to_embed(load.output), embed_model=WordHashes(), chunk_size=256
    )

    @task
    def store(pages: list[dict[str, Any]], embedded: dict[str, Any]) -> str:
        """Replace the parts of changed pages, in one transaction, unless a later run has stored newer ones."""
        hook = BaseHook.get_connection(CONNECTION).get_hook()
        versions = {page["metadata"]["id"]: page["metadata"]["webdata_version"] for page in pages}
        # An empty part keeps the version of a removed page.
        empty = [
            (page["metadata"]["id"], page["metadata"]["url"], None, None)
            for page in pages
            if page["metadata"]["change"] == "removed"
        ]
        parts = [
            (part["metadata"]["id"], part["metadata"]["url"], part["text"], str(part["vector"]))
            for part in embedded["chunks"]
        ]
        with contextlib.closing(hook.get_conn()) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS web_parts "
                f"(page text, url text, text text, embedding vector({DIMENSIONS}), version bigint)"
            )
            cursor.executemany("DELETE FROM web_parts WHERE page = %s AND version <= %s", versions.items())
            cursor.executemany(
                "INSERT INTO web_parts SELECT %s, %s, %s, %s::vector, %s "
                "WHERE NOT EXISTS (SELECT FROM web_parts WHERE page = %s AND version > %s)",
                [(*part, version := versions[part[0]], part[0], version) for part in [*parts, *empty]],
            )
            connection.commit()
        return f"{len(parts)} parts of {embedded['document_count']} pages; {len(pages)} pages differ"

    crawl >> load
    store(load.output, embed.output)


webdata_embeddings()
