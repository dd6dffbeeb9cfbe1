"""What commands print for people: headings, tables and a line of progress, within 100 columns."""

from __future__ import annotations

import os
import shutil
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Final, TextIO

WIDTH: Final = 100
_INDENT: Final = "  "
_BOLD, _DIM, _GREEN, _RED, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[0m"
_CLEAR_LINE: Final = "\r\x1b[K"
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


def display_width(text: str) -> int:
    """Return how many terminal columns the text takes: Chinese and emoji take two, accents none."""
    width = 0
    for char in text:
        if unicodedata.combining(char) or char in "\u200c\u200d\ufe0e\ufe0f":
            continue
        width += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return width


def fit(text: str, columns: int) -> str:
    """Return the text cut to at most so many columns, with an ellipsis where something is missing."""
    if display_width(text) <= columns:
        return text
    kept = ""
    for char in text:
        if display_width(kept + char) > columns - 1:
            break
        kept += char
    return kept.rstrip() + "…"


class Console:
    """Writes a report to a stream; colours and the updating line only on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`; a NO_COLOR in the environment leaves the colours out."""
        self._stream = stream
        self.is_terminal: Final = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._colours = self.is_terminal and not os.environ.get("NO_COLOR")
        self._status_shown = False

    def heading(self, text: str) -> None:
        """Write a heading with an empty line before it."""
        self._write(f"\n{self._styled(text, _BOLD)}\n")

    def line(self, text: str = "") -> None:
        """Write one line of text."""
        self._write(f"{_INDENT}{text}".rstrip() + "\n")

    def paragraph(self, label: str, text: str) -> None:
        """Write a longer text, broken at its spaces but not at no-break spaces, beside its label."""
        first = f"{_INDENT}{label}  "
        rest = " " * display_width(first)
        broken = textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
        self._write(broken.replace("\u00a0", " ") + "\n")

    def block(self, text: str) -> None:
        """Write text that is meant to be copied: as it is, without an indent."""
        self._write(text.rstrip("\n") + "\n")

    def check(self, passed: bool, text: str) -> None:
        """Write one line of the self-check."""
        mark = self._styled("ok  ", _GREEN) if passed else self._styled("FAIL", _RED)
        self._write(f"{_INDENT}{mark}  {text}\n")

    def status(self, text: str) -> None:
        """Show progress: over the last status on a terminal, else as a line of its own."""
        if self.is_terminal:
            # A line that wraps could not be overwritten.
            shown = fit(_INDENT + text, min(WIDTH, shutil.get_terminal_size().columns - 1))
            self._stream.write(_CLEAR_LINE + self._styled(shown, _DIM))
            self._stream.flush()
            self._status_shown = True
        else:
            self._write(fit(_INDENT + text, WIDTH) + "\n")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write a table: numbers to the right, text to the left, the last column cut to fit."""
        cells = [[_cell(value) for value in row] for row in rows]
        numeric = [bool(rows) and all(isinstance(row[at], int | float) for row in rows) for at in range(len(headings))]
        widths = [max(display_width(row[at]) for row in [list(headings), *cells]) for at in range(len(headings))]
        lines = [_row(row, widths, numeric) for row in [list(headings), *cells]]
        self._write(self._styled(lines[0], _DIM) + "\n")
        for text in lines[1:]:
            self._write(text + "\n")

    def clear(self) -> None:
        """Empty a terminal's screen, so that what follows starts at its top."""
        self._write(_CLEAR_SCREEN)

    def _write(self, text: str) -> None:
        if self._status_shown:
            self._stream.write(_CLEAR_LINE)
            self._status_shown = False
        self._stream.write(text)
        self._stream.flush()

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if self._colours else text


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _row(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        " " * (width - display_width(cell)) + cell if right else cell + " " * (width - display_width(cell))
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return fit(_INDENT + "  ".join(padded).rstrip(), WIDTH)
