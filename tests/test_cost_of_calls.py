"""What a call reads, by the server's own count, depends on its batch and never on what else lies there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgflow_stepq.pytest_plugin import Databases

Connection = psycopg.Connection[tuple[Any, ...]]
Cost = dict[str, int]

FLOWS: dict[str, tuple[str, str | None, str]] = {"step": ("steps", "a", "steps__a"), "flow": ("plain", None, "plain")}
BATCH = 10

# Rows of tables, and entries of indexes, in this transaction so far.
READS = """
    select sum(pg_stat_get_xact_tuples_returned(class.oid) + pg_stat_get_xact_tuples_fetched(class.oid))
    from pg_class as class
    where class.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace)
      and class.relkind in ('r', 'i')
"""


def open_session(conninfo: str) -> Connection:
    connection = psycopg.connect(conninfo, autocommit=True)
    connection.execute("set client_min_messages to warning")
    connection.execute("set pgflow.events to 'notify'")
    return connection


def compile_flow(conn: Connection, mode: str) -> uuid.UUID:
    """Compile the flow of a mode and return its worker. Beside the map that is worked on, one is for tomorrow."""
    slug, step, _ = FLOWS[mode]
    shape = {
        "steps": [
            {"slug": "a", "stepType": "map"},
            {"slug": "later", "stepType": "map", "options": {"startDelay": 86400}},
        ]
    }
    conn.execute("select pgflow.ensure_flow_compiled(%s, %s, false, %s)", (slug, Jsonb(shape), mode))
    worker = uuid.uuid4()
    conn.execute("select pgflow.register_worker(%s, 'fn', %s, %s)", (worker, slug, step))
    return worker


def start_runs(conn: Connection, slug: str, runs: int, elements: int) -> None:
    inputs = [Jsonb(list(range(elements)))] * runs
    conn.execute("select from pgflow.start_flows(%s, %s)", (slug, inputs))


def fill(conn: Connection, mode: str) -> None:
    """Add thousands of runs that ended, with their tasks and archives, and of messages that wait or are for later."""
    slug, _, queue = FLOWS[mode]
    # Written as they are, since work in so short a time leaves dead rows behind, which are not what is measured here.
    conn.execute(
        f"""
        with run as (
          insert into pgflow.runs (flow_slug, status, input, output, completed_at)
          select %(slug)s, 'completed', '[]', '{{}}', now() from generate_series(1, 2000)
          returning run_id
        ),
        state as (
          insert into pgflow.step_states (
            flow_slug, run_id, step_slug, status, remaining_deps, initial_tasks, remaining_tasks, output, started_at,
            completed_at
          )
          select %(slug)s, run.run_id, step.step_slug, 'completed', 0, 3, 0, '[]', now(), now()
          from run, pgflow.steps as step
          where step.flow_slug = %(slug)s
          returning run_id, step_slug
        ),
        task as (
          insert into pgflow.step_tasks (
            flow_slug, run_id, step_slug, task_index, message_id, queue_name, status, attempts_count, started_at,
            completed_at
          )
          select
            %(slug)s, state.run_id, 'a', index, nextval('pgmq.q_{queue}_msg_id_seq'), '{queue}', 'completed', 1, now(),
            now()
          from state, generate_series(0, 2) as index
          where state.step_slug = 'a'
          returning message_id
        )
        insert into pgmq.a_{queue} (msg_id, vt, message)
        select task.message_id, now(), '{{}}' from task
        """,
        {"slug": slug},
    )
    start_runs(conn, slug, 3, 1000)
    start_runs(conn, slug, 1000, 1)


def results(rows: list[Any]) -> str:
    keys = ("run_id", "step_slug", "task_index", "attempt")
    return json.dumps(
        [{**dict(zip(keys, map(str, row), strict=True)), "output": 1, "error_message": "x"} for row in rows]
    )


class Meter:
    """Calls over ten tasks each, in one transaction, with what each of them reads."""

    def __init__(self, conn: Connection, mode: str, worker: uuid.UUID) -> None:
        self.conn, self.mode, self.worker = conn, mode, worker
        self.slug, self.step, self.queue = FLOWS[mode]
        self.cost: Cost = {}

    def measure(self) -> Cost:
        """Make every call that workers and schedulers repeat; return how much each one read."""
        self.cost = {}
        with self.conn.transaction():
            polled = self.call("poll", self.poll)
            self.call("complete", lambda: self.settle("complete_tasks", polled, "completed"))
            ended = self.messages_of(polled)
            self.call("claim what has ended", lambda: self.claim(ended, "archived"))
            ids = self.visible()
            claimed = self.call("claim by ids", lambda: self.claim(ids))
            self.call("claim what is started", lambda: self.claim(ids, "deferred"))
            self.call("extend", lambda: self.extend(claimed))
            self.call("fail", lambda: self.settle("fail_tasks", claimed, "retrying"))
            self.age(self.poll())
            self.call("requeue", self.requeue)
            self.call("heartbeat", self.heartbeat)
            runs = self.call("start", self.start)
            claimed = self.claim(self.messages_of([(run, "a", 0) for (run,) in runs]))
            self.call("complete and end steps", lambda: self.settle("complete_tasks", claimed, "completed"))
            if self.step is None:
                ids = self.visible()
                self.call("start_tasks", lambda: self.start_tasks(ids))
        return self.cost

    def call(self, name: str, do: Callable[[], Any]) -> Any:
        before = self.reads()
        answer = do()
        self.cost[name] = self.reads() - before
        return answer

    def reads(self) -> int:
        return int(self.conn.execute(READS).fetchone()[0])  # type: ignore[index]

    def poll(self) -> list[Any]:
        query = (
            "select run_id, step_slug, task_index, attempt from pgflow.poll_tasks(%s, %s, 0) where outcome = 'claimed'"
        )
        return self.ten(self.conn.execute(query, (self.worker, BATCH)).fetchall())

    def claim(self, ids: list[int], outcome: str = "claimed") -> list[Any]:
        query = """
            select run_id, step_slug, task_index, attempt
            from pgflow.claim_tasks(%s, %s, %s, %s, %s)
            where outcome = %s
        """
        values = (self.queue, self.slug, self.step, ids, self.worker, outcome)
        return self.ten(self.conn.execute(query, values).fetchall())

    def start_tasks(self, ids: list[int]) -> list[Any]:
        return self.ten(
            self.conn.execute("select * from pgflow.start_tasks(%s, %s, %s)", (self.slug, ids, self.worker)).fetchall()
        )

    def settle(self, function: str, rows: list[Any], status: str) -> None:
        answers = self.conn.execute(f"select status from pgflow.{function}(%s)", (results(rows),)).fetchall()
        assert answers == [(status,)] * BATCH

    def extend(self, rows: list[Any]) -> None:
        run, step, index, attempt = rows[0]
        query = "select pgflow.extend_task(%s, %s, %s, %s, %s, 60) is not null"
        assert self.conn.execute(query, (run, step, index, self.worker, attempt)).fetchone() == (True,)

    def requeue(self) -> None:
        assert self.conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (BATCH,)

    def heartbeat(self) -> None:
        assert self.conn.execute("select should_stop from pgflow.heartbeat(%s)", (self.worker,)).fetchone() == (False,)

    def start(self) -> list[Any]:
        query = "select run_id from pgflow.start_flows(%s, %s)"
        return self.ten(self.conn.execute(query, (self.slug, [Jsonb([1])] * BATCH)).fetchall())

    def messages_of(self, tasks: list[Any]) -> list[int]:
        query = "select message_id from pgflow.step_tasks where (run_id, step_slug, task_index) = (%s, %s, %s)"
        return [self.conn.execute(query, task[:3]).fetchone()[0] for task in tasks]  # type: ignore[index]

    def visible(self) -> list[int]:
        query = (
            f"select msg_id from pgmq.q_{self.queue} where vt <= clock_timestamp() order by vt, msg_id limit {BATCH}"
        )
        return [row[0] for row in self.ten(self.conn.execute(query).fetchall())]

    def age(self, rows: list[Any]) -> None:
        self.conn.cursor().executemany(
            """
            update pgflow.step_tasks
            set queued_at = queued_at - interval '1 day', started_at = started_at - interval '1 day'
            where run_id = %s and step_slug = %s and task_index = %s
            """,
            [row[:3] for row in rows],
        )

    @staticmethod
    def ten(rows: list[Any]) -> list[Any]:
        assert len(rows) == BATCH
        return rows


def nothing_known(conn: Connection) -> None:
    """Leave the tables without statistics."""


def emptied(conn: Connection) -> None:
    """Let the tables have been large, then empty, as after a deletion or a long pruning."""
    for mode, (slug, *_) in FLOWS.items():
        compile_flow(conn, mode)
        start_runs(conn, slug, 1500, 1)
        conn.execute("select pgflow.delete_flow_and_data(%s)", (slug,))
    conn.execute("vacuum")


@pytest.mark.parametrize("mode", FLOWS)
@pytest.mark.parametrize("past", [nothing_known, emptied])
def test_a_call_reads_no_more_where_thousands_of_runs_and_messages_are(
    databases: Databases, past: Callable[[Connection], None], mode: str
) -> None:
    with databases.database() as conninfo, open_session(conninfo) as conn, open_session(conninfo) as early:
        conn.execute("alter table pgflow.runs set (autovacuum_enabled = off)")
        conn.execute("alter table pgflow.step_states set (autovacuum_enabled = off)")
        conn.execute("alter table pgflow.step_tasks set (autovacuum_enabled = off)")
        past(conn)
        for other in FLOWS:
            if other != mode:
                compile_flow(conn, other)
                start_runs(conn, FLOWS[other][0], 1, 100)
        worker = compile_flow(conn, mode)
        start_runs(conn, FLOWS[mode][0], 1, 100)
        # A session makes its plans for the little that is there, and keeps them.
        little = Meter(early, mode, worker).measure()
        fill(conn, mode)

        much = {"plans of before": Meter(early, mode, worker).measure()}
        with open_session(conninfo) as new:
            much["a new session"] = Meter(new, mode, worker).measure()
        conn.execute("analyze")
        for setting in ("auto", "force_generic_plan", "force_custom_plan"):
            with open_session(conninfo) as new:
                new.execute(f"set plan_cache_mode to {setting}")
                much[f"statistics, {setting}"] = Meter(new, mode, worker).measure()
        conn.execute("vacuum analyze")
        much["plans of before, after a vacuum"] = Meter(early, mode, worker).measure()

    # Dead versions of rows come on top; thousands would show.
    too_much = {
        (scene, call): (little[call], reads)
        for scene, cost in much.items()
        for call, reads in cost.items()
        if reads > 2 * little[call] + 200
    }
    assert too_much == {}


def work_in(conn: Connection, steps: int) -> Cost:
    """Compile a flow of so many steps, a chain and others that wait for it; return what work in it reads."""
    slug = f"steps{steps}"
    chain = [{"slug": "s0"}, {"slug": "s1", "dependencies": ["s0"]}, {"slug": "s2", "dependencies": ["s1"]}]
    waiting = [{"slug": f"s{n}", "dependencies": ["s2"]} for n in range(3, steps)]
    conn.execute("select pgflow.ensure_flow_compiled(%s, %s, false, 'step')", (slug, Jsonb({"steps": chain + waiting})))
    workers = [uuid.uuid4(), uuid.uuid4()]
    for number, worker in enumerate(workers):
        conn.execute("select pgflow.register_worker(%s, 'fn', %s, %s)", (worker, slug, f"s{number}"))
    start_runs(conn, slug, 3 * BATCH, 1)

    meters = [Meter(conn, "step", worker) for worker in workers]
    cost: Cost = {}
    for turn in range(3):
        for number, meter in enumerate(meters):
            with conn.transaction():
                polled = meter.call("poll", meter.poll)
                meter.call("complete", partial(meter.settle, "complete_tasks", polled, "completed"))
            if turn == 2:
                cost |= {f"{call} s{number}": reads for call, reads in meter.cost.items()}
    return cost


@pytest.mark.parametrize("past", [nothing_known, emptied])
def test_a_call_reads_no_more_where_a_flow_has_hundreds_of_steps(
    databases: Databases, past: Callable[[Connection], None]
) -> None:
    with databases.database() as conninfo, open_session(conninfo) as conn:
        past(conn)
        little, much = work_in(conn, 4), work_in(conn, 200)
        assert {call: reads for call, reads in much.items() if reads > 2 * little[call] + 200} == {}


@pytest.mark.parametrize("view", ["queue_coverage", "coverage_gaps()", "stuck_work", "check_integrity()"])
def test_a_look_at_many_queues_and_workers_looks_at_each_a_few_times(databases: Databases, view: str) -> None:
    steps = workers = 60
    scans = """
        select sum(pg_stat_get_xact_numscans(class.oid))
        from pg_class as class
        where class.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace)
    """
    with databases.database() as conninfo, open_session(conninfo) as conn:
        shape = {"steps": [{"slug": f"s{n}"} for n in range(steps)]}
        conn.execute("select pgflow.ensure_flow_compiled('many', %s, false, 'step')", (Jsonb(shape),))
        conn.execute(
            "select count(pgflow.register_worker(gen_random_uuid(), 'fn', 'many', 's0')) from generate_series(1, %s)",
            (workers,),
        )
        start_runs(conn, "many", 1, 1)
        with conn.transaction():
            before = conn.execute(scans).fetchone()[0]  # type: ignore[index]
            conn.execute(f"select count(*) from pgflow.{view}")
            after = conn.execute(scans).fetchone()[0]  # type: ignore[index]
    assert after - before < 20 * (steps + workers)
