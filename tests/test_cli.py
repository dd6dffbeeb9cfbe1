"""The console command: what it lists, and how it says no."""

from __future__ import annotations

import argparse
from typing import Any

import psycopg
import pytest

from pgflow_stepq import __version__, cli
from pgflow_stepq.errors import StepqError


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for command in ("worker", "status", "demo", "bench", "server", "pgtap", "render", "stage", "dist"):
        assert f"\n    {command} " in text, command


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"pgflow-stepq {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["render", "--no-such-option"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2


def failing_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(_args: argparse.Namespace) -> int:
        raise error

    top = argparse.ArgumentParser()
    top.set_defaults(func=fail)
    monkeypatch.setattr(cli, "parser", lambda: top)
    return cli.main([])


def test_a_refusal_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing_with(StepqError("There is no such thing. Make one."), monkeypatch) == 1
    assert capsys.readouterr().err == "pgflow-stepq: There is no such thing. Make one.\n"


def test_a_server_error_shows_code_message_detail_and_hint(
    conn: psycopg.Connection[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(psycopg.Error) as raised:
        conn.execute(
            "do $$ begin raise exception using errcode = 'PF018', message = 'Unknown flow.', "
            "detail = 'The figures.', hint = 'Do this.'; end $$"
        )
    assert failing_with(raised.value, monkeypatch) == 1
    assert capsys.readouterr().err == "ERROR:  PF018: Unknown flow.\nDETAIL:  The figures.\nHINT:  Do this.\n"


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failing_with(KeyboardInterrupt(), monkeypatch) == 130
