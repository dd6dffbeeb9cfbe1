"""Workers are killed at random moments for a minute: of thousands of tasks none is lost and none counted twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgflow_stepq import worker

Connection = psycopg.Connection[tuple[Any, ...]]
TaskKey = tuple[str, str, int]

# How long workers are killed. A lost task comes back half a minute after its timeout, so a task can be lost twice.
KILLING_SECONDS = 60
KILL_EVERY = (0.3, 1.0)
SWEEP_EVERY = 1.0
# Far more than it takes: this only keeps a test that hangs from hanging for ever.
PATIENCE = 400

SLUG = "killedWorkers"
ELEMENTS = 6
RUNS_AT_LEAST = 300
WAITING_TASKS = 150

MAX_ATTEMPTS = {"each": 6, "check": 2, "total": 6}
WORKERS = {"each": 4, "check": 4, "total": 2}
ALWAYS = 1000

# The timeout of a second makes the recovery boundary 31 s.
SHAPE = {
    "steps": [
        {"slug": "each", "stepType": "map", "dependencies": [], "options": {"maxAttempts": MAX_ATTEMPTS["each"]}},
        {
            "slug": "check",
            "stepType": "map",
            "dependencies": [],
            "whenExhausted": "skip",
            "options": {"maxAttempts": MAX_ATTEMPTS["check"]},
        },
        {"slug": "total", "dependencies": ["each", "check"], "options": {"maxAttempts": MAX_ATTEMPTS["total"]}},
    ],
    "options": {"timeout": 1, "baseDelay": 0},
}

# An execution notes that it begins and how it ends. A note is one write to a file that all append to, so that it is
# whole and stays, whatever happens to the process afterwards.
HANDLERS = """
import json
import os
import time
import uuid

notes = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(context, what, output=None):
    key = [str(context.run_id), context.step_slug, context.task_index, context.attempt]
    os.write(notes, json.dumps([key, what, output]).encode() + b"\\n")


def execute(context, seconds, raises, **output):
    note(context, "began")
    time.sleep(seconds)
    if context.attempt <= raises:
        note(context, "raised")
        raise ValueError(f"attempt {context.attempt} raises")
    output = {**output, "execution": uuid.uuid4().hex}
    note(context, "returned", output)
    return output


def each(input, context):
    return execute(context, 0.25, input["each"], n=input["n"])


def check(input, context):
    return execute(context, 0.25, input["check"], n=input["n"])


def total(input, context):
    return execute(context, 0.5, 0, **input)
"""

STALLED = "select run_id::text, step_slug, task_index, attempts_count from pgflow.stalled_tasks"


class Pool:
    """Worker processes, so many for each step; whoever is killed gets a successor."""

    def __init__(self, directory: Path, conninfo: str) -> None:
        self.directory = directory
        self.conninfo = conninfo
        self._count = 0
        self._alive: dict[subprocess.Popen[bytes], tuple[str, Path]] = {}
        self._frozen: dict[subprocess.Popen[bytes], tuple[str, Path]] = {}
        (directory / "tasks.py").write_text(HANDLERS)
        (directory / "flow.json").write_text(json.dumps({"slug": SLUG, "shape": SHAPE}))

    def start(self, step: str) -> None:
        self._count += 1
        path = self.directory / f"worker-{self._count}.log"
        quick = ("--poll-seconds", "1", "--poll-interval-ms", "50", "--heartbeat-seconds", "1")
        with path.open("wb") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pgflow_stepq.worker", "--shape", "flow.json", "--queue-mode", "step"),
                    *("--step", step, "--handler", f"tasks:{step}", "--max-concurrent", "5", *quick),
                    *("--dsn", self.conninfo),
                ],
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._alive[process] = (step, path)

    def kill_one(self, dice: random.Random) -> None:
        """Kill a worker, whatever it is doing, and start another one of its step."""
        process = dice.choice(list(self._alive))
        step, _ = self._alive.pop(process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        self.start(step)

    def freeze(self, step: str) -> None:
        """Stop the oldest worker of a step in the midst of its work; another one takes its place."""
        process = next(process for process, (of, _) in self._alive.items() if of == step)
        process.send_signal(signal.SIGSTOP)
        self._frozen[process] = self._alive.pop(process)
        self.start(step)

    def thaw(self) -> None:
        """Let the frozen ones go on: they believe that their tasks are still theirs."""
        for process in self._frozen:
            process.send_signal(signal.SIGCONT)
        self._alive.update(self._frozen)
        self._frozen.clear()

    def check(self) -> None:
        """Nobody has ended by himself."""
        for process, (step, path) in self._alive.items():
            assert process.poll() is None, f"a worker of {step} ended with {process.returncode}:\n{path.read_text()}"

    def said(self, text: str) -> int:
        """Return how often the workers, dead or alive, logged something."""
        return sum(path.read_text().count(text) for path in self.directory.glob("worker-*.log"))

    def stop(self) -> list[int]:
        """Ask all to stop, and return how they ended."""
        processes = list(self._alive)
        for process in processes:
            process.terminate()
        codes = [process.wait(PATIENCE) for process in processes]
        self._alive.clear()
        return codes

    def clear(self) -> None:
        for process in (*self._alive, *self._frozen):
            process.kill()
            process.wait()


@pytest.fixture
def pool(tmp_path: Path, database: str) -> Iterator[Pool]:
    pool = Pool(tmp_path, database)
    try:
        yield pool
    finally:
        pool.clear()


@dataclass
class Sweeper:
    """Recovers lost tasks once a period, in a thread, and sees that none is left lying.

    A sweep takes all that is due, but for what another session has locked at that very moment.
    """

    conninfo: str
    due: set[tuple[Any, ...]] = field(default_factory=set)
    passed_over: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            number = 0
            while not self.ended.wait(SWEEP_EVERY):
                self.sweep(conn)
                number += 1
                if number % 5 == 0:
                    # One snapshot, in the midst of it all.
                    assert faults(conn) == []

    def sweep(self, conn: Connection) -> None:
        due = set(conn.execute(STALLED).fetchall())
        self.passed_over.update(due & self.due)
        assert all(times == 1 for times in self.passed_over.values()), self.passed_over
        self.due = due
        conn.execute("select pgflow.requeue_stalled_tasks()")


def faults(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute("select * from pgflow.check_integrity(%s)", (SLUG,)).fetchall()


def number_of(conn: Connection, query: str) -> int:
    row = conn.execute(query, {"slug": SLUG}).fetchone()
    assert row is not None
    return int(row[0])


def run_input(number: int) -> list[dict[str, int]]:
    """Return the elements of a run; `each` and `check` say how many first attempts of theirs raise."""
    dice = random.Random(number)  # noqa: S311
    elements = [
        {
            "n": number * ELEMENTS + position,
            "each": dice.choices((0, 1, 2), (85, 10, 5))[0],
            "check": dice.choices((0, 1, ALWAYS), (88, 10, 2))[0],
        }
        for position in range(ELEMENTS)
    ]
    # Now and then a run fails while other tasks of it are in hand, or lost.
    if number % 20 == 0:
        elements[number // 20 % ELEMENTS]["each"] = ALWAYS
    return elements


class Runs:
    """The runs that were started, with their inputs."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.inputs: dict[str, list[dict[str, int]]] = {}

    def start(self, count: int) -> None:
        inputs = [run_input(len(self.inputs) + number) for number in range(count)]
        rows = self.conn.execute(
            "select run_id::text from pgflow.start_flows(%s, %s)", (SLUG, [Jsonb(value) for value in inputs])
        ).fetchall()
        self.inputs.update({run: value for (run,), value in zip(rows, inputs, strict=True)})

    def fill_up(self) -> None:
        """Start as many runs as keep all workers busy."""
        waiting = number_of(
            self.conn, "select count(*) from pgflow.step_tasks where flow_slug = %(slug)s and status = 'queued'"
        )
        if waiting < WAITING_TASKS:
            self.start(-(-(WAITING_TASKS - waiting) // (2 * ELEMENTS)))

    def going(self) -> int:
        return number_of(
            self.conn, "select count(*) from pgflow.runs where flow_slug = %(slug)s and status = 'started'"
        )


@dataclass
class Notes:
    """What the handlers noted: of which attempts, how they ended, and what they returned."""

    began: set[tuple[TaskKey, int]] = field(default_factory=set)
    raised: set[tuple[TaskKey, int]] = field(default_factory=set)
    returned: dict[tuple[TaskKey, int], Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Notes:
        notes = cls()
        for line in path.read_text().splitlines():
            (run, step, index, attempt), what, output = json.loads(line)
            key = ((run, step, index), attempt)
            if what == "began":
                assert key not in notes.began, f"attempt {key} was handed out twice"
                notes.began.add(key)
            elif what == "raised":
                notes.raised.add(key)
            else:
                notes.returned[key] = output
        return notes

    def cut_short(self) -> list[tuple[TaskKey, int]]:
        """Attempts whose worker died while the handler ran."""
        return sorted(self.began - self.raised - set(self.returned))


@dataclass
class Task:
    """A task as it ended."""

    key: TaskKey
    status: str
    attempts: int
    requeued: int
    is_stalled: bool
    error: str | None
    output: Any


def tasks_of(conn: Connection) -> dict[TaskKey, Task]:
    rows = conn.execute(
        """
        select
          run_id::text, step_slug, task_index, status, attempts_count, requeued_count,
          permanently_stalled_at is not null, error_message, output
        from pgflow.step_tasks
        where flow_slug = %s
        """,
        (SLUG,),
    )
    return {row[:3]: Task(row[:3], *row[3:]) for row in rows}


def raises(runs: Runs, key: TaskKey) -> int:
    run, step, index = key
    return 0 if step == "total" else runs.inputs[run][index][step]


def check_tasks(tasks: dict[TaskKey, Task], notes: Notes, runs: Runs) -> None:
    executions: dict[TaskKey, list[int]] = defaultdict(list)
    for key, attempt in notes.began:
        executions[key].append(attempt)
    assert set(executions) <= set(tasks)

    for key, task in tasks.items():
        attempts = executions[key]
        # Each attempt that counted ran at most once; those that did not run were lost between claim and handler.
        assert set(attempts) <= set(range(1, task.attempts + 1)), (task, attempts)
        assert task.attempts <= MAX_ATTEMPTS[key[1]], task
        last = (key, task.attempts)
        if task.status == "completed":
            # The accepted result is that of the last attempt, to the letter.
            assert last in notes.returned, task
            assert task.output == notes.returned[last], task
        elif task.status == "failed" and task.is_stalled:
            assert task.requeued == 3 or task.attempts == MAX_ATTEMPTS[key[1]], task
            assert "was lost with its worker" in (task.error or ""), task
        elif task.status == "failed":
            # By its own fault, as often as it may.
            assert task.attempts == MAX_ATTEMPTS[key[1]], task
            assert raises(runs, key) >= task.attempts, task
            assert last in notes.raised, task
        else:
            assert task.status in ("skipped", "cancelled"), task
            assert not task.is_stalled, task


def check_runs(conn: Connection, tasks: dict[TaskKey, Task], runs: Runs) -> None:
    by_step: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for key in sorted(tasks):
        by_step[key[:2]].append(tasks[key])
    states = {
        row[:2]: row[2:]
        for row in conn.execute(
            """
            select run_id::text, step_slug, status, remaining_tasks, output
            from pgflow.step_states
            where flow_slug = %s
            """,
            (SLUG,),
        )
    }
    statuses: dict[str, str] = dict(
        conn.execute("select run_id::text, status from pgflow.runs where flow_slug = %s", (SLUG,)).fetchall()
    )
    assert set(statuses) == set(runs.inputs)

    for run, status in statuses.items():
        found = {step: {task.status for task in by_step[run, step]} for step in MAX_ATTEMPTS}
        broken = {step for step in MAX_ATTEMPTS if "failed" in found[step]}
        # A step is skipped, and a run fails, for a task that used up its attempts, and for nothing else.
        assert (states[run, "check"][0] == "skipped") is ("check" in broken), run
        assert not any("skipped" in found[step] for step in MAX_ATTEMPTS if step not in broken & {"check"}), run
        if broken - {"check"}:
            (culprit,) = broken - {"check"}
            assert (status, states[run, culprit][0]) == ("failed", "failed"), run
            continue

        assert status == "completed", run
        assert not any("cancelled" in found[step] for step in MAX_ATTEMPTS), run
        outputs = {step: [task.output for task in by_step[run, step]] for step in MAX_ATTEMPTS}
        assert states[run, "each"] == ("completed", 0, outputs["each"])
        if "check" not in broken:
            assert states[run, "check"] == ("completed", 0, outputs["check"])
        # The fan-in ran once, on what was accepted.
        (total,) = outputs["total"]
        assert states[run, "total"] == ("completed", 0, total)
        assert total["each"] == outputs["each"]
        assert total.get("check") == (None if "check" in broken else outputs["check"])


def check_queues(conn: Connection) -> None:
    """The queues are empty, and their archives hold the message of each task once."""
    for step in MAX_ATTEMPTS:
        queue = f"{SLUG}__{step}".lower()
        assert number_of(conn, f"select count(*) from pgmq.q_{queue}") == 0
        archived = conn.execute(f"select msg_id from pgmq.a_{queue} order by msg_id").fetchall()
        sent = conn.execute(
            "select message_id from pgflow.step_tasks where queue_name = %s order by message_id", (queue,)
        ).fetchall()
        assert archived == sent, step


def check_losses(pool: Pool, tasks: dict[TaskKey, Task], notes: Notes) -> None:
    """Kills hit handlers that ran, each step lost tasks, and late results came: else the rest would prove little."""
    assert len(tasks) >= RUNS_AT_LEAST * 2 * ELEMENTS
    assert len(notes.cut_short()) >= 20
    lost = Counter(dict.fromkeys(MAX_ATTEMPTS, 0))
    for (_, step, _), task in tasks.items():
        lost[step] += task.requeued + task.is_stalled
    assert all(lost.values()), lost
    assert pool.said("status=superseded")


def kill_for_a_minute(pool: Pool, runs: Runs, sweeps: Future[None]) -> None:
    dice = random.Random(4)  # noqa: S311
    begin = time.monotonic()
    next_kill = begin
    to_freeze = ["each", "check"]
    while (now := time.monotonic()) < begin + KILLING_SECONDS:
        runs.fill_up()
        pool.check()
        if now >= next_kill:
            pool.kill_one(dice)
            next_kill = now + dice.uniform(*KILL_EVERY)
        # Early enough for their tasks to be taken from them, and done by others, before they wake up.
        if to_freeze and now >= begin + KILLING_SECONDS / 8:
            pool.freeze(to_freeze.pop())
        if sweeps.done():
            sweeps.result()
        time.sleep(0.05)
    pool.thaw()


def wait_for_the_end(pool: Pool, runs: Runs, sweeps: Future[None]) -> None:
    end = time.monotonic() + PATIENCE
    while runs.going():
        assert time.monotonic() < end, f"{runs.going()} runs never ended"
        time.sleep(0.2)
        pool.check()
        if sweeps.done():
            sweeps.result()


def test_workers_that_are_killed_for_a_minute_lose_nothing_and_count_nothing_twice(
    database: str, conn: Connection, pool: Pool, tmp_path: Path
) -> None:
    conn.execute("set client_min_messages to warning")
    conn.execute("select pgflow.ensure_flow_compiled(%s, %s, queue_mode => 'step')", (SLUG, Jsonb(SHAPE)))
    runs = Runs(conn)
    sweeper = Sweeper(database)
    with ThreadPoolExecutor(1) as threads:
        sweeps = threads.submit(sweeper.run)
        try:
            for step, count in WORKERS.items():
                for _ in range(count):
                    pool.start(step)
            kill_for_a_minute(pool, runs, sweeps)
            # On a slow machine there was time for fewer.
            runs.start(max(0, RUNS_AT_LEAST - len(runs.inputs)))
            wait_for_the_end(pool, runs, sweeps)
        finally:
            sweeper.ended.set()
        sweeps.result()

    notes = Notes.read(tmp_path / "notes")
    tasks = tasks_of(conn)
    check_losses(pool, tasks, notes)
    assert faults(conn) == []
    assert conn.execute(STALLED).fetchall() == []
    check_tasks(tasks, notes, runs)
    check_runs(conn, tasks, runs)
    check_queues(conn)
    assert set(pool.stop()) == {0}
