# SPDX-License-Identifier: Apache-2.0
"""Files that the service parses."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.api.models.parse import FILE_EXTENSIONS, MAX_FILE_BYTES, has_known_extension


@pytest.mark.rule("parse-extension")
def test_the_extensions_of_the_documentation() -> None:
    assert " ".join(FILE_EXTENSIONS) == (
        ".html .htm .xhtml .pdf .docx .doc .docm .odt .ods .odp .rtf .xlsx .xls .xlsm .xlsb .pptx .ppt .pptm "
        ".epub .csv"
    )
    assert MAX_FILE_BYTES == 52_428_800
    for extension in FILE_EXTENSIONS:
        assert has_known_extension(f"report{extension}")
        assert has_known_extension(f"/a.dir/REPORT.2026{extension.upper()}")
        assert not has_known_extension(f"report{extension}.bak")


@pytest.mark.rule("parse-extension")
@pytest.mark.parametrize("name", ["report", "", ".pdf", "report.", "report.png", "a.pdf/b"])
def test_other_files(name: str) -> None:
    assert not has_known_extension(name)
