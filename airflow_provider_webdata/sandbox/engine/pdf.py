"""The embedded text of a PDF, page by page: what it says of its own letters, nothing recognised or guessed.

Enough of the format for what today's programs write: objects (also in object streams), Flate and ASCII filters, text
operators, fonts with a table of their letters or a usual encoding. What it cannot read it refuses by name.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.reference.errors import UnsupportedHereError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHITE = b" \t\r\n\f\0"
_ENDS = _WHITE + b"()<>[]{}/%"
_OBJECT = re.compile(rb"(\d+)\s+(\d+)\s+obj\b")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_WORD_GAP = -180
"""A move of this many thousandths of the letter size between two pieces of text is a space."""
_SYMBOLIC = 4
"""Flag of a font whose codes mean letters of its own choice."""
_DEPTH = 60
_UNPACKED_MAX = 200 * 1024 * 1024


class PdfError(Exception):
    """The file is not a PDF, or is broken."""


class _Name(str):
    __slots__ = ()


class _Operator(bytes):
    __slots__ = ()


@dataclass(frozen=True)
class _Ref:
    number: int


@dataclass(frozen=True)
class _Stream:
    head: dict[str, Any]
    raw: bytes


_END = object()


class _Reader:
    """Reads values one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def value(self, depth: int = 0) -> Any:
        """Return the next value, an operator, or :data:`_END`."""
        if depth > _DEPTH:
            raise PdfError("values are nested too deeply")
        self._skip()
        data, at = self.data, self.at
        first = data[at : at + 1]
        if not first:
            return _END
        if first == b"/":
            return self._name()
        if first == b"(":
            return self._string()
        if data.startswith(b"<<", at):
            return self._dictionary(depth)
        if first == b"<":
            return self._hex()
        if first == b"[":
            self.at += 1
            return list(self._until(b"]", depth))
        if first in b")]}>{":
            self.at += 2 if data.startswith(b">>", at) else 1
            return _Operator(first)
        return self._word()

    def _skip(self) -> None:
        data = self.data
        while self.at < len(data):
            if data[self.at] in _WHITE:
                self.at += 1
            elif data[self.at] == 0x25:  # a comment, to the end of its line
                ends = [place for end in b"\r\n" if (place := data.find(bytes([end]), self.at)) >= 0]
                self.at = min(ends, default=len(data))
            else:
                return

    def _run(self) -> bytes:
        start = self.at
        while self.at < len(self.data) and self.data[self.at] not in _ENDS:
            self.at += 1
        return self.data[start : self.at]

    def _name(self) -> _Name:
        self.at += 1
        raw = re.sub(rb"#([0-9a-fA-F]{2})", lambda found: bytes([int(found[1], 16)]), self._run())
        return _Name(raw.decode("latin-1"))

    def _word(self) -> Any:
        word = self._run()
        if re.fullmatch(rb"[+-]?\d+", word):
            reference = re.compile(rb"\s+\d+\s+R\b").match(self.data, self.at)
            if reference:
                self.at = reference.end()
                return _Ref(int(word))
            return int(word)
        if re.fullmatch(rb"[+-]?(\d+\.\d*|\.\d+)", word):
            return float(word)
        return {b"true": True, b"false": False, b"null": None}.get(word, _Operator(word))

    def _string(self) -> bytes:
        parts: list[bytes] = []
        depth = 1
        self.at += 1
        while True:
            char = self.data[self.at : self.at + 1]
            self.at += 1
            if not char:
                raise PdfError("a text has no end")
            if char == b"\\":
                parts.append(self._escaped())
                continue
            depth += (char == b"(") - (char == b")")
            if not depth:
                return b"".join(parts)
            parts.append(char)

    def _escaped(self) -> bytes:
        octal = re.compile(rb"[0-7]{1,3}").match(self.data, self.at)
        if octal:
            self.at = octal.end()
            return bytes([int(octal[0], 8) & 0xFF])
        char = self.data[self.at : self.at + 1]
        self.at += 1
        if char == b"\r" and self.data[self.at : self.at + 1] == b"\n":
            self.at += 1
        return b"" if char in (b"\r", b"\n") else _ESCAPES.get(char, char)

    def _hex(self) -> bytes:
        end = self.data.find(b">", self.at)
        if end < 0:
            raise PdfError("a text has no end")
        digits = re.sub(rb"[^0-9a-fA-F]", b"", self.data[self.at + 1 : end])
        self.at = end + 1
        return binascii.unhexlify(digits + b"0" * (len(digits) % 2))

    def _dictionary(self, depth: int) -> dict[str, Any]:
        self.at += 2
        items = list(self._until(b">", depth))
        return {str(name): value for name, value in zip(items[::2], items[1::2], strict=False)}

    def _until(self, end: bytes, depth: int) -> Iterator[Any]:
        while True:
            value = self.value(depth + 1)
            if value is _END:
                raise PdfError("a list has no end")
            if isinstance(value, _Operator) and value == end:
                return
            yield value


class _File:
    """The objects of one PDF."""

    def __init__(self, data: bytes) -> None:
        if b"%PDF-" not in data[:1024]:
            raise PdfError("it does not begin as a PDF")
        self._objects: dict[int, Any] = {}
        self._left = _UNPACKED_MAX
        if re.search(rb"/Encrypt\s+\d+\s+\d+\s+R", data):
            raise UnsupportedHereError("read encrypted PDFs")
        for number, value in _objects(data):  # what stands later replaces what stood before
            self._objects[number] = value
            if isinstance(value, _Stream) and value.head.get("Type") == "ObjStm":
                self._unpack(value)

    def get(self, value: Any) -> Any:
        """Return what a reference points to, or the value itself."""
        for _ in range(_DEPTH):
            if not isinstance(value, _Ref):
                return value
            value = self._objects.get(value.number)
        raise PdfError("references go round in a circle")

    def table(self, value: Any) -> dict[str, Any]:
        """Return a dictionary, also that of a stream; an empty one for anything else."""
        found = self.get(value)
        if isinstance(found, _Stream):
            return found.head
        return found if isinstance(found, dict) else {}

    def pages(self) -> list[dict[str, Any]]:
        """Return the pages in order, each with what it inherits."""
        catalogs = [value for value in self._objects.values() if self.table(value).get("Type") == "Catalog"]
        if not catalogs:
            raise PdfError("it has no catalog")
        found: list[dict[str, Any]] = []
        self._walk(self.table(catalogs[-1]).get("Pages"), {}, found, set())
        return found

    def _walk(self, place: Any, above: dict[str, Any], found: list[dict[str, Any]], seen: set[int]) -> None:
        if isinstance(place, _Ref):
            if place.number in seen:
                raise PdfError("its pages go round in a circle")
            seen.add(place.number)
        if len(seen) > 100_000 or len(above) > 100:
            raise PdfError("it has too many pages")
        node = self.table(place)
        node = {**({"Resources": above["Resources"]} if "Resources" in above else {}), **node}
        if "Kids" not in node:
            found.append(node)
            return
        for kid in self.get(node["Kids"]) or []:
            self._walk(kid, node, found, seen)

    def content(self, value: Any) -> bytes:
        """Return the decoded bytes of a stream."""
        stream = self.get(value)
        if not isinstance(stream, _Stream):
            raise PdfError("a stream is missing")
        raw = stream.raw
        names = self.get(stream.head.get("Filter"))
        for name in names if isinstance(names, list) else [names] if names else []:
            raw = self._decoded(self.get(name), raw)
        return raw

    def _decoded(self, name: str, raw: bytes) -> bytes:
        if name in ("FlateDecode", "Fl"):
            machine = zlib.decompressobj()
            try:
                plain = machine.decompress(raw, self._left)
            except zlib.error as error:
                raise PdfError(f"a stream is damaged: {error}") from None
            self._left -= len(plain)
            if machine.unconsumed_tail or self._left <= 0:
                raise PdfError(f"it unpacks to more than {_UNPACKED_MAX} bytes")
            return plain
        if name in ("ASCII85Decode", "A85"):
            try:
                return base64.a85decode(raw.split(b"~>")[0].strip().removeprefix(b"<~"))
            except ValueError as error:
                raise PdfError(f"a stream is damaged: {error}") from None
        if name in ("ASCIIHexDecode", "AHx"):
            digits = re.sub(rb"[^0-9a-fA-F]", b"", raw.split(b">")[0])
            return binascii.unhexlify(digits + b"0" * (len(digits) % 2))
        raise UnsupportedHereError(f"read PDFs with the filter {name}")

    def _unpack(self, stream: _Stream) -> None:
        data = self.content(stream)
        first, count = self.get(stream.head.get("First")), self.get(stream.head.get("N"))
        if not isinstance(first, int) or not isinstance(count, int):
            raise PdfError("a stream of objects says not where they are")
        reader = _Reader(data)
        places = [(reader.value(), reader.value()) for _ in range(min(count, len(data)))]
        for number, offset in places:
            if isinstance(number, int) and isinstance(offset, int):
                self._objects[number] = _Reader(data, first + offset).value()


def _objects(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while match := _OBJECT.search(data, at):
        reader = _Reader(data, match.end())
        value = reader.value()
        at = max(reader.at, match.end())
        begin = re.compile(rb"\s*stream(\r\n|\n|\r)").match(data, at)
        if begin and isinstance(value, dict):
            length = value.get("Length")
            end = begin.end() + length if isinstance(length, int) else -1
            if end < 0 or not data[end : end + 12].lstrip().startswith(b"endstream"):
                end = data.find(b"endstream", begin.end())
            if end < 0:
                raise PdfError("a stream has no end")
            value = _Stream(value, data[begin.end() : end])
            at = end
        yield int(match[1]), value


class _Font:
    """How the codes of one font are read as letters."""

    def __init__(self, pdf: _File, font: dict[str, Any]) -> None:
        self._letters: dict[bytes, str] | None = None
        self._width = 2 if font.get("Subtype") == "Type0" else 1
        self._encoding = "cp1252"
        if "ToUnicode" in font:
            self._letters = dict(_letters(pdf.content(font["ToUnicode"])))
            return
        encoding = pdf.get(font.get("Encoding"))
        flags = pdf.get(pdf.table(font.get("FontDescriptor")).get("Flags"))
        own = encoding is None and isinstance(flags, int) and bool(flags & _SYMBOLIC)
        if self._width == 2 or isinstance(encoding, dict) or own:
            raise UnsupportedHereError("read PDFs whose fonts do not say what letters they hold")
        if encoding == "MacRomanEncoding":
            self._encoding = "mac_roman"

    def read(self, codes: bytes) -> str:
        """Return the letters."""
        if self._letters is None:
            return codes.decode(self._encoding, errors="replace")
        pieces = (codes[start : start + self._width] for start in range(0, len(codes), self._width))
        return "".join(self._letters.get(piece, "") for piece in pieces)


def _letters(cmap: bytes) -> Iterator[tuple[bytes, str]]:
    """Read a table of letters (ToUnicode)."""
    reader = _Reader(cmap)
    pending: list[Any] = []
    while (value := reader.value()) is not _END:
        if not isinstance(value, _Operator):
            pending.append(value)
            continue
        if value == b"endbfchar":
            for code, letters in zip(pending[::2], pending[1::2], strict=False):
                yield code, _utf16(letters)
        elif value == b"endbfrange":
            for low, high, letters in zip(pending[::3], pending[1::3], pending[2::3], strict=False):
                yield from _span(low, high, letters)
        pending = []


def _span(low: Any, high: Any, letters: Any) -> Iterator[tuple[bytes, str]]:
    if not isinstance(low, bytes) or not isinstance(high, bytes):
        return
    first = int.from_bytes(low, "big")
    for step in range(min(int.from_bytes(high, "big") - first, 0xFFFF) + 1):
        code = (first + step).to_bytes(len(low), "big")
        if isinstance(letters, list):
            yield code, _utf16(letters[step]) if step < len(letters) else ""
        elif text := _utf16(letters):
            yield code, text[:-1] + chr(min(ord(text[-1]) + step, 0x10FFFF))


def _utf16(raw: Any) -> str:
    return raw.decode("utf-16-be", errors="replace") if isinstance(raw, bytes) else ""


class _PageText:
    """The text of one page, gathered while its operators are followed."""

    def __init__(self, pdf: _File, page: dict[str, Any]) -> None:
        self._pdf = pdf
        fonts = pdf.table(pdf.table(page.get("Resources")).get("Font"))
        self._fonts, self._known = fonts, dict[str, _Font]()
        self._font: _Font | None = None
        self._parts: list[str] = []
        self._height = self._shown_at = 0.0
        self._moved = False
        contents = pdf.get(page.get("Contents"))
        streams = contents if isinstance(contents, list) else [contents] if contents is not None else []
        self._follow(b"\n".join(pdf.content(stream) for stream in streams))

    def text(self) -> str:
        """Return the lines of the page."""
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def _follow(self, data: bytes) -> None:
        # Pictures inside the stream are bytes of any kind.
        reader = _Reader(re.sub(rb"\bID\s.*?\sEI\b", b"", data, flags=re.DOTALL))
        given: list[Any] = []
        while (value := reader.value()) is not _END:
            if isinstance(value, _Operator):
                self._operate(bytes(value), given)
                given = []
            else:
                given.append(value)

    def _operate(self, operator: bytes, given: list[Any]) -> None:
        if operator == b"Tf" and given:
            name = str(given[0])
            if name not in self._known:
                self._known[name] = _Font(self._pdf, self._pdf.table(self._fonts.get(name)))
            self._font = self._known[name]
        elif operator in (b"Td", b"TD") and len(given) == 2:
            self._move(self._height + _number(given[1]))
        elif operator in (b"BT", b"Tm"):
            self._move(_number(given[5]) if len(given) == 6 else 0.0)
        elif operator == b"T*":
            self._new_line()
        elif operator in (b"Tj", b"'", b'"') and given:
            if operator != b"Tj":
                self._new_line()
            self._show(given[-1])
        elif operator == b"TJ" and given and isinstance(given[0], list):
            for item in given[0]:
                if isinstance(item, bytes):
                    self._show(item)
                elif isinstance(item, (int, float)) and item < _WORD_GAP:
                    self._parts.append(" ")

    def _move(self, height: float) -> None:
        """Go on elsewhere: what is shown there is a word of its own, and on another height a line."""
        self._height, self._moved = height, True

    def _new_line(self) -> None:
        self._parts.append("\n")

    def _show(self, codes: Any) -> None:
        if not isinstance(codes, bytes):
            return
        if self._font is None:
            raise PdfError("text comes before its font")
        if self._moved:
            self._parts.append(" " if self._height == self._shown_at else "\n")
        self._shown_at, self._moved = self._height, False
        self._parts.append(self._font.read(codes))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page.

    :raises PdfError: it is not a PDF, or a broken one.
    :raises UnsupportedHereError: it holds no text of its own, or what this reader does not know.
    """
    pdf = _File(data)
    pages = [_PageText(pdf, page).text() for page in pdf.pages()]
    if not any(pages):
        raise UnsupportedHereError("recognise letters in pictures (this PDF embeds no text)")
    return pages
