"""Charts as SVG. A table with the same numbers stands beside each, for those who cannot see it."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _HEIGHT = 480, 96
_GAP = 0.25
_WIDEST = 40.0


class Bar(NamedTuple):
    """One bar of a chart.

    :param label: what it counts.
    :param value: its height, not negative.
    :param kind: `plain`, `changed` or `error`: its colour.
    """

    label: str
    value: float
    kind: str = "plain"


def bars(values: Sequence[Bar], title: str) -> Markup:
    """Return bars side by side, the oldest first; empty where there is nothing to draw."""
    values = [bar._replace(value=_drawable(bar.value)) for bar in values]
    highest = max((bar.value for bar in values), default=0)
    if highest <= 0:
        return Markup()
    step = min(_WIDTH / len(values), _WIDEST)
    drawn = Markup().join(
        Markup(
            '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}: {:,g}</title></rect>'
        ).format(
            bar.kind,
            index * step + step * _GAP / 2,
            _HEIGHT * (1 - bar.value / highest),
            step * (1 - _GAP),
            _HEIGHT * bar.value / highest,
            bar.label,
            bar.value,
        )
        for index, bar in enumerate(values)
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" preserveAspectRatio="xMinYMax" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, title, drawn)


def _drawable(value: float) -> float:
    """Return a value that can be the height of a bar: finite, and not negative."""
    try:
        return 0.0 if math.isnan(value) else min(max(float(value), 0.0), sys.float_info.max)
    except OverflowError:
        return 0.0 if value < 0 else sys.float_info.max
