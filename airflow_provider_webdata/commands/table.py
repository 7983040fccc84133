# SPDX-License-Identifier: Apache-2.0
"""Tables that fit the terminal."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from airflow_provider_webdata.airflow_db.command_line import AirflowConsole, SimpleTable
from airflow_provider_webdata.commands.terminal import terminal_text, write_text
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.results.files.csv_rows import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_PIPE_WIDTH = 200
"""Width of a table in a file or pipe, as in Airflow's own commands."""
_GAP = 3


@dataclass(frozen=True)
class Column:
    """A column of a table. Columns with numbers are aligned right.

    :param name: its title, and the key of its cells.
    :param least: the width to which the table may shorten its values, which then end in an ellipsis; None: never.
    """

    name: str
    least: int | None = None


def print_table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], output: str) -> None:
    """Print rows, one line each. A table that is too wide shortens its last columns first.

    :param output: `table`; or `plain`, which shortens nothing.
    """
    width = shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns
    cells = [[_text(row[column.name]) for column in columns] for row in rows]
    widths = [
        max(map(cell_len, (column.name, *(line[index] for line in cells))))
        for index, column in enumerate(columns)
    ]
    is_number = [any(isinstance(row[column.name], (int, float)) for row in rows) for column in columns]
    if output == "plain":
        for line in ([column.name for column in columns], *cells):
            padded = [
                f"{' ' * (width - cell_len(cell))}{cell}" if right else set_cell_size(cell, width)
                for cell, width, right in zip(line, widths, is_number, strict=True)
            ]
            write_text(f"{'  '.join(padded).rstrip()}\n")
        return
    for index, column in reversed([*enumerate(columns)]):
        excess = sum(widths) + _GAP * (len(columns) - 1) - width
        if column.least is not None and excess > 0:
            widths[index] = min(widths[index], max(column.least, widths[index] - excess))
    table = SimpleTable(show_header=True)  # type: ignore[no-untyped-call]
    table.caption = None
    for index, column in enumerate(columns):
        table.add_column(
            column.name,
            width=widths[index],
            justify="right" if is_number[index] else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for line in cells:
        table.add_row(*map(Text, line))
    console = AirflowConsole()
    console.width = max(width, 1)
    console.print(table)


def print_csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as CSV below a header. A text that a spreadsheet would run as a formula gets a leading apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_value(row[name]) for name in names] for row in rows)
    write_text(text.getvalue())


def _csv_value(value: Any) -> Any:
    return guarded(terminal_text(value)) if isinstance(value, str) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return credits_text(value) if isinstance(value, (int, float)) else terminal_text(str(value))
