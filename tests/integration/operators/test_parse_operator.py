# SPDX-License-Identifier: Apache-2.0
"""Files turned into text."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.api.errors import TransportError
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.results.tables.items import ResultsFile
from airflow_provider_webdata.results.tables.layout import layout, table_name
from tests.support import direct
from tests.support.direct import TaskInstance, context_of

IMPORT = "from airflow_provider_webdata.operators.parse import WebDataParseOperator"
HTML = "<html><head><title>Report</title></head><body><h1>Report</h1><p>Wheat is up.</p></body></html>"
SHA256 = hashlib.sha256(HTML.encode()).hexdigest()
PARSE = "/v2/parse"


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text(HTML)
    return path


def parse(file, **arguments):
    return WebDataParseOperator(task_id="parse", file=str(file), **arguments)


def test_a_file_in_a_real_airflow(run_dag, sandbox, report):
    """The file arrives byte by byte, under its name."""
    done = run_dag(
        f"""
        WebDataParseOperator(
            task_id="parse", file="{{{{ '{report}' }}}}", formats=["markdown", "links"], timeout="{{{{ 5000 }}}}",
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    assert "Wheat is up." in done.xcom["parse.return_value"]["markdown"]
    assert done.xcom["parse.credits_used"] == 1
    (sent,) = sandbox.control.requests(PARSE)
    assert sent["body"]["file"]["filename"] == "report.html"
    assert sent["body"]["file"]["sha256"] == SHA256
    assert json.loads(sent["body"]["options"]) == {"formats": ["markdown", "links"], "timeout": 5000}


@pytest.mark.parametrize("address", ["{}", "file://{}"], ids=["path", "file URL"])
def test_a_file_by_its_address(here, report, address):
    assert "Wheat is up." in direct.run(parse(address.format(report))).value["markdown"]
    (sent,) = here.control.requests(PARSE)
    assert sent["body"]["file"]["sha256"] == SHA256


def test_a_filename_and_an_output(here, tmp_path):
    """A file whose name says nothing gets one that does."""
    blob = tmp_path / "blob"
    blob.write_text("a,b\n1,2\n")
    task = parse(blob, filename="{{ 'table' }}.csv", save_to=f"{tmp_path}/out.jsonl")
    assert direct.run(task).value["count"] == 1
    (item,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert item["metadata"]["sourceFile"] == "table.csv"


@pytest.mark.parametrize("end", ["jsonl", "csv"])
def test_a_parsed_file_has_a_key_in_tables(here, report, tmp_path, end):
    """Its path, since two files may have the same name."""
    path = f"{tmp_path}/out.{end}"
    direct.run(parse(report, save_to=path))
    with ResultsFile(path) as file:
        made = layout(table_name("t"), file.columns, None, None, replace=False)
        [row] = file.rows()
    assert (made.key, row["source_url"], row["source_file"]) == (("source_url",), str(report), "report.html")


def test_a_parsed_file_is_named_in_xcom(here, report):
    assert direct.run(parse(report)).value["metadata"]["sourceURL"] == str(report)


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.rule("parse-extension", "parse-size")
@pytest.mark.parametrize(
    ("name", "size", "arguments", "words"),
    [
        ("notes.txt", 10, {}, "file: must end with one of .html"),
        ("notes", 10, {}, "file: must end with one of .html"),
        ("empty.pdf", 0, {}, "is empty"),
        ("big.pdf", MAX_FILE_BYTES + 1, {"upload": "form"}, f"must have at most {MAX_FILE_BYTES} bytes"),
    ],
    ids=["ending", "no ending", "empty", "large"],
)
def test_a_file_that_the_service_would_refuse_is_not_sent(here, tmp_path, name, size, arguments, words):
    with pytest.raises(AirflowFailException, match=words):
        parse(sparse(tmp_path / name, size), **arguments).execute(context_of(TaskInstance()))
    assert here.control.requests() == []


@pytest.mark.rule("parse-upload", "parse-size")
def test_a_file_that_is_too_large_for_a_form_is_offered_by_reference(here, tmp_path):
    """The service says what it takes, before the file is sent."""
    outcome = direct.run(parse(sparse(tmp_path / "big.pdf", MAX_FILE_BYTES + 1), retries=2))
    assert outcome.ended == ("failed", 1)
    assert f"must be less than or equal to {MAX_FILE_BYTES}" in str(outcome.error)
    (sent,) = here.control.requests()
    assert (sent["path"], sent["body"]) == (
        "/v2/parse/upload-url",
        {"filename": "big.pdf", "declaredSizeBytes": MAX_FILE_BYTES + 1},
    )


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize("quirks", [[], ["upload-form"]], ids=str)
def test_by_reference(here, report, quirks, log):
    here.control.set_quirks(quirks)
    task = parse(report, formats=["markdown"], upload="reference", extra_body={"fastMode": True})
    document = direct.run(task).value
    assert "Wheat is up." in document["markdown"]
    assert document["metadata"]["sourceFile"] == "report.html"
    _, stored, parsed = here.control.requests()
    assert stored["method"] == ("POST" if quirks else "PUT")
    assert "authorization" not in stored["headers"]
    reference = parsed["body"].pop("uploadRef")
    assert parsed["body"] == {"formats": ["markdown"], "fastMode": True}
    assert reference not in log()


def test_upload_is_checked():
    with pytest.raises(ValueError, match="upload must be one of auto, form, reference"):
        parse("a.pdf", upload="post")


def test_a_folder_is_no_file(here, tmp_path):
    (tmp_path / "folder.pdf").mkdir()
    outcome = direct.run(parse(tmp_path / "folder.pdf"))
    assert outcome.state == "failed"
    assert "is a folder" in str(outcome.error)
    assert here.control.requests() == []


@pytest.mark.rule("parse-proxy")
def test_options_are_checked_before_the_file_is_read(here, tmp_path):
    with pytest.raises(AirflowFailException, match="proxy"):
        direct.execute(parse(tmp_path / "none.html", proxy="{{ 'enhanced' }}"), context_of(TaskInstance()))
    assert here.control.requests() == []


def test_a_missing_file_is_retried(here, report):
    """It may be about to arrive: the task's own retries say how long to wait."""
    late = report.with_name("late.html")

    def arrive(number):
        if number == 2:
            report.rename(late)

    assert direct.run(parse(late, retries=1), before_try=arrive).ended == ("success", 2)
    assert len(here.control.requests(PARSE)) == 1


def test_a_missing_file_is_named_with_the_next_step(here, report):
    late = report.with_name("late.html")
    error = direct.run(parse(late)).error
    assert isinstance(error, FileNotFoundError)
    assert error.help_code == "WD-065"
    told = " ".join(str(error).split())
    assert re.search(
        rf"{late} cannot be read: .*No such file.*\. Create the file, or correct the path\. ", told
    )
    assert here.control.requests() == []


@pytest.mark.rule("repeat-rate-limit")
def test_sent_again_whole_after_a_refusal(here, report):
    """A 429 took nothing: the client rewinds the file and sends it anew."""
    here.control.add_fault("status", path=PARSE, status=429, headers={"Retry-After": "0"})
    assert direct.run(parse(report)).ended == ("success", 1)
    sent = here.control.requests(PARSE)
    assert [request["status"] for request in sent] == [429, 200]
    assert sent[1]["body"]["file"]["sha256"] == SHA256


@pytest.mark.rule("large-documents-again")
def test_a_large_document_brings_the_task_back_and_is_billed_once(here, connect, report):
    connect(here, retry_budget=1)
    body = {
        "success": False,
        "code": "SCRAPE_TIMEOUT",
        "error": "still working",
        "details": {"state": "processing_continues", "jobStatus": "running", "retryAfterSeconds": 5},
    }
    here.control.add_fault("status", path=PARSE, status=408, body=body)
    outcome = direct.run(parse(report))
    assert (*outcome.ended, outcome.reschedules) == ("success", 1, 1)
    assert [request["status"] for request in here.control.requests(PARSE)] == [408, 200]


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(here, report):
    here.control.add_fault("drop_after_work", path=PARSE, times=None)
    with pytest.raises(TransportError):
        parse(report).execute(context_of(TaskInstance()))
    assert len(here.control.requests(PARSE)) == 1
