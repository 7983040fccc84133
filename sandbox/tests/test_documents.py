# SPDX-License-Identifier: Apache-2.0
"""What the sandbox reads out of files: of each kind, and of broken, hostile and unreadable ones."""

from __future__ import annotations

import base64
import contextlib
import io
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from tests.support.pdf import pdf
from tests.support.tables import each_row
from webdata_sandbox.engine import office
from webdata_sandbox.engine import pdf as sandbox_pdf
from webdata_sandbox.engine.documents import KINDS, convert, kind_of
from webdata_sandbox.engine.html import to_markdown
from webdata_sandbox.reference.errors import ServiceError, UnsupportedHereError

FILES = Path(__file__).parent / "files"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "draw")
)
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


def archive(**parts: str | bytes) -> bytes:
    """Return a ZIP; ``__`` in a name stands for a slash and ``_dot_`` for a dot."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return target.getvalue()


def relations(**targets: str) -> str:
    items = "".join(f'<Relationship Id="{key}" Target="{target}"/>' for key, target in targets.items())
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{items}</Relationships>'


def word(body: str, **links: str) -> bytes:
    return archive(
        word__document_dot_xml=f"<w:document {W} {R}><w:body>{body}</w:body></w:document>",
        word___rels__document_dot_xml_dot_rels=relations(**links),
    )


def paragraph(text: str, style: str = "", *, item: bool = False) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    properties += '<w:numPr><w:numId w:val="1"/></w:numPr>' if item else ""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def excel(rows: str, shared: str = "") -> bytes:
    return archive(
        xl__workbook_dot_xml=f'<workbook {R}><sheet name="Lev&amp;els" sheetId="1" r:id="rId1"/></workbook>',
        xl___rels__workbook_dot_xml_dot_rels=relations(rId1="worksheets/sheet1.xml"),
        xl__sharedStrings_dot_xml=f"<sst>{shared}</sst>",
        xl__worksheets__sheet1_dot_xml=f"<worksheet><sheetData>{rows}</sheetData></worksheet>",
    )


def open_document(body: str) -> bytes:
    return archive(
        content_dot_xml=f"<office:document {ODF} {XLINK}><office:body>{body}</office:body></office:document>"
    )


WORD_BODY = (
    paragraph("Report", "Title")
    + paragraph("Levels", "Heading2")
    + "<w:p><w:r><w:t>At </w:t></w:r><w:hyperlink r:id='rId7'><w:r><w:t>the bridge</w:t></w:r></w:hyperlink>"
    "<w:r><w:tab/><w:t>&lt;412&gt;</w:t></w:r></w:p>"
    + paragraph("one", item=True)
    + paragraph("two", item=True)
    + "<w:sdt><w:sdtContent>"
    + paragraph("in a field")
    + "</w:sdtContent></w:sdt>"
    + f"<w:tbl><w:tr><w:tc>{paragraph('Gauge')}</w:tc><w:tc>{paragraph('cm')}</w:tc></w:tr></w:tbl>"
    + paragraph("last", item=True)
)
EXCEL_ROWS = (
    '<row><c r="A1" t="s"><v>0</v></c><c r="C1"><v>412</v></c></row>'
    '<row><c r="B2" t="inlineStr"><is><t>a &lt; b</t></is></c><c r="C2" t="b"><v>1</v></c></row>'
)
SLIDE = (
    f"<p:sld {P} {A}><p:cSld><p:spTree>"
    '<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>'
    "<p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    "<p:sp><p:txBody><a:p><a:r><a:t>first</a:t></a:r></a:p><a:p><a:r><a:t>second</a:t></a:r></a:p></p:txBody></p:sp>"
    "</p:spTree></p:cSld></p:sld>"
)
TEXT_BODY = (
    '<office:text><text:h text:outline-level="2">Levels</text:h>'
    '<text:p>At <text:a xlink:href="https://weather.example/levels">the bridge</text:a>,'
    "<text:s/>412 &lt;cm&gt;</text:p>"
    "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
    "<table:table><table:table-row><table:table-cell><text:p>Gauge</text:p></table:table-cell>"
    "</table:table-row></table:table>"
    "</office:text>"
)
SHEET_BODY = (
    '<office:spreadsheet><table:table table:name="Levels"><table:table-row>'
    '<table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"/>'
    '<table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell>'
    '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
    '<table:table-row table:number-rows-repeated="1000000"><table:table-cell/></table:table-row>'
    "</table:table></office:spreadsheet>"
)
CHAPTERS = {
    "META_INF": '<container><rootfiles><rootfile full-path="book/content.opf"/></rootfiles></container>',
    "opf": '<package><manifest><item id="b" href="b.xhtml"/><item id="a" href="a.xhtml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
}

READABLE: list[tuple[str, bytes, str]] = [
    ("html", b"<h1>Levels</h1><p>412 <b>cm</b></p>", "# Levels\n\n412 **cm**"),
    ("htm", "<p>Größe</p>".encode("utf-16"), "Größe"),
    ("html", '<meta charset="iso-8859-1"><p>Größe</p>'.encode("latin-1"), "Größe"),
    ("html", "<p>Größe</p>".encode("cp1252"), "Größe"),
    ("html", b'<meta charset="no-such-thing"><p>x</p>', "x"),
    ("xhtml", b'<?xml version="1.0" encoding="utf-8"?><html><body><p>a</p><br/></body></html>', "a"),
    ("csv", b"gauge,cm\nbridge,412\n", "| gauge | cm |\n| --- | --- |\n| bridge | 412 |"),
    ("csv", b'gauge;"a, b"\r\nx;"two\nlines"\r\n', "| gauge | a, b |\n| --- | --- |\n| x | two lines |"),
    ("csv", b"\xef\xbb\xbfa\tb\n", "| a | b |\n| --- | --- |"),
    ("csv", b"<b>,a|b\n", "| <b> | a\\|b |\n| --- | --- |"),
    ("csv", b"", ""),
    (
        "docx",
        word(WORD_BODY, rId7="https://weather.example/levels"),
        "# Report\n\n## Levels\n\nAt [the bridge](https://weather.example/levels) <412>\n\n- one\n- two\n\n"
        "in a field\n\n| Gauge | cm |\n| --- | --- |\n\n- last",
    ),
    ("docm", word(paragraph("x")), "x"),
    (
        "xlsx",
        excel(EXCEL_ROWS, "<si><r><t>Brid</t></r><r><t>ge</t></r></si>"),
        "## Lev&els\n\n| Bridge |  | 412 |\n| --- | --- | --- |\n|  | a < b | TRUE |",
    ),
    ("xlsm", excel(""), "## Lev&els"),
    (
        "pptm",
        archive(ppt__presentation_dot_xml=f"<p:presentation {P}/>"),
        "",
    ),
    (
        "pptx",
        archive(
            ppt__presentation_dot_xml=f'<p:presentation {P} {R}><p:sldIdLst><p:sldId id="256" r:id="b"/>'
            '<p:sldId id="257" r:id="a"/></p:sldIdLst></p:presentation>',
            ppt___rels__presentation_dot_xml_dot_rels=relations(a="slides/slide1.xml", b="slides/slide2.xml"),
            ppt__slides__slide1_dot_xml=SLIDE.format("Later"),
            ppt__slides__slide2_dot_xml=SLIDE.format("Sooner"),
        ),
        "## Sooner\n\nfirst\n\nsecond\n\n## Later\n\nfirst\n\nsecond",
    ),
    (
        "odt",
        open_document(TEXT_BODY),
        "## Levels\n\nAt [the bridge](https://weather.example/levels), 412 <cm>\n\n- one\n\n| Gauge |\n| --- |",
    ),
    ("ods", open_document(SHEET_BODY), "## Levels\n\n| a |  |  | b | b |\n| --- | --- | --- | --- | --- |"),
    (
        "odp",
        open_document(
            "<office:presentation><draw:page><text:p>A slide</text:p></draw:page></office:presentation>"
        ),
        "A slide",
    ),
    (
        "epub",
        archive(
            **{
                "META-INF__container_dot_xml": CHAPTERS["META_INF"],
                "book__content_dot_opf": CHAPTERS["opf"],
                "book__a_dot_xhtml": "<html><head><title>no</title></head><body><h1>One</h1></body></html>",
                "book__b_dot_xhtml": "<html><body><p>Two</p></body></html>",
            }
        ),
        "# One\n\nTwo",
    ),
]


@each_row("kind, content, markdown", READABLE)
def test_it_reads(kind: str, content: bytes, markdown: str) -> None:
    page = convert(kind, io.BytesIO(content))
    assert to_markdown(page.tree, "") == markdown


def test_every_kind_is_read_or_refused_by_name() -> None:
    tried = {row[0] for row in READABLE} | {"pdf"}
    for kind in KINDS:
        if kind not in tried:
            with pytest.raises(UnsupportedHereError, match=rf"read \.{kind} files"):
                convert(kind, io.BytesIO(b""))


@pytest.mark.rule("parse-extension")
@each_row(
    "name, kind", [("a.html", "html"), ("A.B.PDF", "pdf"), ("dir\\x.Docx", "docx"), ("dir/x.csv", "csv")]
)
def test_extension_decides(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.rule("page-codes-400", "parse-extension")
@each_row("name", ["a", "a.", ".pdf.exe", "a.txt", "pdf", "a.md", "x.html/y"])
def test_other_extensions_are_refused(name: str) -> None:
    with pytest.raises(ServiceError) as caught:
        kind_of(name)
    assert (caught.value.status, caught.value.code) == (400, "UNSUPPORTED_FILE_TYPE")


BOMB = archive(content_dot_xml="<a>" + " " * 2_000_000 + "</a>")
BROKEN: list[tuple[str, bytes]] = [
    ("docx", b"no archive"),
    ("docx", archive(other="x")),
    ("docx", archive(word__document_dot_xml="<not closed")),
    ("docx", archive(word__document_dot_xml="<document/>")),
    ("docx", archive(word__document_dot_xml='<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')),
    ("xlsx", excel('<row><c r="A1" t="s"><v>7</v></c></row>')),
    ("xlsx", excel('<row><c r="A1" t="s"><v>x</v></c></row>')),
    ("xlsx", excel('<row><c r="ZZZ1"><v>1</v></c></row>')),
    ("pptx", archive(ppt__presentation_dot_xml="<presentation><sldId id='1'/></presentation>")),
    ("odt", archive(content_dot_xml="<empty/>")),
    ("odt", open_document('<office:text><text:h text:outline-level="x">a</text:h></office:text>')),
    ("epub", archive(**{"META-INF__container_dot_xml": "<container/>"})),
    ("pdf", b"no PDF"),
    ("pdf", b"%PDF-1.4\n1 0 obj << /Type /Pages >> endobj"),
    ("pdf", b"%PDF-1.4\n1 0 obj << /Type"),
    ("csv", b'"' + b"x" * 200_000),
]


@each_row("kind, content", BROKEN)
def test_broken_files(kind: str, content: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        convert(kind, io.BytesIO(content))
    assert (caught.value.status, caught.value.code) == (500, "SCRAPE_UNSUPPORTED_FILE_ERROR")


def test_archives_unpack_to_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(BOMB) < 10_000
    monkeypatch.setattr(office, "UNPACKED_MAX", 2_000_007)
    with pytest.raises(ServiceError, match="it has no body"):
        convert("odt", io.BytesIO(BOMB))
    monkeypatch.setattr(office, "UNPACKED_MAX", 2_000_006)
    with pytest.raises(ServiceError, match="unpacks to more than"):
        convert("odt", io.BytesIO(BOMB))


def shown(text: bytes) -> bytes:
    return b"BT /F1 12 Tf 72 700 Td " + text + b" ET"


def pages_of(content: bytes) -> list[str]:
    return (convert("pdf", io.BytesIO(content)).markdown or "").split("\f")


HELLO = shown(b"(Hello) Tj")
LETTERS = (
    b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0041> <0048> endbfchar"
    b" 1 beginbfrange <0042> <0044> <0069> endbfrange"
    b" 1 beginbfrange <0050> <0051> [<0078> <0079>] endbfrange endcmap"
)
WITH_TABLE = b"\n4 0 obj << /Length %d >> stream\n%s\nendstream endobj" % (len(LETTERS), LETTERS)


@each_row(
    "content, pages",
    [
        (pdf(HELLO, shown(b"(World) Tj")), ["Hello", "World"]),
        (pdf(shown(b"14 TL (a) Tj 0 -14 Td (b) Tj 20 0 Td (c) Tj T* (d) Tj")), ["a\nb c\nd"]),
        (pdf(shown(b"[(Hel) -20 (lo) -400 (World)] TJ")), ["Hello World"]),
        (
            pdf(
                shown(
                    rb"(\(a\) \101 \\ b\
c) Tj"
                )
            ),
            [r"(a) A \ bc"],
        ),
        (pdf(shown(b"14 TL <48656C6C6F> Tj (\xe9\x97) ' (x) Tj")), ["Hello\né—x"]),
        (pdf(shown(b"(\x8e) Tj"), font="/Subtype /Type1 /Encoding /MacRomanEncoding"), ["é"]),
        (pdf(shown(b"(A) Tj"), font="/Subtype /Type1 /Encoding << /Differences [65 /eacute] >>"), ["é"]),
        (pdf(zlib.compress(HELLO), how="/Filter /FlateDecode"), ["Hello"]),
        (
            pdf(base64.a85encode(zlib.compress(HELLO)) + b"~>", how="/Filter [/ASCII85Decode /FlateDecode]"),
            ["Hello"],
        ),
        (pdf(HELLO.hex().encode() + b">", how="/Filter /ASCIIHexDecode"), ["Hello"]),
        (pdf(b"BI /W 1 /H 1 ID \x00(\xff EI " + HELLO), ["Hello"]),
        (pdf(b"% a (comment\n" + HELLO), ["Hello"]),
        (
            pdf(
                shown(b"<00410042004400500051> Tj"),
                font="/Subtype /Type0 /Encoding /Identity-H /ToUnicode 4 0 R",
                extra=WITH_TABLE,
            ),
            ["Hikxy"],
        ),
        # A later object takes the place of an earlier one.
        (
            pdf(HELLO, extra=b"\n1000 0 obj << >> stream\n" + shown(b"(Later) Tj") + b"\nendstream endobj"),
            ["Later"],
        ),
    ],
)
def test_text_of_a_pdf(content: bytes, pages: list[str]) -> None:
    assert pages_of(content) == pages


def test_objects_in_streams() -> None:
    inner = b"1 0 2 40 3 90 10 130 " + b"".join(
        text.ljust(length)
        for text, length in (
            (b"<< /Type /Catalog /Pages 2 0 R >>", 40),
            (b"<< /Type /Pages /Kids [10 0 R] >>", 50),
            (b"<< /Type /Font /Subtype /Type1 >>", 40),
            (b"<< /Type /Page /Contents 20 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 80),
        )
    )
    packed = zlib.compress(inner)
    head = f"5 0 obj << /Type /ObjStm /N 4 /First 21 /Filter /FlateDecode /Length {len(packed)} >> stream\r\n"
    content = f"20 0 obj << /Length {len(HELLO)} >> stream\n".encode() + HELLO + b"\nendstream endobj\n"
    body = b"%PDF-1.5\n" + content + head.encode() + packed + b"\nendstream endobj\n"
    places = [(1, body.index(b"20 0 obj"), 0), (1, body.index(b"5 0 obj"), 0), *((2, 5, n) for n in range(4))]
    table = b"".join(struct.pack(">BHB", *place) for place in places)
    head = (
        f"6 0 obj << /Type /XRef /Size 21 /Root 1 0 R /W [1 2 1] /Index [20 1 5 1 1 3 10 1] /Length {len(table)} >>"
        " stream\n"
    )
    end = f"\nendstream endobj\nstartxref\n{len(body)}\n%%EOF\n"
    assert pages_of(body + head.encode() + table + end.encode()) == ["Hello"]


def test_a_pdf_that_a_browser_wrote() -> None:
    assert pages_of((FILES / "chromium.pdf").read_bytes()) == [
        "Levels of the river\nThe gauge stood at 412 cm - “highest” since 1994.\nBridge 412",
        "Second page, with a list:\nLima\nŽďár",
    ]


@each_row(
    "content, text",
    [
        (pdf(b"0 0 m 10 10 l S"), "embeds no text"),
        # A damaged stream is empty, and so is a form that shows itself.
        (pdf(b"not packed", how="/Filter /FlateDecode"), "embeds no text"),
        (
            pdf(
                b"/X Do",
                resources="/XObject << /X 5 0 R >>",
                extra=b"\n5 0 obj << /Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >>"
                b" /Length 11 >> stream\n/X Do /X Do\nendstream endobj",
            ),
            "embeds no text",
        ),
        (pdf(HELLO, font="/Subtype /Type0"), "lack a character mapping"),
        (
            pdf(shown(b"(A) Tj"), font="/Subtype /Type1 /Encoding << /Differences [65 /odd] >>"),
            "lack a character mapping",
        ),
        (pdf(HELLO, font="/Subtype /Type1 /FontDescriptor << /Flags 4 >>"), "lack a character mapping"),
        (pdf(b"xx", how="/Filter /NoSuchDecode"), "filter /NoSuchDecode"),
    ],
)
def test_a_pdf_that_it_cannot_read_is_refused_by_name(content: bytes, text: str) -> None:
    with pytest.raises(UnsupportedHereError, match=text):
        pages_of(content)


def test_an_encrypted_pdf_is_refused() -> None:
    writer, target = PdfWriter(clone_from=io.BytesIO(pdf(HELLO))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(target)
    with pytest.raises(UnsupportedHereError, match="encrypted"):
        pages_of(target.getvalue())


@each_row("bound, text", [("MAX_SECONDS", "more than 0 seconds"), ("MAX_TOKENS", "maximum number of tokens")])
def test_a_pdf_is_read_within_bounds(monkeypatch: pytest.MonkeyPatch, bound: str, text: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sandbox_pdf, bound, 0)
        with pytest.raises(ServiceError, match=text):
            pages_of(pdf(HELLO))


@each_row(
    "content, text",
    [
        (pdf(b"BT (Hello) Tj ET"), "without a font"),
        (pdf(HELLO, extra=b"\n3 0 obj 3 0 R endobj"), "without a font"),
        (pdf(HELLO, extra=b"\n10 0 obj << /Kids [10 0 R] >> endobj"), "cyclic"),
        (pdf(shown(b"(Hello")), "ended unexpectedly"),
        (pdf(shown(b"[" * 100)), "Invalid Elementary Object"),
        (pdf(shown(b"[" * 1_000)), "recursion"),
        (pdf(shown(b"<< /a " * 100)), "ended unexpectedly"),
    ],
)
def test_a_broken_pdf(content: bytes, text: str) -> None:
    with pytest.raises(ServiceError, match=text) as caught:
        pages_of(content)
    assert caught.value.code == "SCRAPE_UNSUPPORTED_FILE_ERROR"


def test_a_pdf_that_unpacks_without_end() -> None:
    bomb = pdf(zlib.compress(b" " * 100_000_000), how="/Filter /FlateDecode")
    with pytest.raises(ServiceError, match=r"[Ll]imit") as caught:
        pages_of(bomb)
    assert caught.value.code == "SCRAPE_UNSUPPORTED_FILE_ERROR"


@given(
    st.binary(max_size=300),
    st.integers(0, 600),
    st.sampled_from(["pdf", "docx", "xlsx", "odt", "html", "csv"]),
)
def test_no_file_gives_anything_but_a_page_or_an_answer(noise: bytes, place: int, kind: str) -> None:
    whole = {
        "pdf": pdf(HELLO),
        "docx": word(WORD_BODY),
        "xlsx": excel(EXCEL_ROWS),
        "odt": open_document(TEXT_BODY),
    }
    content = whole.get(kind, b"<p>x</p>")
    damaged = content[:place] + noise + content[place + len(noise) :]
    with contextlib.suppress(ServiceError):
        page = convert(kind, io.BytesIO(damaged))
        assert page.html or page.markdown is not None
