"""Read the threads that the flow runs over, and refuse a file that can't be run, before anything starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NoReturn

from pgflow_stepq.demo.text import clip
from pgflow_stepq.errors import StepqError

BUNDLED: Final = Path(__file__).with_name("threads.jsonl")
# More than this is no post, but a file in the wrong place.
MAX_CHARACTERS: Final = 1_000_000
_LINE_FORMAT: Final = '{"id": "…", "title": "…", "body": "…", "author": "…"}'


class InputError(StepqError):
    """The input can't be used; the message names file, line and what to do."""

    exit_code: ClassVar[int] = 2


@dataclass(frozen=True)
class Thread:
    """One post of the forum. `author` is None when the file doesn't give one."""

    id: str
    title: str
    body: str
    author: str | None = None

    def as_input(self) -> dict[str, str | None]:
        """Return the run's input: {"id", "title", "body", "author"}."""
        return {"id": self.id, "title": self.title, "body": self.body, "author": self.author}


def read_threads(path: Path) -> list[Thread]:
    """Return the threads of a JSON-lines file, in order; there is at least one.

    Blank lines are passed over, a byte order mark and CRLF line ends are accepted, and keys other than
    id, title, body and author are ignored. Raises InputError at the first line that can't be used.
    """
    threads: list[Thread] = []
    line_of_id: dict[str, int] = {}
    for number, line in _lines(path):
        thread = _thread(line, path, number)
        if thread.id in line_of_id:
            _refuse(
                path,
                number,
                f"the id {_shown(thread.id)} was used on line {line_of_id[thread.id]} already",
                "Give every thread an id of its own.",
            )
        line_of_id[thread.id] = number
        threads.append(thread)
    if not threads:
        raise InputError(f"{path}: the file holds no thread.\nWrite one JSON object a line: {_LINE_FORMAT}")
    return threads


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of every line that is not blank."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: can't read the file: {error.strerror or error}.\n"
            "Give the path of a JSON-lines file after --input."
        ) from error
    # Not str.splitlines(): it also cuts at U+2028 and others, which may stand inside a JSON string.
    for number, raw in enumerate(data.split(b"\n"), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            _refuse(
                path,
                number,
                f"byte {error.start + 1} of the line (0x{raw[error.start]:02x}) is not UTF-8",
                "Save the file as UTF-8, for example with: iconv -f latin1 -t utf-8 FILE > NEW",
            )
        if line.strip():
            yield number, line


def _thread(line: str, path: Path, number: int) -> Thread:
    value = _json(line, path, number)
    if not isinstance(value, dict):
        _refuse(path, number, f"expected an object, found {_kind(value)}", f"Write {_LINE_FORMAT}")
    missing = [key for key in ("id", "title", "body") if key not in value]
    if missing:
        names = ", ".join(f'"{key}"' for key in missing)
        _refuse(path, number, f"missing {names}", f"Write {_LINE_FORMAT} (author may be left out).")
    for key in ("id", "title", "body", "author"):
        _check_text(key, value.get(key), path, number, nullable=key == "author")
    if not value["id"].strip():
        _refuse(path, number, '"id" is blank', "Give every thread an id of its own.")
    return Thread(value["id"], value["title"], value["body"], value.get("author"))


def _json(line: str, path: Path, number: int) -> object:
    try:
        value: object = json.loads(line)
    except json.JSONDecodeError as error:
        _refuse(
            path,
            number,
            f"not valid JSON: {error.msg} at column {error.colno}",
            "Write one complete JSON object on one line; line breaks inside a text are \\n.",
        )
    except (RecursionError, ValueError) as error:
        # Nesting or a number beyond what Python's parser takes.
        reason = "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
        _refuse(path, number, f"not usable JSON: {reason}", f"Write {_LINE_FORMAT}")
    return value


def _check_text(key: str, value: object, path: Path, number: int, *, nullable: bool) -> None:
    """Refuse what is no text, or text that PostgreSQL's jsonb can't hold."""
    if value is None and nullable:
        return
    if not isinstance(value, str):
        _refuse(path, number, f'"{key}" must be a string, found {_kind(value)}', f"Write {_LINE_FORMAT}")
    if len(value) > MAX_CHARACTERS:
        _refuse(
            path,
            number,
            f'"{key}" is {len(value):,} characters long; at most {MAX_CHARACTERS:,} are taken',
            "Shorten the text, or leave the thread out.",
        )
    if "\x00" in value:
        _refuse(
            path,
            number,
            f'"{key}" holds a NUL character (\\u0000), which PostgreSQL can\'t store',
            "Remove it from the text.",
        )
    if any("\ud800" <= char <= "\udfff" for char in value):
        _refuse(
            path,
            number,
            f'"{key}" holds half of a surrogate pair (\\ud800 to \\udfff), which is no character',
            "Write the whole pair, or the character itself in UTF-8.",
        )


def _kind(value: object) -> str:
    """Name a JSON value's type as JSON does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}
    return names[type(value)]


def _shown(text: str) -> str:
    """Quote a text of the file for a message: one line, nothing that could drive a terminal."""
    return json.dumps(clip(text, 60), ensure_ascii=True)


def _refuse(path: Path, number: int, problem: str, remedy: str) -> NoReturn:
    raise InputError(f"{path}, line {number}: {problem}.\n{remedy}")
