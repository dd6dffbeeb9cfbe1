"""The command `pgflow-stepq worker`: what is wrong with its options is said before a database is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgflow_stepq import worker

SHAPE = {"steps": [{"slug": "ship", "stepType": "single", "dependencies": []}]}


def run_command(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "flow.json").write_text(json.dumps({"slug": "orders", "shape": SHAPE}))
    (directory / "tasks.py").write_text("def ship(input): return input\ndef nothing(): pass\n")
    return subprocess.run(
        [sys.executable, "-m", "pgflow_stepq.worker", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )


GOOD = ("--shape", "flow.json", "--handler", "tasks:ship")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "the following arguments are required: --shape, --handler"),
        ((*GOOD, "--max-concurrent", "0"), '"0" must be a whole number from 1 to 10000'),
        ((*GOOD, "--max-concurrent", "four"), '"four" must be a whole number'),
        ((*GOOD, "--poll-seconds", "61"), '"61" must be a whole number from 0 to 60'),
        ((*GOOD, "--heartbeat-seconds", "30"), '"30" must be a number of seconds from 0.1 to 25'),
        ((*GOOD, "--drain-seconds", "nan"), '"nan" must be a number of seconds'),
        ((*GOOD, "--queue-mode", "both"), "invalid choice: 'both'"),
        ((*GOOD, "--dsn", "host='x"), "The dsn is no connection string or URI"),
        (("--shape", "none.json", "--handler", "tasks:ship"), "Can't read the flow file none.json"),
        (("--shape", "flow.json", "--handler", "tasks:fly"), '"tasks:fly" does not exist'),
        (("--shape", "flow.json", "--handler", "task:ship"), 'Can\'t import the module "task"'),
        (("--shape", "flow.json", "--handler", "tasks:nothing"), "can't be called as handler(input)"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_bad_usage_ends_with_2_and_a_reason(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    result = run_command(tmp_path, *options)
    assert (result.returncode, "Traceback" in result.stderr) == (2, False), result.stderr
    assert says in result.stderr


def test_a_database_that_is_not_there_ends_with_1_and_a_reason(tmp_path: Path) -> None:
    result = run_command(tmp_path, *GOOD, "--dsn", f"host={tmp_path} dbname=nowhere")
    assert (result.returncode, "Traceback" in result.stderr) == (1, False), result.stderr
    assert "Can't connect to the database" in result.stderr


def test_help_tells_the_exit_codes_and_every_default(tmp_path: Path) -> None:
    result = run_command(tmp_path, "--help")
    assert result.returncode == 0
    for line in worker.command.EXIT_CODES.splitlines():
        assert line in result.stdout
    assert result.stdout.count("(default: ") >= 9
