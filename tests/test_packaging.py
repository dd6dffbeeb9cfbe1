"""A release is complete, says the same version everywhere, and installs without Python."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgflow_stepq import __version__, checkout, dist
from pgflow_stepq.checkout import control_value
from pgflow_stepq.embedded import default_bindir
from pgflow_stepq.render import release_path
from pgflow_stepq.stage import stage

ROOT = checkout.root()
# PGXN Meta Spec 1.0.0: what a META.json must hold, and the forms of its values.
REQUIRED = {"name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"}
SEMVER = re.compile(r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+)?$")
TERM = re.compile(r"^[^\s/\\\x00-\x1f]{2,}$")
TAG = re.compile(r"^[^/\\\x00-\x1f]{1,256}$")


@pytest.fixture
def meta() -> dict[str, Any]:
    document = json.loads((ROOT / "META.json").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def test_meta_holds_what_the_spec_requires(meta: dict[str, Any]) -> None:
    assert meta.keys() >= REQUIRED
    assert TERM.match(meta["name"])
    assert SEMVER.match(meta["version"])
    assert meta["license"] == "postgresql"
    assert meta["meta-spec"]["version"] == "1.0.0"
    assert meta["release_status"] in {"stable", "testing", "unstable"}
    assert all(meta[key].strip() for key in ("abstract", "description", "maintainer", "generated_by"))
    assert len(meta["tags"]) == len({tag.lower() for tag in meta["tags"]})
    assert all(TAG.match(tag) for tag in meta["tags"])


def test_meta_provides_files_that_are_there(meta: dict[str, Any]) -> None:
    assert set(meta["provides"]) == {checkout.EXTENSION}
    for name, provided in meta["provides"].items():
        assert TERM.match(name)
        assert SEMVER.match(provided["version"])
        assert (ROOT / provided["file"]).is_file()
        assert (ROOT / provided["docfile"]).is_file()


def test_meta_prerequisites_are_versions(meta: dict[str, Any]) -> None:
    for phase, relations in meta["prereqs"].items():
        assert phase in {"configure", "build", "test", "runtime", "develop"}
        for relation, needed in relations.items():
            assert relation in {"requires", "recommends", "suggests", "conflicts"}
            for name, version in needed.items():
                assert TERM.match(name)
                assert version == 0 or SEMVER.match(version), (name, version)
    assert meta["prereqs"]["runtime"]["requires"]["PostgreSQL"] == "15.0.0"


def test_every_place_says_the_same_version(meta: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = {
        "META.json": meta["version"],
        "META.json, provides": meta["provides"][checkout.EXTENSION]["version"],
        "control file": checkout.extension_version(),
        "pyproject.toml": project["version"],
        "package": __version__,
        "install script": release_path().stem.split("--")[1],
    }
    assert len(set(said.values())) == 1, said
    assert meta["provides"][checkout.EXTENSION]["file"] == release_path().relative_to(ROOT).as_posix()
    assert meta["abstract"] == project["description"]


def test_the_control_file_asks_for_what_the_extension_needs() -> None:
    control = checkout.extension_dir() / f"{checkout.EXTENSION}.control"
    wanted = {"schema": "pgflow", "relocatable": "false", "requires": "pgmq", "superuser": "false"}
    assert {key: control_value(control, key) for key in wanted} == wanted


def test_the_archive_holds_what_an_installation_needs(tmp_path: Path) -> None:
    archive = dist.pack(tmp_path)
    with zipfile.ZipFile(archive) as packed:
        names = set(packed.namelist())
    top = f"{checkout.EXTENSION}-{__version__}"
    assert archive.name == f"{top}.zip"
    assert all(name.startswith(f"{top}/") for name in names)
    script = release_path().relative_to(ROOT).as_posix()
    for name in ("META.json", "Makefile", "LICENSE", "README.md", "extension/pgflow_stepq.control", script):
        assert f"{top}/{name}" in names
    assert not [name for name in names if "/.cache/" in name or "/.venv/" in name or "__pycache__" in name]


def test_the_same_sources_give_the_same_archive(tmp_path: Path) -> None:
    first, second = dist.pack(tmp_path / "first"), dist.pack(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()


def outside_of_make() -> dict[str, str]:
    """Return the environment without what `make test` would hand down to another make: its variables and options."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}


@pytest.fixture(scope="module")
def without_python(tmp_path_factory: pytest.TempPathFactory, needs: Callable[[str, str], Path]) -> dict[str, str]:
    """An environment in which every program can be found but for Python."""
    needs("make", "apt-get install make")
    programs = tmp_path_factory.mktemp("programs")
    for directory in os.environ["PATH"].split(os.pathsep):
        for path in sorted(Path(directory).glob("*")):
            if not path.name.startswith(("python", "pip")) and not (programs / path.name).is_symlink():
                (programs / path.name).symlink_to(path)
    return {**outside_of_make(), "PATH": str(programs)}


def test_make_install_needs_no_python_and_writes_two_files(tmp_path: Path, without_python: dict[str, str]) -> None:
    assert shutil.which("python3", path=without_python["PATH"]) is None
    destination = tmp_path / "destination"
    result = subprocess.run(
        ["make", "-C", str(ROOT), "install", f"DESTDIR={destination}", f"PG_CONFIG={default_bindir() / 'pg_config'}"],
        check=False, capture_output=True, text=True, env=without_python,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    installed = sorted(path for path in destination.rglob("*") if path.is_file())
    assert [path.name for path in installed] == [release_path().name, "pgflow_stepq.control"]
    assert installed[0].read_bytes() == release_path().read_bytes()
    assert {path.parent.name for path in installed} == {"extension"}


def test_make_install_without_postgresql_says_what_to_name(tmp_path: Path, without_python: dict[str, str]) -> None:
    result = subprocess.run(
        ["make", "-C", str(ROOT), "install", f"DESTDIR={tmp_path}", "PG_CONFIG=/nowhere/pg_config"],
        check=False, capture_output=True, text=True, env=without_python,
    )  # fmt: skip
    assert result.returncode != 0
    assert "PG_CONFIG=/usr/lib/postgresql" in result.stderr


def test_make_help_lists_the_targets(without_python: dict[str, str]) -> None:
    result = subprocess.run(["make", "-C", str(ROOT)], check=False, capture_output=True, text=True, env=without_python)
    assert result.returncode == 0, result.stderr
    listed = set(re.findall(r"^make (\w+) +\S", result.stdout, re.MULTILINE))
    assert listed >= {"install", "installcheck", "demo", "test", "lint", "bench", "dist", "clean", "help"}


def test_the_archive_installs_by_pgxn(tmp_path: Path) -> None:
    archive = dist.pack(tmp_path)
    destination = tmp_path / "destination"
    # Not the script pgxn: it runs the commands by the interpreter that pip built them with, which may be gone since.
    package = importlib.util.find_spec("pgxnclient")
    assert package is not None and package.origin is not None
    install = Path(package.origin).with_name("libexec") / "pgxn-install"
    result = subprocess.run(
        [sys.executable, install, "--nosudo", "--pg_config", default_bindir() / "pg_config", archive],
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path,
        env={**outside_of_make(), "DESTDIR": str(destination)},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert [path.name for path in destination.rglob("*.control")] == ["pgflow_stepq.control"]


def test_staged_files_can_be_read_by_any_account(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        written = stage(tmp_path / "deep" / "er")
    finally:
        os.umask(before)
    assert {path.name for path in written} >= {"pgflow_stepq.control", release_path().name, "pgmq.control"}
    for path in (*written, tmp_path / "deep", tmp_path / "deep" / "er", tmp_path / "deep" / "er" / "extension"):
        assert path.stat().st_mode & 0o044 == 0o044, path
