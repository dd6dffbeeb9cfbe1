"""The embedded server starts for anybody, says why when it can't, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgflow_stepq import embedded
from pgflow_stepq.embedded import EmbeddedServer, ServerError, server_from_environment


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The temporary directories that servers of this test made."""
    directories: list[Path] = []
    make = tempfile.mkdtemp

    def record(**arguments: str | None) -> str:
        directories.append(Path(make(**arguments)))
        return str(directories[-1])

    monkeypatch.setattr(embedded.tempfile, "mkdtemp", record)
    return directories


def test_a_server_offers_the_extensions_and_goes_without_a_trace(made: list[Path]) -> None:
    with EmbeddedServer(durable=True, settings={"work_mem": "5MB"}) as server:
        with psycopg.connect(server.conninfo()) as connection:
            available = {name for (name,) in connection.execute("select name from pg_available_extensions")}
            assert {"pgmq", "pgflow_stepq", "plpgsql"} <= available
            assert connection.execute("show fsync").fetchone() == ("on",)
            assert connection.execute("show work_mem").fetchone() == ("5MB",)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create role somebody login")
        server.restart("immediate")
        with psycopg.connect(server.conninfo(user="somebody")) as connection:
            assert connection.execute("select current_user").fetchone() == ("somebody",)
        assert made[0].exists()
    assert [path for path in made if path.exists()] == []
    server.stop()


def test_a_server_that_does_not_start_says_why_and_leaves_nothing(made: list[Path]) -> None:
    with pytest.raises(ServerError, match="max_connections"):
        EmbeddedServer(settings={"max_connections": "none"})
    assert len(made) == 1
    assert not made[0].exists()


def test_a_directory_without_a_server_is_refused(tmp_path: Path, made: list[Path]) -> None:
    with pytest.raises(ServerError, match=r"no postgres in .* Set PG_BINDIR"):
        EmbeddedServer(bindir=tmp_path)
    assert not made[0].exists()


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 0)])
def test_the_server_command_ends_cleanly_on_a_signal(signum: signal.Signals, status: int) -> None:
    command = [sys.executable, "-m", "pgflow_stepq.cli", "server", "--dbname", "mine"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG") or key == "PG_BINDIR"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().split("'")[1]
        socket_directory = Path(str(conninfo_to_dict(url)["host"]))
        with psycopg.connect(url) as connection:
            assert connection.execute(
                "select count(*) from pg_extension where extname in ('pgmq', 'pgflow_stepq')"
            ).fetchone() == (2,)
        process.send_signal(signum)
        process.stdout.read()
    assert process.returncode == status
    assert not socket_directory.exists()


def test_no_named_server_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    assert server_from_environment() is None


def test_a_named_server_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(ServerError, match="can't be reached"):
        server_from_environment()


def test_a_named_server_without_an_extension_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, server_environment: dict[str, str]
) -> None:
    for name, value in server_environment.items():
        monkeypatch.setenv(name, value)
    server = server_from_environment()
    assert server is not None
    with pytest.raises(ServerError, match=r"does not offer the extension\(s\) no_such_extension"):
        server.provide("no_such_extension")
