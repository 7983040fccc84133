"""Files turned into text, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import hashlib
import json

import pytest

from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES

IMPORT = "from airflow_provider_webdata.operators.parse import WebDataParseOperator"
HTML = "<html><head><title>Report</title></head><body><h1>Report</h1><p>Wheat is up.</p></body></html>"
PARSE = "/v2/parse"


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text(HTML)
    return path


ADDRESSES = {"path": "{path}", "file URL": "file://{path}", "template": "{{{{ '{path}' }}}}"}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_a_file_from_wherever_it_is(run_dag, sandbox, report, address):
    """What arrives is the file, byte by byte, under its name."""
    done = run_dag(
        f"""
        WebDataParseOperator(
            task_id="parse", file="{address.format(path=report)}", formats=["markdown", "links"],
            timeout="{{{{ 5000 }}}}",
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    assert "Wheat is up." in done.xcom["parse.return_value"]["markdown"]
    assert done.xcom["parse.creditsUsed"] == 1
    (sent,) = sandbox.control.requests(PARSE)
    assert sent["body"]["file"]["filename"] == "report.html"
    assert sent["body"]["file"]["sha256"] == hashlib.sha256(HTML.encode()).hexdigest()
    assert json.loads(sent["body"]["options"]) == {"formats": ["markdown", "links"], "timeout": 5000}


def test_a_name_of_its_own_and_an_output(run_dag, sandbox, tmp_path):
    """A file whose name says nothing gets one that does."""
    blob = tmp_path / "blob"
    blob.write_text("a,b\n1,2\n")
    done = run_dag(
        f"""
        WebDataParseOperator(
            task_id="parse", file="{blob}", filename="{{{{ 'table' }}}}.csv", output="{tmp_path}/out.jsonl"
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    assert done.xcom["parse.return_value"]["count"] == 1
    (item,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert item["metadata"]["sourceFile"] == "table.csv"


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return path


REFUSED = {
    "ending": ("notes.txt", 10, "file: must end with one of .html"),
    "no ending": ("notes", 10, "file: must end with one of .html"),
    "empty": ("empty.pdf", 0, "is empty"),
}


@pytest.mark.rule("parse-extension", "parse-size")
@pytest.mark.parametrize(("name", "size", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_service_would_not_take_is_not_sent(run_dag, sandbox, tmp_path, name, size, words):
    path = sparse(tmp_path / name, size)
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{path}', retries=2)", before=IMPORT)
    assert done.run["tasks"]["parse"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert sandbox.control.requests() == []


@pytest.mark.rule("parse-size")
def test_what_is_too_large_for_a_form(run_dag, sandbox, tmp_path):
    path = sparse(tmp_path / "big.pdf", MAX_FILE_BYTES + 1)
    done = run_dag(
        f"WebDataParseOperator(task_id='parse', file='{path}', upload='form', retries=2)", before=IMPORT
    )
    assert done.run["tasks"]["parse"] == {"state": "failed", "try_number": 1}
    assert f"at most {MAX_FILE_BYTES} bytes are taken" in done.log
    assert sandbox.control.requests() == []


@pytest.mark.rule("parse-upload", "parse-size")
def test_what_is_too_large_for_a_form_is_offered_by_reference(run_dag, sandbox, tmp_path):
    """The service says what it takes, before the file is sent."""
    path = sparse(tmp_path / "big.pdf", MAX_FILE_BYTES + 1)
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{path}', retries=2)", before=IMPORT)
    assert done.run["tasks"]["parse"] == {"state": "failed", "try_number": 1}
    assert f"must be less than or equal to {MAX_FILE_BYTES}" in done.log
    (sent,) = sandbox.control.requests()
    assert (sent["path"], sent["body"]) == (
        "/v2/parse/upload-url",
        {"filename": "big.pdf", "declaredSizeBytes": MAX_FILE_BYTES + 1},
    )


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize("quirks", [[], ["upload-form"]])
def test_by_reference(run_dag, sandbox, report, quirks):
    sandbox.control.set_quirks(quirks)
    done = run_dag(
        f"""
        WebDataParseOperator(
            task_id="parse", file="{report}", formats=["markdown"], upload="reference", extra_body={{"fastMode": True}}
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    assert "Wheat is up." in done.xcom["parse.return_value"]["markdown"]
    assert done.xcom["parse.return_value"]["metadata"]["sourceFile"] == "report.html"
    _, stored, parsed = sandbox.control.requests()
    assert stored["method"] == ("POST" if quirks else "PUT")
    assert "authorization" not in stored["headers"]
    reference = parsed["body"].pop("uploadRef")
    assert parsed["body"] == {"formats": ["markdown"], "fastMode": True}
    assert reference not in done.log


def test_upload_is_checked():
    from airflow_provider_webdata.operators.parse import WebDataParseOperator

    with pytest.raises(ValueError, match="upload must be one of auto, form, reference"):
        WebDataParseOperator(task_id="t", file="a.pdf", upload="post")


def test_a_folder_is_no_file(run_dag, sandbox, tmp_path):
    (tmp_path / "folder.pdf").mkdir()
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{tmp_path}/folder.pdf')", before=IMPORT)
    assert done.state("parse") == "failed"
    assert "is a folder" in done.log
    assert sandbox.control.requests() == []


@pytest.mark.rule("parse-proxy")
def test_options_are_checked_before_the_file_is_read(run_dag, sandbox, report):
    done = run_dag(
        f"WebDataParseOperator(task_id='parse', file='{report}', proxy='{{{{ \"enhanced\" }}}}', retries=1)",
        before=IMPORT,
    )
    assert done.run["tasks"]["parse"] == {"state": "failed", "try_number": 1}
    assert "proxy" in done.log
    assert sandbox.control.requests() == []


def test_a_file_that_is_yet_to_come_is_retried(run_dag, sandbox, tmp_path):
    """It may be about to arrive: the task's own retries say how long to wait."""
    done = run_dag(
        f"""
        WebDataParseOperator(
            task_id="parse", file="{tmp_path}/late.html", retries=1, retry_delay=datetime.timedelta(0),
            pre_execute=arrive,
        )
        """,
        before=IMPORT
        + f"""

def arrive(context):
    if context["ti"].try_number == 2:
        open("{tmp_path}/late.html", "w").write("<p>Here.</p>")
""",
    )
    assert done.run["tasks"]["parse"] == {"state": "success", "try_number": 2}
    assert len(sandbox.control.requests(PARSE)) == 1


@pytest.mark.rule("repeat-rate-limit")
def test_sent_again_whole_after_a_refusal(run_dag, sandbox, report):
    """A 429 took nothing: the client rewinds the file and sends it anew."""
    sandbox.control.add_fault("status", path=PARSE, status=429, headers={"Retry-After": "0"})
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{report}')", before=IMPORT)
    assert done.run["tasks"]["parse"] == {"state": "success", "try_number": 1}
    sent = sandbox.control.requests(PARSE)
    assert [request["status"] for request in sent] == [429, 200]
    assert sent[1]["body"]["file"]["sha256"] == hashlib.sha256(HTML.encode()).hexdigest()


@pytest.mark.rule("large-documents-again")
def test_a_large_document_brings_the_task_back_and_is_billed_once(run_dag, sandbox, report):
    body = {
        "success": False,
        "code": "SCRAPE_TIMEOUT",
        "error": "still working",
        "details": {"state": "processing_continues", "jobStatus": "running", "retryAfterSeconds": 5},
    }
    sandbox.control.add_fault("status", path=PARSE, status=408, body=body)
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{report}')", before=IMPORT, retry_budget=1)
    assert done.run["tasks"]["parse"] == {"state": "success", "try_number": 1}
    assert len(done.run["reschedules"]) == 1
    assert [request["status"] for request in sandbox.control.requests(PARSE)] == [408, 200]


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(run_dag, sandbox, report):
    sandbox.control.add_fault("drop_after_work", path=PARSE, times=None)
    done = run_dag(f"WebDataParseOperator(task_id='parse', file='{report}')", before=IMPORT)
    assert done.state("parse") == "failed"
    assert len(sandbox.control.requests(PARSE)) == 1
