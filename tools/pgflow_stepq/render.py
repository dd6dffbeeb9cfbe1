"""Render the install script of the extension from its rooms."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

import jinja2

from pgflow_stepq import checkout
from pgflow_stepq.errors import StepqError

TEMPLATE = "install.sql.j2"
RELEASES = "releases"


class RoomError(StepqError):
    """The template and the rooms on disk don't agree."""


class Rooms:
    """The rooms of an extension's source directory: the template names them, and this keeps count of what it named."""

    def __init__(self, source: Path) -> None:
        """Read which rooms there are: every directory of `source` that holds SQL, but for the rendered releases."""
        self._source = source
        self._unmentioned = {
            path.name
            for path in source.iterdir()
            if path.is_dir() and path.name != RELEASES and any(path.rglob("*.sql"))
        }
        self._mentioned: set[str] = set()

    def room(self, name: str, *first: str) -> str:
        """Return the files of a room, separated by blank lines: those named in `first`, then the others by name.

        Raises RoomError when the room or one of the files doesn't exist, or is named twice.
        """
        if name in self._mentioned:
            raise RoomError(f'{TEMPLATE} names the room "{name}" twice. Name each room once.')
        directory = self._source / name
        files = {path.stem: path for path in directory.glob("*.sql")}
        if not files:
            raise RoomError(
                f'{TEMPLATE} names the room "{name}", but "{directory}" holds no .sql file. Add one, or take the room '
                "out of the template."
            )
        nested = sorted(path for path in directory.rglob("*.sql") if path.parent != directory)
        if nested:
            raise RoomError(f'"{nested[0]}" lies in a subdirectory of the room "{name}". Move it up: rooms are flat.')
        for position, stem in enumerate(first):
            if stem in first[:position]:
                raise RoomError(f'{TEMPLATE} names "{stem}" twice in the room "{name}". Name each file once.')
            if stem not in files:
                raise RoomError(
                    f'{TEMPLATE} names "{stem}" in the room "{name}", but there is no "{directory / stem}.sql". The '
                    f"room holds: {', '.join(sorted(files))}."
                )
        self._mentioned.add(name)
        self._unmentioned.discard(name)
        ordered = [*first, *sorted(files.keys() - set(first))]
        return "\n".join(_content(files[stem]) for stem in ordered)

    def check_all_mentioned(self) -> None:
        """Raise RoomError when a room with SQL in it was not named by the template."""
        if self._unmentioned:
            raise RoomError(
                f"{TEMPLATE} does not name the room(s) {', '.join(sorted(self._unmentioned))}. Add a line "
                f'{{{{ room("{min(self._unmentioned)}") }}}} where it belongs.'
            )


def _content(path: Path) -> str:
    """Return a file's text with exactly one newline at its end, whatever the platform that wrote it."""
    text = path.read_text(encoding="utf-8").strip("\n")
    if not text.strip():
        raise RoomError(f'"{path}" is empty. Write its object, or remove the file.')
    return text + "\n"


def render(source: Path | None = None) -> str:
    """Return the install script rendered from `source` (a directory with the template and the rooms).

    The default is the extension directory of the checkout. The files of the rooms are plain SQL: braces in them mean
    nothing to the template. Raises RoomError when template and rooms don't agree, StepqError when the template is
    broken.
    """
    source = checkout.extension_dir() if source is None else source
    rooms = Rooms(source)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(source),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - SQL, not HTML
    )
    try:
        text = environment.get_template(TEMPLATE).render(room=rooms.room)
    except jinja2.TemplateNotFound as error:
        raise StepqError(f'There is no "{source / TEMPLATE}".') from error
    except jinja2.TemplateError as error:
        line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise StepqError(f'"{source / TEMPLATE}"{line} is not a valid template: {error}') from error
    rooms.check_all_mentioned()
    return text.strip("\n") + "\n"


def release_path() -> Path:
    """Return the path of the rendered install script of the version under development."""
    name = f"{checkout.EXTENSION}--{checkout.extension_version()}.sql"
    return checkout.extension_dir() / RELEASES / name


def stale_lines(path: Path, fresh: str) -> list[str]:
    """Return a unified diff from the file at `path` to the text `fresh`; empty when they are equal, byte for byte."""
    current = path.read_bytes().decode("utf-8") if path.exists() else ""
    return list(
        difflib.unified_diff(
            current.splitlines(keepends=True),
            fresh.splitlines(keepends=True),
            fromfile=f"{path.name} (on disk)",
            tofile=f"{path.name} (rendered)",
        )
    )


def run(args: argparse.Namespace) -> int:
    """Write the rendered install script, or compare it with the one on disk."""
    path = release_path()
    fresh = render()
    difference = stale_lines(path, fresh)
    if args.check:
        if difference:
            sys.stdout.writelines(difference)
            raise StepqError(f'"{path}" is not what the rooms render to. Run: pgflow-stepq render')
        print(f"{path.name} is up to date.")
        return 0
    if difference:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(fresh.encode("utf-8"))
    print(f"{path} {'rendered' if difference else 'is up to date'}.")
    return 0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `render`."""
    parser = subparsers.add_parser(
        "render",
        help="render the extension's install script from its rooms",
        description="Render extension/releases/pgflow_stepq--<version>.sql from the rooms of extension/.",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; show a diff and exit 1 when it is stale")
    parser.set_defaults(func=run)
