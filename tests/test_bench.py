"""The bench still works: every workload does what it is timed for. Nothing here asks how fast."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgflow_stepq import checkout, cli
from pgflow_stepq.bench import WORKLOADS, BenchError, Harness, Plan, Scale, Workload, npm_package
from pgflow_stepq.bench.bars import BARS, Bar
from pgflow_stepq.bench.command import run_on
from pgflow_stepq.bench.databases import ScratchDatabases
from pgflow_stepq.bench.errors import MissingPeerError
from pgflow_stepq.bench.figures import rates, ratios, verdicts
from pgflow_stepq.bench.flow import compile_flow, step
from pgflow_stepq.bench.harness import Sample
from pgflow_stepq.bench.history import ChainHistory, DiamondHistory, MapHistory
from pgflow_stepq.bench.report import missing_lines
from pgflow_stepq.bench.sessions import RetryingStepWorker, Session, drain_session
from pgflow_stepq.bench.steady import Snapshot
from pgflow_stepq.bench.waiting import percentile
from pgflow_stepq.embedded import Server

TINY = Scale(
    messages=120,
    map_tasks=120,
    peer_map_tasks=60,
    chain_runs=60,
    diamond_runs=60,
    single_calls=6,
    started_runs=110,
    compiled_steps=20,
    verifications=3,
    session_tasks=160,
    awaited_tasks=10,
    backlog=1000,
    flow_backlog=20,
    growth_tasks=100,
    history_tasks=600,
    history_delayed=60,
    steady_seconds=0.1,
    steady_tasks=90,
)
UNITS = {
    "commit": 6,
    "raw": 120,
    "raw-100": 120,
    "raw-1": 6,
    "map": 122,
    "map-history": 122,
    "map-claim": 122,
    "pgflow-map": 62,
    "chain": 180,
    "chain-history": 180,
    "pgflow-chain": 180,
    "pgqueuer-chain": 180,
    "pgqueuer-batch": 180,
    "pgqueuer": 120,
    "diamond": 210,
    "diamond-history": 210,
    "single": 6,
    "single-history": 6,
    "pgflow-single": 6,
    "start": 110,
    "starts": 110,
    "pgflow-start": 110,
    "sessions-1": 160,
    "sessions-8": 160,
    "queues-1": 160,
    "queues-8": 160,
    "wait-idle": 10,
    "wait-backlog": 10,
    "wait-flow-mode": 10,
    "map-100": 102,
    "map-1000": 102,
    "map-10000": 102,
    "compile": 20,
    "compile-200": 20,
    "verify": 3,
}
# Measured for a time, so nobody knows how many units that will be.
STEADY = ["raw-steady", "raw-snapshot", "map-steady", "map-snapshot", "chain-steady", "chain-snapshot"]
SESSIONS = ["sessions-1", "sessions-8", "queues-1", "queues-8"]
WAITS = ["wait-idle", "wait-backlog", "wait-flow-mode"]


def scratch_databases(server: Server) -> list[str]:
    with psycopg.connect(server.conninfo()) as connection:
        rows = connection.execute(r"select datname from pg_database where datname like 'pgflow\_bench\_%'")
        return [name for (name,) in rows]


def test_every_workload_does_its_work_and_is_reported(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, chart = tmp_path / "bench.json", tmp_path / "bench.png"
    run_on(server, Plan(tuple(WORKLOADS.values()), TINY, rounds=1, warm_up=TINY), json_file=file, chart_file=chart)

    document = json.loads(file.read_text(encoding="utf-8"))
    # Other engines may not be had here; then each is named with the reason.
    missing = document["missing"]
    assert all(name.startswith(("pgflow-", "pgqueuer")) for name in missing), missing
    measured = [name for name in WORKLOADS if name not in missing]
    units = {sample["workload"]: sample["units"] for sample in document["samples"]}
    assert {name: count for name, count in units.items() if name not in STEADY} == {
        name: count for name, count in UNITS.items() if name in measured
    }
    assert set(units) == set(measured)
    assert {
        sample["workload"]: sample["conflicts"] for sample in document["samples"] if sample["conflicts"] is not None
    } == dict.fromkeys(SESSIONS, 0)
    assert [rate["workload"] for rate in document["rates"]] == [name for name in measured if name not in WAITS]
    assert [wait["workload"] for wait in document["waits"]] == WAITS
    assert [(ratio["workload"], ratio["against"]) for ratio in document["ratios"]] == [
        (name, other) for name in measured for other in WORKLOADS[name].against if other in measured
    ]
    judged = [bar for bar in BARS if bar.workload in measured]
    assert [bar["what"] for bar in document["bars"]] == [bar.what for bar in judged]
    printed, told = capsys.readouterr()
    assert all(f"\n{name} " in printed for name in measured), printed
    assert all(f"\n{bar.what} " in printed for bar in judged), printed
    assert [line for line in told.splitlines() if line.startswith("Skipped ")] == missing_lines(missing)
    assert ("older than pgflow 0.14" in " ".join(printed.split())) is ("pgflow-map" in measured)
    settings = document["machine"]["settings"]
    assert f"fsync = {settings['fsync']}, synchronous_commit = {settings['synchronous_commit']}" in printed
    assert ("NOT durable" in printed) is (not document["machine"]["durable"])
    assert chart.read_bytes().startswith(b"\x89PNG\r\n")
    assert scratch_databases(server) == []


def test_an_engine_that_cannot_be_had_is_skipped_with_a_line_that_says_so(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "cache_dir", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    names = ("raw-1", "pgflow-map", "pgflow-single")
    file = tmp_path / "bench.json"
    run_on(server, Plan(tuple(WORKLOADS[name] for name in names), TINY, rounds=1, warm_up=TINY), json_file=file)

    line = "Skipped pgflow-map, pgflow-single: npm, which fetches @pgflow/core@0.8.1, is not on PATH."
    printed, told = capsys.readouterr()
    assert line in printed
    assert line in told
    document = json.loads(file.read_text(encoding="utf-8"))
    assert list(document["missing"]) == ["pgflow-map", "pgflow-single"]
    assert [sample["workload"] for sample in document["samples"]] == ["raw-1"]
    assert document["bars"] == []


def test_a_package_that_the_registry_does_not_give_is_a_reason_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error code E404' >&2\nexit 1\n", encoding="utf-8")
    npm.chmod(0o755)
    monkeypatch.setattr(checkout, "cache_dir", lambda: tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(MissingPeerError, match=r"npm pack @x/y@1: npm failed \(1\): npm error code E404"):
        npm_package.fetch("@x/y@1", "package/")
    assert [path.name for path in tmp_path.iterdir()] == ["npm"]


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
        ScratchDatabases(server, TINY) as databases,
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
        ("chain", "update pgflow.step_tasks set status = 'failed', output = null", "completed tasks: 0 instead of 180"),
        ("diamond", "update pgflow.runs set output = '{\"join\": 1}'", "output of run .*'join': 1.* instead of .*3"),
        ("map-100", "delete from pgflow.runs where false; select pgmq.send('bench__each', '{}')", "messages left"),
        ("raw-steady", "delete from pgmq.a_bench_raw where msg_id = 7", "messages in the archive: .* instead of"),
        ("map-steady", "update pgflow.runs set status = 'started'", "completed runs: 0 instead of"),
        ("start", "delete from pgmq.q_bench__first where msg_id = 7", "a queued first task: 109 instead of 110"),
    ],
)
def test_a_workload_notices_what_is_missing_at_its_end(
    fresh_database: str, name: str, tampering: str, says: str
) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as connection, closing(WORKLOADS[name](TINY)) as workload:
        workload.set_up(connection)
        workload.load(connection)
        workload.work(connection)
        workload.check(connection)
        connection.execute(tampering)
        with pytest.raises(BenchError, match=says):
            workload.check(connection)


@pytest.mark.parametrize("kind", [MapHistory, ChainHistory, DiamondHistory])
def test_the_past_is_what_the_engine_itself_would_have_left(empty_database: str, kind: type[Workload]) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        kind.template.fill(connection, TINY)
        # Messages are hidden for longer than anything asks for, so that nobody meets them during a measurement.
        faults = connection.execute("select distinct code from pgflow.check_integrity()")
        assert [code for (code,) in faults] == ["message_hidden_too_long"]
        finished, runs = connection.execute(
            """
            select count(*), count(distinct run_id)
            from pgflow.step_tasks
            inner join pgflow.runs using (run_id)
            where runs.status = 'completed' and step_tasks.status = 'completed'
            """
        ).fetchone() or (0, 0)
        assert finished >= TINY.history_tasks
        assert finished < TINY.history_tasks + finished / runs
        delayed = connection.execute("select queue_length, queue_visible_length from pgmq.metrics_all()").fetchall()
        assert len(delayed) >= 3
        assert all(length >= TINY.history_delayed and visible == 0 for length, visible in delayed)


def test_a_snapshot_is_held_until_it_is_closed(database: str) -> None:
    with closing(Snapshot(database)) as snapshot, psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table later (number int)")
        connection.execute("drop table later")
        assert snapshot.is_held()
        held = "select count(*) from pg_stat_activity where datname = current_database() and backend_xmin is not null"
        assert connection.execute(held).fetchone() == (2,)  # the one who asks has one too
        snapshot.close()
        assert connection.execute(held).fetchone() == (1,)


class Crossed:
    """Calls that end in a deadlock twice before they succeed."""

    def __init__(self) -> None:
        self.left = 2

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise psycopg.errors.DeadlockDetected
        return "done"


def test_deadlocks_are_counted_and_the_call_repeated(conn: psycopg.Connection[Any]) -> None:
    compile_flow(conn, step("each"))
    worker = RetryingStepWorker(conn, "each", lambda given, _: given, 1)
    assert worker.repeated(Crossed()) == "done"
    assert worker.conflicts == 2


def test_an_error_in_a_session_is_told_where_it_was_started(database: str) -> None:
    says = r"A session of the bench failed: .*no_such_step"
    with (
        closing(Session(drain_session, database, ["no_such_step"], 1)) as session,
        pytest.raises(BenchError, match=says),
    ):
        session.receive()


def test_the_command_profiles_on_a_server_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of another server, which is none of its sessions' business.
    monkeypatch.setenv("PGPORT", "1")
    file = tmp_path / "bench.json"
    options = ["--workloads", "raw,sessions-1", "--rounds", "1", "--not-durable", "--profile", "--json", str(file)]
    assert cli.main(["bench", *options]) == 0

    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["machine"]["settings"]["fsync"] == "off"
    (profile,) = document["profiles"]
    calls = {function["function"]: function["calls"] for function in profile["functions"]}
    # 2,000 messages by 50, and a last read that finds none.
    assert (calls["pgmq.read"], calls["pgmq.archive"]) == (41, 40)
    assert any("pgmq.q_bench_raw" in statement["statement"] for statement in profile["statements"])
    printed, told = capsys.readouterr()
    assert "Profile of raw: 2,000 messages" in printed
    assert "no profile  sessions-1: it works in sessions of its own" in told
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


def sample(name: str, number: int, seconds: float, **more: Any) -> Sample:
    return Sample(name, number, 100, seconds, **more)


def test_bars_are_judged_within_rounds() -> None:
    at_most = Bar("at most", "map", "raw", 2.5)
    at_least = Bar("at least", "pgflow-map", "map", 3, at_least=True)
    slowdown = Bar("slowdown", "map", "raw", 1.3, relative_to=("single", "raw-1"))
    count = Bar("deadlocks", "sessions-8", None, 0)
    waits = Bar("waits", "wait-backlog", "wait-idle", 1.5)
    absent = Bar("absent", "chain", "raw", 1)
    samples = [
        found
        for number, factor in ((1, 1.0), (2, 10.0), (3, 2.0))
        for found in (
            sample("raw", number, factor),
            sample("map", number, 2 * factor),
            sample("pgflow-map", number, 4 * factor),
            sample("single", number, 5 * factor),
            sample("raw-1", number, 2 * factor),
            sample("sessions-8", number, factor, conflicts=number - 1),
            sample("wait-idle", number, 9.0, wait=0.01),
            sample("wait-backlog", number, 9.0, wait=0.02),
        )
    ]
    found = verdicts([at_most, at_least, slowdown, count, waits, absent], samples)
    assert [(verdict.bar.what, verdict.measured and round(verdict.measured, 6), verdict.met) for verdict in found] == [
        ("at most", 2, True),
        ("at least", 2, False),
        ("slowdown", 0.8, True),
        ("deadlocks", 3, False),
        ("waits", 2, False),
        ("absent", None, None),
    ]
    assert found[0].rounds == [2, 2, 2]


def test_every_bar_is_about_workloads_that_exist() -> None:
    named = {name for bar in BARS for name in (bar.workload, bar.against, *(bar.relative_to or ())) if name}
    assert named <= set(WORKLOADS)


@pytest.mark.parametrize(
    ("values", "found"), [([3.0], 3), (list(range(1, 21)), 19), (list(range(100, 0, -1)), 95), ([1.0, 2.0], 2)]
)
def test_a_percentile_is_one_of_the_values(values: list[float], found: float) -> None:
    assert percentile(values) == found


def test_a_chart_without_matplotlib_is_refused_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.main(["bench", "--chart", str(tmp_path / "bench.png")]) == 1
    assert "A chart needs the Python package matplotlib" in capsys.readouterr().err


def test_help_tells_what_each_workload_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"  {name:<16}{workload.summary}\n" in printed for name, workload in WORKLOADS.items())
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
