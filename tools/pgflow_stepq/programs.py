"""Run other programs, and fetch npm packages with one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pgflow_stepq.errors import StepqError


class ProgramError(StepqError):
    """Another program did not do what it was run for; the text has its last words."""


def run(command: Sequence[str], directory: Path) -> None:
    """Run a command to its end in `directory`. Raises ProgramError with its last words when it fails."""
    # npm looks for a node beside it on PATH, and must not ask for anything.
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", os.defpath)])
    result = subprocess.run(
        command, check=False, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if result.returncode:
        lines = [line.strip() for line in (result.stderr or result.stdout).splitlines()]
        said = [line for line in lines if line and "complete log" not in line][-3:]
        words = " / ".join(said) or "it said nothing"
        raise ProgramError(f"{Path(command[0]).name} failed ({result.returncode}): {words}")


def npm_pack(npm: Sequence[str], package: str, scratch: Path) -> Path:
    """Fetch the archive of an npm package (name@version) into `scratch` and return its path.

    `npm` is the command that runs npm, which checks the archive against its published hash. Raises ProgramError.
    """
    places = ["--cache", str(scratch / "npm"), "--pack-destination", str(scratch)]
    try:
        run([*npm, "pack", package, "--loglevel=error", *places], scratch)
    except ProgramError as refusal:
        raise ProgramError(f"npm pack {package}: {refusal}") from None
    archive = next(scratch.glob("*.tgz"), None)
    if archive is None:
        raise ProgramError(f"npm pack {package} left no archive")
    return archive
