"""Put the control and SQL files of extensions where a PostgreSQL server can find them."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from pgflow_stepq import checkout, pgtap
from pgflow_stepq.errors import StepqError
from pgflow_stepq.render import RELEASES, render

EXTENSIONS = ("pgflow_stepq", "pgmq", "pgtap")


def stage(directory: Path, extensions: Iterable[str] = ("pgflow_stepq", "pgmq")) -> list[Path]:
    """Write the files of `extensions` (of EXTENSIONS) to `directory`/extension and return their paths.

    Everything written can be read by any account, since the server runs under another one than the caller's. The
    install script of pgflow_stepq is rendered afresh, so that what runs is what the rooms say. Raises StepqError when
    the source of one can't be had.
    """
    target = directory / "extension"
    created = [path for path in (target, *target.parents) if not path.exists()]
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for extension in extensions:
        written += _STAGERS[extension](target)
    for path in (*created, *written):
        _open_to_all(path)
    return written


def make_readable(directory: Path) -> None:
    """Let any account read `directory` and everything in it, whatever the umask was when it was written."""
    for path in (directory, *directory.rglob("*")):
        _open_to_all(path)


def _open_to_all(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return
    runnable = stat.S_ISDIR(mode) or mode & stat.S_IXUSR
    path.chmod(stat.S_IMODE(mode) | (0o055 if runnable else 0o044))


def _stage_own(target: Path) -> list[Path]:
    source = checkout.extension_dir()
    current = target / f"{checkout.EXTENSION}--{checkout.extension_version()}.sql"
    earlier = [path for path in sorted((source / RELEASES).glob("*.sql")) if path.name != current.name]
    written = _copy([source / f"{checkout.EXTENSION}.control", *earlier], target)
    current.write_bytes(render().encode("utf-8"))
    return [*written, current]


def _stage_pgmq(target: Path) -> list[Path]:
    spec = importlib.util.find_spec("pgmq")
    if spec is None or spec.origin is None:
        raise StepqError("The Python package pgmq, which carries PGMQ's SQL, is missing. Run: pip install pgmq==1.1.4")
    sql = Path(spec.origin).parent / "sql"
    version = (sql / "VERSION").read_text(encoding="utf-8").strip()
    script = target / f"pgmq--{version}.sql"
    shutil.copyfile(sql / "pgmq.sql", script)
    control = target / "pgmq.control"
    control.write_text(
        "comment = 'A lightweight message queue'\n"
        f"default_version = '{version}'\nschema = 'pgmq'\nrelocatable = false\nsuperuser = false\n",
        encoding="utf-8",
    )
    return [control, script]


def _stage_pgtap(target: Path) -> list[Path]:
    return _copy(pgtap.fetch(), target)


def _copy(files: Sequence[Path], target: Path) -> list[Path]:
    return [Path(shutil.copyfile(path, target / path.name)) for path in files]


_STAGERS = {"pgflow_stepq": _stage_own, "pgmq": _stage_pgmq, "pgtap": _stage_pgtap}


def run(args: argparse.Namespace) -> int:
    """Stage what was asked for and print the paths written, one a line."""
    for path in stage(args.directory, args.only or EXTENSIONS):
        print(path)
    return 0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `stage`."""
    parser = subparsers.add_parser(
        "stage",
        help="write the files of pgflow_stepq, pgmq and pgtap for a server to find",
        description=(
            "Write the control and SQL files of pgflow_stepq, of PGMQ (from the Python package pgmq) and of pgTAP to "
            "DIR/extension. PostgreSQL 18 reads them with extension_control_path = 'DIR:$system'."
        ),
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--only", action="append", choices=EXTENSIONS, help="stage this one; may be repeated")
    parser.set_defaults(func=run)
