# SPDX-License-Identifier: Apache-2.0
"""The drawings and pictures in the docs.

Every text of a drawing stays within its box, and every box within the drawing. Every picture follows the color scheme.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.snippets import ROOT, name_of

IMAGES = ROOT / "docs" / "images"
DRAWINGS = sorted(IMAGES.glob("*.svg"))
PICTURE = re.compile(r'dark\)" srcset="[^"]*/([\w-]+)\.png">\s*<img alt="[^"]+" src="[^"]*/([\w-]+)\.png">')
SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = {"ijl.,:;'’!|()[]/ ft": 0.38, "mwMW@…": 0.98, "ABCDEFGHIKLNOPQRSTUVXYZ0123456789_": 0.72}
"""Widths of characters in ems, of a wide sans serif; all others 0.62."""


def width(text: str, size: float, weight: float) -> float:
    ems = sum(next((ems for kind, ems in WIDTHS.items() if one in kind), 0.62) for one in text)
    return ems * size * (1.08 if weight >= 600 else 1)


def styles(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    css = root.findtext(f"{SVG}style") or ""
    found = {}
    for name, rules in re.findall(r"\.([\w-]+) \{([^}]*)\}", css):
        if size := re.search(r"font-size: (\d+)px", rules):
            weight = re.search(r"font-weight: (\d+)", rules)
            found[name] = (float(size[1]), float(weight[1]) if weight else 400)
    return found


@pytest.mark.parametrize("drawing", DRAWINGS, ids=name_of)
def test_texts_stay_in_their_boxes(drawing: Path) -> None:
    root = ElementTree.parse(drawing).getroot()
    size_of = styles(root)
    _, _, whole, height = map(float, root.attrib["viewBox"].split())
    boxes = 0
    for group in root.findall(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert (x >= 0, y >= 0, x + w <= whole, y + h <= height) == (True,) * 4
        boxes += 1
        for text in group.findall(f"{SVG}text"):
            size, weight = size_of[text.attrib["class"]]
            assert width(text.text or "", size, weight) <= w - 8, text.text
            assert float(text.attrib["x"]) == x + w / 2, text.text
            assert y + size <= float(text.attrib["y"]) <= y + h - size / 2, text.text
    for label in root.findall(f"{SVG}text"):
        size, weight = size_of[label.attrib["class"]]
        assert float(label.attrib["x"]) + width(label.text or "", size, weight) <= whole, label.text
    assert boxes > 4


@pytest.mark.parametrize("drawing", DRAWINGS, ids=name_of)
def test_a_drawing_is_readable_on_any_background(drawing: Path) -> None:
    """It brings its own background, light and dark, and fonts that exist."""
    root = ElementTree.parse(drawing).getroot()
    _, _, whole, height = map(float, root.attrib["viewBox"].split())
    [first] = [child for child in root if child.tag == f"{SVG}rect"][:1]
    assert first.attrib["class"] == "page"
    assert float(first.attrib["width"]) >= whole - 1
    assert float(first.attrib["height"]) >= height - 1
    light, dark = (root.findtext(f"{SVG}style") or "").split("@media (prefers-color-scheme: dark)")
    assert "sans-serif" in light
    assert all(".page { fill:" in styles for styles in (light, dark))
    assert root.findtext(f"{SVG}title")


def test_every_picture_is_shown_in_the_readers_color_scheme() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pairs = [pair for page in pages for pair in PICTURE.findall(page.read_text(encoding="utf-8"))]
    assert all(dark == f"{light}-dark" for dark, light in pairs)
    assert {name for pair in pairs for name in pair} == {path.stem for path in IMAGES.glob("*.png")}
