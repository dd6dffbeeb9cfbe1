"""Pack a release: the source archive for PGXN and the Python wheel."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from pgflow_stepq import checkout
from pgflow_stepq.errors import StepqError
from pgflow_stepq.render import release_path, render, stale_lines

# Zip keeps a date for every file; a fixed one gives the same bytes from the same sources.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class DistError(StepqError):
    """The checkout is in no state to make a release from."""


def source_files(root: Path) -> list[str]:
    """Return the files under version control in `root`, as sorted paths relative to it. Raises DistError."""
    result = subprocess.run(
        ["git", "ls-files", "-z"], check=False, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if result.returncode:
        raise DistError(f"git can't tell which files belong to a release: {result.stderr.strip()}")
    return sorted(name for name in result.stdout.split("\0") if name and (root / name).is_file())


def pack(destination: Path) -> Path:
    """Write the PGXN archive into the directory `destination` and return its path.

    It holds the files under version control, below one directory named after the release. Raises DistError when the
    rendered install script is stale or not under version control.
    """
    root = checkout.root()
    meta = json.loads((root / "META.json").read_text(encoding="utf-8"))
    release = f"{meta['name']}-{meta['version']}"
    script = release_path()
    if stale_lines(script, render()):
        raise DistError(f'"{script}" is not what the rooms render to. Run: pgflow-stepq render')
    files = source_files(root)
    if script.relative_to(root).as_posix() not in files:
        raise DistError(f'"{script}" is not under version control, so the release would lack it. Run: git add')
    destination.mkdir(parents=True, exist_ok=True)
    archive = destination / f"{release}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in files:
            info = zipfile.ZipInfo(f"{release}/{name}", _EPOCH)
            mode = 0o755 if (root / name).stat().st_mode & 0o100 else 0o644
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, (root / name).read_bytes())
    return archive


def build_wheel(destination: Path) -> Path:
    """Write the Python wheel into the directory `destination` and return its path. Raises DistError."""
    result = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps",
         "--wheel-dir", str(destination), str(checkout.root())],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    if result.returncode:
        raise DistError(f"pip wheel failed:\n{result.stderr.strip()}")
    return max(destination.glob("pgflow_stepq-*.whl"), key=lambda path: path.stat().st_mtime)


def run(args: argparse.Namespace) -> int:
    """Pack both, and print their paths."""
    print(pack(args.directory))
    print(build_wheel(args.directory))
    return 0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `dist`."""
    parser = subparsers.add_parser(
        "dist",
        help="pack a release: the PGXN archive and the Python wheel",
        description="Write the PGXN archive and the Python wheel of this version to DIR.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", nargs="?", default=Path("dist"))
    parser.set_defaults(func=run)
