"""pgTAP files fail readably, by pytest and by make installcheck alike."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from pgflow_stepq import checkout, pgtap
from pgflow_stepq.embedded import Server
from pgflow_stepq.pytest_plugin import Databases

KEPT = "select plan(2);\nselect ok(true, 'this holds');\nselect is(1, 1, 'so does this');\nselect * from finish();\n"
BROKEN = "select plan(2);\nselect is(1, 2, 'one is two');\nselect ok(true, 'this holds');\nselect * from finish();\n"
RAISING = """select plan(1);
do $$ begin
  raise exception using errcode = 'PF018', message = 'Unknown.', detail = 'The figures.', hint = 'Do this.';
end $$;
"""
EMPTY = "select 1;\n"


def write(directory: Path, **files: str) -> None:
    room = directory / "pgtap" / "room"
    room.mkdir(parents=True)
    for name, body in files.items():
        (room / f"{name}.sql").write_text(f"begin;\n{body}rollback;\n", encoding="utf-8")


@pytest.fixture
def outer_server(monkeypatch: pytest.MonkeyPatch, databases: Databases, server_environment: dict[str, str]) -> None:
    """Let the session that a test starts use this session's server, which pgTAP is staged for."""
    databases.pgtap_database()
    for name, value in server_environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("outer_server")
def test_pytest_reports_every_way_in_which_a_file_fails(pytester: pytest.Pytester) -> None:
    write(pytester.path, kept=KEPT, broken=BROKEN, raising=RAISING, empty=EMPTY)
    result = pytester.runpytest_subprocess("-p", "pgflow_stepq.pytest_plugin")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "*pgtap: room/broken*",
            "not ok 1 - one is two",
            "*have: 1",
            "*want: 2",
            "*raising.sql:5: ERROR:  PF018: Unknown.",
            "*DETAIL:  The figures.",
            "*HINT:  Do this.",
            "Nothing is asserted. Write at least one assertion.",
        ]
    )


def run_installcheck(checkout_dir: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    tools = checkout_dir / "tools"
    tools.mkdir()
    shutil.copy(checkout.root() / "tools" / "installcheck.sh", tools)
    return subprocess.run(
        ["sh", str(tools / "installcheck.sh")],
        check=False, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def installcheck_environment(
    server: Server, databases: Databases, server_environment: dict[str, str], needs: Callable[[str, str], Path]
) -> dict[str, str]:
    """The session's server, its psql on PATH, and a prove."""
    needs("prove", "apt-get install perl")
    databases.pgtap_database()
    path = os.pathsep.join([str(server.psql().parent), os.environ["PATH"]])
    return {**server_environment, "PATH": path}


def scratch_databases(server: Server) -> list[str]:
    with psycopg.connect(server.conninfo()) as connection:
        rows = connection.execute("select datname from pg_database where datname ~ '^stepq_installcheck'").fetchall()
    return [name for (name,) in rows]


def test_installcheck_ends_on_the_number_of_tests(
    tmp_path: Path, server: Server, installcheck_environment: dict[str, str]
) -> None:
    write(tmp_path, kept=KEPT, kept_too=KEPT)
    result = run_installcheck(tmp_path, installcheck_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "pgtap: 4 passed, 0 failed"
    assert scratch_databases(server) == []


def test_installcheck_fails_with_a_failing_file(
    tmp_path: Path, server: Server, installcheck_environment: dict[str, str]
) -> None:
    write(tmp_path, kept=KEPT, broken=BROKEN)
    result = run_installcheck(tmp_path, installcheck_environment)
    assert result.returncode != 0
    assert result.stdout.splitlines()[-1] == "pgtap: 3 passed, 1 failed"
    assert "have: 1" in result.stdout
    assert scratch_databases(server) == []


def test_installcheck_fails_with_a_file_that_raises(tmp_path: Path, installcheck_environment: dict[str, str]) -> None:
    write(tmp_path, kept=KEPT, raising=RAISING)
    result = run_installcheck(tmp_path, installcheck_environment)
    assert result.returncode != 0
    assert "Unknown." in result.stdout


def test_installcheck_fails_without_any_file(tmp_path: Path, installcheck_environment: dict[str, str]) -> None:
    (tmp_path / "pgtap").mkdir()
    result = run_installcheck(tmp_path, installcheck_environment)
    assert result.returncode == 1
    assert "no pgTAP file" in result.stderr


def test_without_any_way_to_pgtap_every_way_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "cache_dir", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(pgtap.PgtapError) as refusal:
        pgtap.fetch()
    text = str(refusal.value)
    assert all(way in text for way in pgtap.WAYS), text
    assert list(tmp_path.iterdir()) == []
