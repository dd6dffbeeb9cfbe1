"""The bench still works: every workload does what it is timed for. Nothing here asks how fast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgflow_stepq import cli
from pgflow_stepq.bench import WORKLOADS, BenchError, Harness, Plan, Scale, Workload
from pgflow_stepq.bench.command import run_on
from pgflow_stepq.bench.databases import ScratchDatabases
from pgflow_stepq.bench.figures import rates, ratios
from pgflow_stepq.bench.harness import Sample
from pgflow_stepq.embedded import Server

TINY = Scale(
    messages=120, map_tasks=120, chain_runs=60, single_calls=6, started_runs=110, compiled_steps=40, verifications=3
)
UNITS = {
    "commit": 6,
    "raw": 120,
    "raw-100": 120,
    "raw-1": 6,
    "map": 122,
    "map-claim": 122,
    "chain": 180,
    "single": 6,
    "start": 110,
    "starts": 110,
    "compile": 40,
    "compile-200": 40,
    "verify": 3,
}


def scratch_databases(server: Server) -> list[str]:
    with psycopg.connect(server.conninfo()) as connection:
        rows = connection.execute(r"select datname from pg_database where datname like 'pgflow\_bench\_%'")
        return [name for (name,) in rows]


def test_every_workload_does_its_work_and_is_reported(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    run_on(server, Plan(tuple(WORKLOADS.values()), TINY, rounds=1, warm_up=TINY), json_file=file)

    document = json.loads(file.read_text(encoding="utf-8"))
    assert {sample["workload"]: sample["units"] for sample in document["samples"]} == UNITS
    assert [rate["workload"] for rate in document["rates"]] == list(WORKLOADS)
    assert [(ratio["workload"], ratio["against"]) for ratio in document["ratios"]] == [
        (name, other) for name, workload in WORKLOADS.items() for other in workload.against
    ]
    printed = capsys.readouterr().out
    assert all(f"\n{name} " in printed for name in WORKLOADS), printed
    settings = document["machine"]["settings"]
    assert f"fsync = {settings['fsync']}, synchronous_commit = {settings['synchronous_commit']}" in printed
    assert ("NOT durable" in printed) is (not document["machine"]["durable"])
    assert scratch_databases(server) == []


class Lazy(Workload):
    """Counts work that it never did."""

    name = "lazy"
    summary = "nothing"
    unit = "things"

    def set_up(self, connection: Any) -> None:
        pass

    def load(self, connection: Any) -> None:
        pass

    def work(self, connection: Any) -> int:
        connection.execute("select 1")
        return self.scale.messages

    def check(self, connection: Any) -> None:
        self.expect("things done", 0, self.scale.messages)


def test_a_figure_for_work_that_was_not_done_is_refused(server: Server) -> None:
    with (
        pytest.raises(BenchError, match='Workload "lazy" did not do its work: things done: 0 instead of 120'),
        ScratchDatabases(server) as databases,
    ):
        Harness(databases, Plan((Lazy,), TINY, rounds=1, warm_up=TINY), lambda _: None).measure()
    assert scratch_databases(server) == []


@pytest.mark.parametrize(
    ("name", "tampering", "says"),
    [
        ("raw", "delete from pgmq.a_bench_raw where msg_id = 7", "messages in the archive: 119 instead of 120"),
        ("raw", "select pgmq.send('bench_raw', '{}')", "messages left on the queue: 1 instead of 0"),
        ("map", "update pgflow.runs set status = 'started'", "completed runs: 0 instead of 1"),
        ("map", "update pgflow.runs set output = '{\"total\": 1}'", "output of run .*'total': 1.* instead of .*14280"),
        ("map", "delete from pgflow.step_tasks where task_index = 7", "completed tasks: 121 instead of 122"),
        ("chain", "select pgmq.send('bench__second', '{}')", "messages left on the flow's queues: 1 instead of 0"),
        ("start", "delete from pgmq.q_bench__first where msg_id = 7", "a queued first task: 109 instead of 110"),
    ],
)
def test_a_workload_notices_what_is_missing_at_its_end(
    fresh_database: str, name: str, tampering: str, says: str
) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        workload = WORKLOADS[name](TINY)
        workload.set_up(connection)
        workload.load(connection)
        workload.work(connection)
        workload.check(connection)
        connection.execute(tampering)
        with pytest.raises(BenchError, match=says):
            workload.check(connection)


def test_the_command_profiles_on_a_server_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    options = ["--workloads", "raw", "--rounds", "1", "--not-durable", "--profile", "--json", str(file)]
    assert cli.main(["bench", *options]) == 0

    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["machine"]["settings"]["fsync"] == "off"
    (profile,) = document["profiles"]
    calls = {function["function"]: function["calls"] for function in profile["functions"]}
    # 2,000 messages by 50, and a last read that finds none.
    assert (calls["pgmq.read"], calls["pgmq.archive"]) == (41, 40)
    assert any("pgmq.q_bench_raw" in statement["statement"] for statement in profile["statements"])
    printed = capsys.readouterr().out
    assert "Profile of raw: 2,000 messages" in printed
    assert "NOT durable" in printed


def test_every_round_starts_with_another_workload() -> None:
    kinds = tuple(WORKLOADS.values())[:3]
    plan = Plan(kinds, TINY, rounds=4)
    orders = [[kind.name for kind in plan.in_turn(number)] for number in range(4)]
    assert orders == [
        ["commit", "raw", "raw-100"],
        ["raw", "raw-100", "commit"],
        ["raw-100", "commit", "raw"],
        ["commit", "raw", "raw-100"],
    ]


def test_medians_are_over_rounds_and_ratios_within_them() -> None:
    samples = [
        Sample("raw", 1, 100, 1.0, 0.5),
        Sample("map", 1, 102, 2.04, 1.02),
        Sample("raw", 2, 100, 4.0, 0.4),
        Sample("map", 2, 102, 12.24, 2.04),
        Sample("raw", 3, 100, 2.0, 0.0),
        Sample("map", 3, 102, 20.4, None),
    ]
    kinds = (WORKLOADS["raw"], WORKLOADS["map"])
    raw, map_rate = rates(kinds, samples)
    assert (raw.median, raw.slowest, raw.fastest, raw.unit_ms, raw.server_ms) == (50, 25, 100, 20, 4)
    assert (map_rate.units, map_rate.unit, map_rate.rounds, map_rate.server_ms) == (102, "tasks", 3, 15)
    (ratio,) = ratios(kinds, samples)
    assert (ratio.workload, ratio.against, ratio.rounds, ratio.median) == (
        "map",
        "raw",
        pytest.approx([2, 3, 10]),
        pytest.approx(3),
    )
    assert ratio.server_median == pytest.approx((2 + 5) / 2)
    assert ratios(kinds[1:], samples[1::2]) == []


def test_help_tells_what_each_workload_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"  {name:<12}{workload.summary}\n" in printed for name, workload in WORKLOADS.items())
    assert "ANALYZE" in printed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--workloads", "raw,mop"), 'there is no workload "mop"; there are commit, raw,'),
        (("--workloads", ""), 'there is no workload ""'),
        (("--rounds", "0"), '"0" must be a whole number, 1 or more'),
        (("--rounds", "few"), '"few" must be a whole number'),
        (("--scale", "huge"), "invalid choice: 'huge'"),
        (("--json", "/nowhere/bench.json"), '"/nowhere/bench.json" can\'t be written'),
    ],
    ids=" ".join,
)
def test_bad_options_are_refused_before_a_server_starts(
    capsys: pytest.CaptureFixture[str], options: tuple[str, str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", *options])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
