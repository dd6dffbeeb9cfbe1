"""The README's examples, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgflow_stepq.embedded import Server

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_ten_lines_of_psql_work_in_an_empty_database(server: Server, empty_database: str, tmp_path: Path) -> None:
    [example] = blocks("sql")
    assert len(example.splitlines()) == 10
    script = tmp_path / "example.sql"
    script.write_text(example, encoding="utf-8")

    result = subprocess.run(
        [str(server.psql()), "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", str(script), "-d", empty_database],
        check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "compiled",
        "greet__hello",
        "greet__shout",
        'hello|1|{"name": "Ada"}',
        "completed",
        'shout|1|{"hello": "Hello, Ada"}',
        "completed",
    ]
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select status, output from pgflow.runs").fetchall() == [
            ("completed", {"shout": "HELLO, ADA"})
        ]
        assert connection.execute("select * from pgflow.check_integrity()").fetchall() == []


def wait_until(connection: psycopg.Connection[tuple[Any, ...]], question: str) -> None:
    """Ask a yes-or-no question of the database until the answer is yes."""
    end = time.monotonic() + 60
    while connection.execute(question).fetchone() != (True,):
        assert time.monotonic() < end, f"still not so: {question}"
        time.sleep(0.05)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the README's flow file and handlers."""
    [flow] = blocks("json")
    [handlers] = blocks("python")
    (tmp_path / "greet.json").write_text(flow, encoding="utf-8")
    (tmp_path / "handlers.py").write_text(handlers, encoding="utf-8")
    return tmp_path


def test_the_two_worker_commands_finish_a_run(fresh_database: str, project: Path) -> None:
    commands = re.findall(r"^    pgflow-stepq (worker --shape .*)$", README, flags=re.MULTILINE)
    assert len(commands) == 2
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "pgflow_stepq.cli", *command.split(), "--dsn", fresh_database],
            cwd=project,
        )
        for command in commands
    ]
    try:
        with psycopg.connect(fresh_database, autocommit=True) as connection:
            # Both compile the flow first; the one that comes second verifies it.
            wait_until(connection, "select count(*) = 2 from pgflow.workers")
            connection.execute("select pgflow.start_flow('greet', '{\"name\": \"Ada\"}')")
            wait_until(connection, "select not exists (select from pgflow.runs where status = 'started')")
            runs = connection.execute("select status, output from pgflow.runs").fetchall()
    finally:
        for worker in workers:
            worker.terminate()
        codes = [worker.wait(timeout=60) for worker in workers]

    assert runs == [("completed", {"shout": "HELLO, ADA"})]
    assert codes == [0, 0]


def test_every_file_that_the_readme_links_to_is_there() -> None:
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", README)]
    files = [target for target in targets if target and not target.startswith("http")]
    assert files
    missing = [target for target in files if not (Path(__file__).parent.parent / target).exists()]
    assert missing == []
