# SPDX-License-Identifier: Apache-2.0
"""PDF files, written by hand."""

from __future__ import annotations

import re

FONT = "/Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding"


def pdf(
    *contents: bytes,
    font: str = FONT,
    extra: bytes = b"",
    how: str = "",
    resources: str = "",
    trailer: str = "",
) -> bytes:
    """Return a PDF of one page for each content stream.

    :param how: filters of the streams, each already applied to the content.
    """
    kids = " ".join(f"{10 + number} 0 R" for number in range(len(contents)))
    objects = [
        b"1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj",
        f"2 0 obj << /Type /Pages /Kids [{kids}] /Resources << /Font << /F1 3 0 R >> {resources} >> >> endobj".encode(),
        f"3 0 obj << /Type /Font {font} >> endobj".encode(),
    ]
    for number, content in enumerate(contents):
        objects.append(f"{10 + number} 0 obj << /Type /Page /Contents {1000 + number} 0 R >> endobj".encode())
        head = f"{1000 + number} 0 obj << /Length {len(content)} {how} >> stream\n"
        objects.append(head.encode() + content + b"\nendstream endobj")
    return sealed(b"%PDF-1.4\n" + b"\n".join(objects) + extra + b"\n", trailer)


def sealed(body: bytes, trailer: str = "") -> bytes:
    """Return a PDF with the table that says where its objects are; of two with one number it names the later."""
    places = {int(found[1]): found.start() for found in re.finditer(rb"^(\d+) 0 obj", body, re.MULTILINE)}
    table = "".join(f"{number} 1\n{place:010} 00000 n \n" for number, place in sorted(places.items()))
    head = f"trailer << /Root 1 0 R /Size {max(places) + 1} {trailer} >>"
    return body + f"xref\n{table}{head}\nstartxref\n{len(body)}\n%%EOF\n".encode()
