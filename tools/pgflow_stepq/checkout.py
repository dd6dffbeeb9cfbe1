"""Where the sources of the extension lie."""

from __future__ import annotations

from pathlib import Path

from pgflow_stepq.errors import StepqError

EXTENSION = "pgflow_stepq"


def root() -> Path:
    """Return the top directory of the checkout that this package is part of.

    Raises StepqError when the package was installed without its checkout (by a wheel), where there is nothing to
    render, stage or pack.
    """
    top = Path(__file__).resolve().parents[2]
    if not (top / "extension" / f"{EXTENSION}.control").is_file():
        raise StepqError(
            f'There is no checkout of {EXTENSION} around "{Path(__file__).parent}". Run this command in a clone of the '
            "project, with the package installed from there (pip install -e .)."
        )
    return top


def extension_dir() -> Path:
    """Return the directory with the control file, the rooms and the rendered releases."""
    return root() / "extension"


def control_value(control: Path, key: str) -> str:
    """Return the value of `key` in the extension control file `control`, without its quotes.

    Raises StepqError when the file doesn't set it.
    """
    for line in control.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == key:
            return value.strip().strip("'")
    raise StepqError(f'The control file "{control}" does not set {key}.')


def extension_version() -> str:
    """Return the version that `create extension pgflow_stepq` installs."""
    return control_value(extension_dir() / f"{EXTENSION}.control", "default_version")


def cache_dir() -> Path:
    """Return the directory for what was fetched once and is kept between runs; git ignores it."""
    cache = root() / ".cache"
    cache.mkdir(exist_ok=True)
    return cache
