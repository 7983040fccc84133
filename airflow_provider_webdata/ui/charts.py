# SPDX-License-Identifier: Apache-2.0
"""SVG charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

SERIES = 6
"""Number of colors in the style sheet, and so of parts in a column."""

_PLOT, _ABOVE, _BELOW, _AXIS = 160, 20, 20, 52
_SPARK, _SPARK_STEP = 20, 10
_TICKS = 4
_GAP = 0.2
_LABELED = 10
"""Maximum number of columns that all have a value and a label."""
_LABEL_EVERY = 7
_LOWEST, _HIGHEST = 1e-9, 1e300
_FARTHEST_LINE = 2.5
"""Maximum ratio of the line to the highest column for the scale to include the line."""


class ChartColumn(NamedTuple):
    """One column of a chart.

    :param label: text below the column.
    :param parts: stacked nonnegative values, one for each series.
    :param href: address in Airflow that a click opens; empty: none.
    """

    label: str
    parts: Sequence[float]
    href: str = ""


def columns_chart(
    columns: Sequence[ChartColumn], title: str, unit: str, lines: Sequence[float] = ()
) -> Markup:
    """Return a stacked column chart with an axis, oldest column first; empty if all values are 0.

    Horizontal positions are in percent and text is in pixels, so that text is readable at every width.

    :param unit: unit of the values, such as `credits`.
    :param lines: values of horizontal lines.
    """
    columns = [column._replace(parts=[drawable(part) for part in column.parts]) for column in columns]
    totals = [min(sum(column.parts), _HIGHEST) for column in columns]
    highest = max(totals, default=0)
    if highest < _LOWEST:
        return Markup()
    limits = [drawable(value) for value in lines]
    scaled = max([highest, *(limit for limit in limits if limit <= highest * _FARTHEST_LINE)])
    step = _step(scaled)
    top = step * math.ceil(scaled / step)
    ticks = [step * number for number in range(round(top / step) + 1)]
    axis = Markup().join(
        Markup('<text x="{}" y="{:.1f}">{}</text>').format(_AXIS - 8, _y(tick, top) + 4, _rounded(tick))
        for tick in ticks
    )
    plot = Markup().join(
        Markup('<line class="grid" x1="0" x2="100%" y1="{0:.1f}" y2="{0:.1f}"/>').format(_y(tick, top))
        for tick in ticks
    )
    width = 100 / len(columns)
    plot += Markup().join(
        _column(column, index * width, width, top, unit) for index, column in enumerate(columns)
    )
    are_few = len(columns) <= _LABELED
    valued = set(range(len(columns))) if are_few else {totals.index(highest), len(columns) - 1}
    for index, (column, total) in enumerate(zip(columns, totals, strict=True)):
        middle = (index + 0.5) * width
        if index in valued and total > 0:
            # Centered above the last of many narrow columns, a number would be cut off.
            is_at_end = not are_few and index == len(columns) - 1
            plot += Markup('<text class="value{}" x="{:.2f}%" y="{:.1f}">{}</text>').format(
                " last" if is_at_end else "",
                100 if is_at_end else middle,
                _y(total, top) - 4,
                _rounded(total),
            )
        if are_few or (index % _LABEL_EVERY == 0 and index < len(columns) - 2):
            plot += Markup('<text class="label{}" x="{:.2f}%" y="{}">{}</text>').format(
                "" if index % (2 * _LABEL_EVERY) == 0 else " minor",
                middle,
                _ABOVE + _PLOT + 16,
                column.label,
            )
    for limit in limits:
        if 0 < limit <= top:
            # The halo separates it from the columns.
            plot += Markup().join(
                Markup('<line class="{0}" x1="0" x2="100%" y1="{1:.1f}" y2="{1:.1f}"/>').format(
                    kind, _y(limit, top)
                )
                for kind in ("halo", "limit")
            )
    height = _ABOVE + _PLOT + _BELOW
    # The content of an image is hidden from screen readers, links too.
    role = "group" if any(column.href for column in columns) else "img"
    return Markup(
        '<div class="chart" role="{}" aria-label="{}"><svg class="axis" width="{}" height="{}">{}'
        '<text class="unit" x="0" y="12">{}</text></svg><svg class="plot" width="100%" height="{}">{}</svg></div>'
    ).format(role, title, _AXIS, height, axis, unit, height, plot)


def sparkline(values: Sequence[float | None], title: str, top: float = 0) -> Markup:
    """Return a small column chart without an axis, oldest column first; empty if all values are 0.

    :param values: None leaves a gap.
    :param top: value at full height; 0 for the highest value.
    """
    heights = [0.0 if value is None else drawable(value) for value in values]
    highest = max(top, *heights) if heights else 0
    if highest < _LOWEST:
        return Markup()
    columns = Markup().join(
        Markup('<rect x="{}" y="{:.1f}" width="4" height="{:.1f}"/>').format(
            index * 5, _SPARK * (1 - height / highest), _SPARK * height / highest
        )
        for index, height in enumerate(heights)
    )
    return Markup('<svg class="spark" width="{}" height="{}" role="img" aria-label="{}">{}</svg>').format(
        len(heights) * 5, _SPARK, title, columns
    )


def small_line(values: Sequence[float], title: str) -> Markup:
    """Return a small line chart without axes, oldest value first; empty for fewer than two values.

    The lowest value is at the bottom, so that small changes are visible.
    """
    if len(values) < 2:
        return Markup()
    heights = [min(max(value, -_HIGHEST), _HIGHEST) for value in values]
    low, span = min(heights), max(max(heights) - min(heights), _LOWEST)
    points = " ".join(
        f"{index * _SPARK_STEP},{2 + (_SPARK - 4) * (1 - (height - low) / span):.1f}"
        for index, height in enumerate(heights)
    )
    return Markup(
        '<svg class="line" width="{}" height="{}" role="img" aria-label="{}"><polyline points="{}"/></svg>'
    ).format((len(heights) - 1) * _SPARK_STEP, _SPARK, title, points)


def _column(column: ChartColumn, x: float, width: float, top: float, unit: str) -> Markup:
    drawn, below = Markup(), 0.0
    for series, value in enumerate(column.parts):
        if value > 0:
            drawn += Markup(
                '<rect class="s{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"/>'
            ).format(
                series,
                x + width * _GAP / 2,
                _y(below + value, top),
                width * (1 - _GAP),
                max(_PLOT * value / top, 0.5),
            )
            below += value
    if column.href:
        drawn = Markup('<a class="airflow" href="{}" aria-label="{}">{}</a>').format(
            column.href, column.label, drawn
        )
    return Markup("<g><title>{}: {} {}</title>{}</g>").format(column.label, _rounded(below), unit, drawn)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if 10 <= value < 1e15 else f"{value:,.3g}"


def _y(value: float, top: float) -> float:
    return _ABOVE + _PLOT * (1 - min(value / top, 1.0))


def _step(highest: float) -> float:
    """Return the distance between ticks: 1, 2, or 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(highest / _TICKS))
    return next(size * digit for digit in (1, 2, 5, 10) if size * digit * _TICKS >= highest)


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number that can be drawn."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return -_HIGHEST < value < _HIGHEST


def drawable(value: float) -> float:
    """Clamp a value to a finite, nonnegative column height."""
    try:
        return 0.0 if math.isnan(value) else min(max(float(value), 0.0), _HIGHEST)
    except OverflowError:
        return 0.0 if value < 0 else _HIGHEST
