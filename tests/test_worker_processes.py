"""Real worker processes on a real server: what `pgflow-stepq worker` promises, end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgflow_stepq import worker
from pgflow_stepq.worker import CompileMismatchError, Worker

Connection = psycopg.Connection[tuple[Any, ...]]

# The handlers of these tests. Files in the current directory let test and handlers wait for each other.
HANDLERS = """
import asyncio
import os
import sys
import time
from pathlib import Path

sys.set_int_max_str_digits(0)


def echo(input, context):
    return {"input": input, "flow_input": context.flow_input, "attempt": context.attempt, "pid": os.getpid()}


def split(input, context):
    return context.flow_input


def double(input):
    return input * 2


def hold(input, context):
    Path(f"held-{context.run_id}").touch()
    while not Path("release").exists():
        time.sleep(0.01)
    return "held"


def meet_processes(input):
    Path(f"met-{os.getpid()}").touch()
    while len(list(Path().glob("met-*"))) < 2:
        time.sleep(0.01)
    return os.getpid()


def meet_threads(input, context):
    Path(f"met-{context.task_index}").touch()
    while len(list(Path().glob("met-*"))) < 4:
        time.sleep(0.01)
    return context.task_index


async def meet_coroutines(input, context):
    Path(f"met-{context.task_index}").touch()
    while len(list(Path().glob("met-*"))) < 4:
        await asyncio.sleep(0.01)
    return context.task_index


def wrapped(input):
    return meet_nobody(input)


async def meet_nobody(input):
    await asyncio.sleep(0)
    return "awaited"


def fail(input, context):
    raise ValueError(f"no luck with {context.flow_input}")


def leave(input):
    sys.exit(3)


def odd(input, context):
    wanted = context.flow_input
    return {
        "fine": "fine",
        "set": {1},
        "nul": "a\\0b",
        "nan": float("nan"),
        "surrogate": "\\ud83d",
        "enormous": 10**140000 if wanted == "enormous" else None,
    }[wanted]


def about(input, context):
    boundary = context.extend(3600)
    return [
        str(context.run_id), context.flow_slug, context.step_slug, context.task_index, context.attempt,
        context.flow_input, str(context.worker_id), boundary.isoformat(),
    ]
"""


def step(slug: str, *dependencies: str, kind: str = "single", **options: Any) -> dict[str, Any]:
    return {"slug": slug, "stepType": kind, "dependencies": list(dependencies), "options": options}


def shape(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps), "options": {}}


def wait_until(condition: Callable[[], Any], what: str, *, seconds: float = 60) -> Any:
    """Return the first true value of `condition`; the time is a net for a hang, no promise."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"waited in vain until {what}")


@dataclass
class Process:
    """A worker process and its log."""

    popen: subprocess.Popen[bytes]
    path: Path

    def log(self) -> str:
        return self.path.read_text()

    def says(self, text: str) -> Process:
        wait_until(lambda: text in self.log() or self.popen.poll() is not None, f"the worker says {text}")
        assert text in self.log(), self.log()
        return self

    def ends(self, *, seconds: float = 60) -> int:
        return self.popen.wait(timeout=seconds)

    def terminate(self) -> int:
        self.popen.send_signal(signal.SIGTERM)
        return self.ends()


class Workers:
    """Starts workers in a directory of their own, and sees to it that none stays."""

    def __init__(self, directory: Path, conninfo: str) -> None:
        self.directory = directory
        self.conninfo = conninfo
        self.processes: list[Process] = []
        (directory / "tasks.py").write_text(HANDLERS)

    def start(self, slug: str, flow_shape: dict[str, Any], handler: str, *options: str) -> Process:
        flow_file = self.directory / f"{slug}.json"
        flow_file.write_text(json.dumps({"slug": slug, "shape": flow_shape}))
        path = self.directory / f"worker-{len(self.processes)}.log"
        quick = ("--poll-seconds", "1", "--poll-interval-ms", "20", "--heartbeat-seconds", "0.2")
        with path.open("wb") as log:
            popen = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pgflow_stepq.worker", "--shape", flow_file.name),
                    *("--handler", f"tasks:{handler}", "--dsn", self.conninfo, *quick, *options),
                ],
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        process = Process(popen, path)
        self.processes.append(process)
        return process

    def step(self, slug: str, flow_shape: dict[str, Any], name: str, handler: str, *options: str) -> Process:
        return self.start(slug, flow_shape, handler, "--queue-mode", "step", "--step", name, *options)

    def release(self) -> None:
        """Let the handlers `hold` return."""
        (self.directory / "release").touch()

    def kill(self) -> None:
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()


@pytest.fixture
def workers(tmp_path: Path, database: str) -> Iterator[Workers]:
    workers = Workers(tmp_path, database)
    try:
        yield workers
    finally:
        workers.kill()
        for process in workers.processes:  # pytest shows it with a failure
            print(process.log())


def compile_flow(conn: Connection, slug: str, flow_shape: dict[str, Any], mode: str = "step") -> None:
    conn.execute(
        "select pgflow.ensure_flow_compiled(%s, %s::jsonb, queue_mode => %s)", (slug, json.dumps(flow_shape), mode)
    )


def start_run(conn: Connection, slug: str, value: Any = None) -> Any:
    return value_of(conn, "select run_id from pgflow.start_flow(%s, %s::jsonb)", slug, json.dumps(value))


def value_of(conn: Connection, query: str, *params: Any) -> Any:
    row = conn.execute(query, params).fetchone()
    assert row is not None
    return row[0]


def values_of(conn: Connection, query: str, *params: Any) -> list[Any]:
    return [row[0] for row in conn.execute(query, params)]


def ended(conn: Connection, run_id: Any) -> tuple[str, Any]:
    """Wait for the end of a run and return its status and output."""

    def state() -> Any:
        return conn.execute(
            "select status, output from pgflow.runs where run_id = %s and status <> 'started'", (run_id,)
        ).fetchone()

    status, output = wait_until(state, f"run {run_id} ends")
    return status, output


def started_tasks(conn: Connection, slug: str) -> int:
    count = value_of(conn, "select count(*) from pgflow.step_tasks where flow_slug = %s and status = 'started'", slug)
    assert isinstance(count, int)
    return count


def sessions_of_workers(conn: Connection) -> list[int]:
    """Return the process ids of the sessions that workers hold in this database."""
    query = """
        select pid
          from pg_stat_activity
         where application_name = 'pgflow-stepq worker'
           and datname = current_database()
    """
    return values_of(conn, query)


def test_a_flow_of_two_steps_is_worked_by_a_worker_a_step(conn: Connection, workers: Workers) -> None:
    flow = shape(step("classify"), step("deliver", "classify"))
    first = workers.step("twoSteps", flow, "classify", "echo").says("event=registered queue=twosteps__classify")
    second = workers.step("twoSteps", flow, "deliver", "echo").says("event=registered queue=twosteps__deliver")
    status, output = ended(conn, start_run(conn, "twoSteps", {"n": 1}))
    assert status == "completed"
    assert output["deliver"]["pid"] == second.popen.pid
    assert output["deliver"]["input"]["classify"] == {
        "input": {}, "flow_input": {"n": 1}, "attempt": 1, "pid": first.popen.pid
    }  # fmt: skip
    assert [first.terminate(), second.terminate()] == [0, 0]
    stopped = values_of(conn, "select stopped_at is not null from pgflow.workers where flow_slug = 'twoSteps'")
    assert stopped == [True, True]


def test_one_worker_works_a_whole_flow_in_flow_mode(conn: Connection, workers: Workers) -> None:
    flow = shape(step("first"), step("second", "first"), step("third", "second"))
    process = workers.start("wholeFlow", flow, "echo").says("event=registered queue=wholeflow ")
    status, output = ended(conn, start_run(conn, "wholeFlow"))
    assert (status, output["third"]["pid"]) == ("completed", process.popen.pid)
    assert process.terminate() == 0


def test_two_workers_on_one_queue_share_its_tasks(conn: Connection, workers: Workers) -> None:
    flow = shape(step("each", kind="map"))
    # The handler returns only when two processes have met in it: neither can do all of the work.
    pair = [workers.step("shared", flow, "each", "meet_processes", "--max-concurrent", "1") for _ in range(2)]
    for process in pair:
        process.says("event=registered")
    status, output = ended(conn, start_run(conn, "shared", list(range(30))))
    assert status == "completed"
    assert set(output["each"]) == {process.popen.pid for process in pair}
    attempts = values_of(conn, "select attempts_count from pgflow.step_tasks where flow_slug = 'shared'")
    assert attempts == [1] * 30
    claimed = [process.log().count("event=task_claimed") for process in pair]
    assert sum(claimed) == 30


@pytest.mark.parametrize("handler", ["meet_threads", "meet_coroutines"])
def test_as_many_tasks_as_asked_for_run_at_once(conn: Connection, workers: Workers, handler: str) -> None:
    slug, flow = handler, shape(step("each", kind="map"))
    workers.step(slug, flow, "each", handler, "--max-concurrent", "4").says("event=registered")
    status, output = ended(conn, start_run(conn, slug, list(range(4))))
    assert (status, output) == ("completed", {"each": [0, 1, 2, 3]})


def test_a_worker_never_claims_more_than_it_has_free_slots(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only"))
    process = workers.step("slots", flow, "only", "hold", "--max-concurrent", "2").says("event=registered")
    for _ in range(5):
        start_run(conn, "slots")
    wait_until(lambda: started_tasks(conn, "slots") == 2, "two tasks have started")
    beat = value_of(conn, "select last_heartbeat_at from pgflow.workers where flow_slug = 'slots'")
    wait_until(
        lambda: value_of(conn, "select last_heartbeat_at > %s from pgflow.workers where flow_slug = 'slots'", beat),
        "the worker has lived on",
    )
    assert started_tasks(conn, "slots") == 2
    workers.release()
    wait_until(
        lambda: (
            value_of(conn, "select count(*) from pgflow.runs where flow_slug = 'slots' and status = 'completed'") == 5
        ),
        "all five are done",
    )
    assert process.terminate() == 0


def test_a_task_of_a_killed_worker_comes_back_and_is_done_by_another(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only"))
    lost = workers.step("killed", flow, "only", "hold", "--poll-seconds", "60").says("event=registered")
    run_id = start_run(conn, "killed")
    wait_until((workers.directory / f"held-{run_id}").exists, "the handler runs")
    assert sessions_of_workers(conn)
    lost.popen.kill()
    lost.popen.wait()
    # Long before its poll ends by itself: a poll of a dead worker must claim nothing.
    wait_until(lambda: not sessions_of_workers(conn), "the server has noticed the death", seconds=30)
    assert started_tasks(conn, "killed") == 1

    conn.execute(
        "update pgflow.step_tasks set started_at = started_at - interval '1 hour' where run_id = %s", (run_id,)
    )
    assert value_of(conn, "select pgflow.requeue_stalled_tasks()") == 1
    workers.step("killed", flow, "only", "echo")
    status, output = ended(conn, run_id)
    assert (status, output["only"]["attempt"]) == ("completed", 2)


def test_sigterm_lets_running_handlers_finish_and_claims_no_more(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only"))
    process = workers.step("drained", flow, "only", "hold", "--max-concurrent", "2").says("event=registered")
    run_id = start_run(conn, "drained")
    process.says("event=task_claimed")
    process.popen.send_signal(signal.SIGTERM)
    process.says("event=draining")
    later = start_run(conn, "drained")
    workers.release()
    assert process.ends() == 0, process.log()
    assert "reason=SIGTERM" in process.log()
    assert ended(conn, run_id) == ("completed", {"only": "held"})
    assert values_of(conn, "select status from pgflow.step_tasks where run_id = %s", later) == ["queued"]
    assert values_of(conn, "select stopped_at is null from pgflow.workers where flow_slug = 'drained'") == [False]


def test_a_stop_cuts_a_long_poll_short(conn: Connection, workers: Workers) -> None:
    long = ("--poll-seconds", "60", "--drain-seconds", "3600")
    process = workers.step("longPoll", shape(step("only")), "only", "echo", *long).says("event=registered")
    polling = """
        select pid
          from pg_stat_activity
         where pid = any(%s)
           and state = 'active'
           and query like '%%pgflow.poll_tasks(%%'
    """
    wait_until(lambda: values_of(conn, polling, sessions_of_workers(conn)), "the worker polls")
    process.popen.send_signal(signal.SIGTERM)
    assert process.ends(seconds=30) == 0, process.log()


def test_a_worker_that_only_looks_now_and_then_works_too(conn: Connection, workers: Workers) -> None:
    process = workers.step("looks", shape(step("only")), "only", "echo", "--poll-seconds", "0").says("event=registered")
    for _ in range(3):
        assert ended(conn, start_run(conn, "looks"))[0] == "completed"
    assert process.terminate() == 0


def test_a_second_signal_ends_a_draining_worker_at_once(conn: Connection, workers: Workers) -> None:
    process = workers.step("twice", shape(step("only")), "only", "hold").says("event=registered")
    start_run(conn, "twice")
    process.says("event=task_claimed")
    process.popen.send_signal(signal.SIGINT)
    process.says("event=draining")
    # What comes right behind the first is taken for the same wish, so this is said until it is heard.
    while process.popen.poll() is None:
        process.popen.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    assert process.ends() == 128 + signal.SIGTERM
    assert started_tasks(conn, "twice") == 1


def test_a_drain_that_takes_too_long_ends_with_1_and_says_what_is_left(conn: Connection, workers: Workers) -> None:
    process = workers.step("tooLong", shape(step("only")), "only", "hold", "--drain-seconds", "0.1")
    process.says("event=registered")
    start_run(conn, "tooLong")
    process.says("event=task_claimed")
    assert process.terminate() == 1
    assert "1 handlers were still running" in process.log()
    assert started_tasks(conn, "tooLong") == 1
    assert values_of(conn, "select stopped_at is null from pgflow.workers where flow_slug = 'tooLong'") == [False]


def test_a_foreign_message_stops_the_function_and_no_other(conn: Connection, workers: Workers) -> None:
    flow = shape(step("first"), step("second", "first"))
    hit = workers.step("foreign", flow, "first", "echo", "--function-name", "hit").says("event=registered")
    spared = workers.step("foreign", flow, "second", "echo", "--function-name", "spared").says("event=registered")
    foreign = value_of(conn, "select pgmq.send('foreign__first', '{\"secret\": \"message\"}')")

    assert hit.ends() == 4, hit.log()
    assert f"message {foreign}" in hit.log()
    assert "select pgflow.enable_worker_function('hit');" in hit.log()
    assert "secret" not in hit.log()
    assert hit.log().count("sqlstate=PF011") == 1
    assert values_of(conn, "select enabled from pgflow.worker_functions where function_name = 'hit'") == [False]
    assert values_of(conn, "select msg_id from pgmq.q_foreign__first where vt <= clock_timestamp()") == [foreign]
    refused = workers.step("foreign", flow, "first", "echo", "--function-name", "hit")
    assert (refused.ends(), "PF012" in refused.log()) == (3, True), refused.log()

    conn.execute("select pgmq.delete('foreign__first', %s::bigint)", (foreign,))
    conn.execute("select pgflow.enable_worker_function('hit')")
    workers.step("foreign", flow, "first", "echo", "--function-name", "hit")
    status, output = ended(conn, start_run(conn, "foreign"))
    assert (status, output["second"]["pid"]) == ("completed", spared.popen.pid)


def test_the_sql_in_the_advice_about_a_foreign_message_runs(conn: Connection, workers: Workers) -> None:
    process = workers.step("advice", shape(step("only")), "only", "echo", "--function-name", "it's").says(
        "event=registered"
    )
    conn.execute("select pgmq.send('advice__only', '{}')")
    assert process.ends() == 4
    advice = [line.strip() for line in process.log().splitlines() if line.startswith("  select ")]
    assert len(advice) == 3
    for query in advice:
        conn.execute(query.encode())
    assert values_of(conn, "select count(*) from pgmq.q_advice__only") == [0]
    assert values_of(conn, "select enabled from pgflow.worker_functions where function_name = 'it''s'") == [True]


def test_a_flow_that_differs_stops_the_worker_before_it_registers(conn: Connection, workers: Workers) -> None:
    compile_flow(conn, "differs", shape(step("first"), step("second", "first")))
    process = workers.step("differs", shape(step("first"), step("second")), "first", "echo")
    assert process.ends() == 3, process.log()
    assert 'Flow "differs" in the database differs from the shape of this worker:\n  - ' in process.log()
    assert values_of(conn, "select worker_id from pgflow.workers where flow_slug = 'differs'") == []


def test_a_queue_mode_that_differs_is_refused(conn: Connection, workers: Workers) -> None:
    compile_flow(conn, "otherMode", shape(step("only")), "flow")
    process = workers.step("otherMode", shape(step("only")), "only", "echo")
    assert (process.ends(), "PF007" in process.log()) == (3, True), process.log()
    assert values_of(conn, "select worker_id from pgflow.workers where flow_slug = 'otherMode'") == []


@pytest.mark.parametrize(
    "options",
    [
        ("--queue-mode", "step", "--step", "missing"),
        ("--queue-mode", "step", "--step", "Only"),
        ("--queue-mode", "step"),
        ("--queue-mode", "flow", "--step", "only"),
    ],
    ids=["unknown", "wrong case", "none", "in flow mode"],
)
def test_a_wrong_choice_of_step_leaves_nothing_behind(
    conn: Connection, workers: Workers, options: tuple[str, ...]
) -> None:
    process = workers.start("wrongStep", shape(step("only")), "echo", *options)
    assert (process.ends(), "PF014" in process.log()) == (3, True), process.log()
    assert "Traceback" not in process.log()
    assert values_of(conn, "select worker_id from pgflow.workers where flow_slug = 'wrongStep'") == []
    assert values_of(conn, "select flow_slug from pgflow.flows where flow_slug = 'wrongStep'") == []
    assert values_of(conn, "select queue_name from pgmq.list_queues() where queue_name like 'wrongstep%%'") == []


def test_a_bad_shape_is_refused_with_what_the_database_says(conn: Connection, workers: Workers) -> None:
    process = workers.step("badShape", shape(step("only", "nobody")), "only", "echo")
    assert (process.ends(), "PF008" in process.log()) == (3, True), process.log()
    assert values_of(conn, "select flow_slug from pgflow.flows where flow_slug = 'badShape'") == []


def test_a_database_without_the_extension_is_named(workers: Workers, empty_database: str) -> None:
    process = workers.start("nowhere", shape(step("only")), "echo", "--dsn", empty_database)
    assert process.ends() == 1
    assert "create extension pgflow_stepq" in process.log()


def test_a_handler_that_raises_is_tried_again_and_then_fails(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only", maxAttempts=3, baseDelay=0))
    workers.step("raises", flow, "only", "fail").says("event=registered")
    run_id = start_run(conn, "raises", "input")
    assert ended(conn, run_id) == ("failed", None)
    task = conn.execute(
        "select attempts_count, error_message from pgflow.step_tasks where run_id = %s", (run_id,)
    ).fetchone()
    assert task == (3, "ValueError: no luck with input")


def test_a_handler_that_exits_fails_its_task_and_not_the_worker(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only", maxAttempts=1))
    process = workers.step("exits", flow, "only", "leave").says("event=registered")
    run_id = start_run(conn, "exits")
    assert ended(conn, run_id)[0] == "failed"
    assert values_of(conn, "select error_message from pgflow.step_tasks where run_id = %s", run_id) == ["SystemExit: 3"]
    assert process.terminate() == 0


def test_a_sync_handler_may_return_an_awaitable(conn: Connection, workers: Workers) -> None:
    workers.step("wrapper", shape(step("only")), "only", "wrapped").says("event=registered")
    assert ended(conn, start_run(conn, "wrapper")) == ("completed", {"only": "awaited"})


def test_an_output_that_can_not_be_stored_fails_its_own_task_only(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only", maxAttempts=1))
    compile_flow(conn, "odd", flow)
    kinds = ["fine", "set", "fine", "nul", "fine", "nan", "surrogate", "fine", "enormous", "fine"]
    runs = [start_run(conn, "odd", kind) for kind in kinds]
    process = workers.step("odd", flow, "only", "odd")
    for run_id, kind in zip(runs, kinds, strict=True):
        expected = ("completed", {"only": "fine"}) if kind == "fine" else ("failed", None)
        assert ended(conn, run_id) == expected, kind
    says = {"set": "not JSON", "nul": "NUL", "nan": "not JSON", "surrogate": "surrogate", "enormous": "can't store"}
    for run_id, kind in zip(runs, kinds, strict=True):
        if kind != "fine":
            message = value_of(conn, "select error_message from pgflow.step_tasks where run_id = %s", run_id)
            assert says[kind] in message
    assert process.terminate() == 0


def test_a_dependent_map_gets_its_elements(conn: Connection, workers: Workers) -> None:
    flow = shape(step("split"), step("double", "split", kind="map"))
    workers.step("mapped", flow, "split", "split").says("event=registered")
    workers.step("mapped", flow, "double", "double").says("event=registered")
    run_id = start_run(conn, "mapped", [1, "x", 2.5])
    assert ended(conn, run_id) == ("completed", {"double": [2, "xx", 5.0]})


def test_a_handler_knows_its_task_and_can_extend_it(conn: Connection, workers: Workers) -> None:
    workers.step("about", shape(step("only")), "only", "about").says("event=registered")
    run_id = start_run(conn, "about", {"n": 1})
    _, output = ended(conn, run_id)
    worker_id = value_of(conn, "select last_worker_id::text from pgflow.step_tasks where run_id = %s", run_id)
    assert output["only"][:7] == [str(run_id), "about", "only", 0, 1, {"n": 1}, worker_id]
    assert value_of(conn, "select %s::timestamptz > now() + interval '55 minutes'", output["only"][7])


def test_a_worker_whose_function_is_disabled_stops(conn: Connection, workers: Workers) -> None:
    process = workers.step("disabled", shape(step("only")), "only", "hold").says("event=registered")
    run_id = start_run(conn, "disabled")
    process.says("event=task_claimed")
    conn.execute("select pgflow.disable_worker_function('disabled/only', 'the printer is on fire')")
    process.says("event=draining")
    assert "the printer is on fire" in process.log()
    workers.release()
    assert process.ends() == 5
    assert ended(conn, run_id) == ("completed", {"only": "held"})


def test_a_worker_of_an_older_generation_stops(conn: Connection, workers: Workers) -> None:
    process = workers.step("older", shape(step("only")), "only", "echo").says("event=registered")
    conn.execute(
        "select pgflow.ensure_flow_compiled('older', %s::jsonb, true, 'step')",
        (json.dumps(shape(step("only"), step("more"))),),
    )
    assert process.ends() == 5, process.log()


def test_a_lost_connection_loses_no_result(conn: Connection, workers: Workers) -> None:
    process = workers.step("cut", shape(step("only")), "only", "hold", "--max-concurrent", "1").says("event=registered")
    runs = [start_run(conn, "cut") for _ in range(3)]
    process.says("event=task_claimed")
    cut = [value_of(conn, "select pg_terminate_backend(%s)", pid) for pid in sessions_of_workers(conn)]
    assert cut
    assert all(cut)
    workers.release()
    assert [ended(conn, run_id) for run_id in runs] == [("completed", {"only": "held"})] * 3
    attempts = values_of(conn, "select attempts_count from pgflow.step_tasks where flow_slug = 'cut'")
    assert attempts == [1, 1, 1]
    assert process.says("event=reconnected").terminate() == 0


def test_the_log_has_one_line_an_event_and_nothing_of_what_is_worked_on(conn: Connection, workers: Workers) -> None:
    flow = shape(step("only", maxAttempts=1))
    process = workers.step("silent", flow, "only", "fail").says("event=registered")
    ended(conn, start_run(conn, "silent", "swordfish"))
    process.says("event=task_finished status=failed")
    assert process.terminate() == 0
    assert "swordfish" not in process.log()
    lines = process.log().splitlines()
    assert all(line.startswith("ts=") and " event=" in line for line in lines), process.log()
    assert "error=ValueError at=" in process.log()


def test_a_worker_can_be_run_from_python(conn: Connection, database: str) -> None:
    flow = shape(step("only"))
    worker_of_ours = Worker(
        flow_slug="library", shape=flow, handler=lambda value, context: context.flow_input + 1,
        queue_mode="step", step_slug="only", poll_seconds=1, dsn=database,
    )  # fmt: skip
    thread = threading.Thread(target=worker_of_ours.run)
    thread.start()
    try:
        wait_until(
            lambda: values_of(conn, "select 1 from pgflow.workers where flow_slug = 'library'"), "the worker registers"
        )
        assert ended(conn, start_run(conn, "library", 41)) == ("completed", {"only": 42})
    finally:
        worker_of_ours.stop()
        thread.join(timeout=60)
    assert not thread.is_alive()


def test_a_refusal_reaches_the_caller_of_the_library(conn: Connection, database: str) -> None:
    compile_flow(conn, "libraryDiffers", shape(step("first")))
    other = shape(step("first"), step("second"))
    differing = Worker(
        flow_slug="libraryDiffers", shape=other, handler=str, queue_mode="step", step_slug="first", dsn=database
    )
    with pytest.raises(CompileMismatchError) as caught:
        differing.run()
    assert caught.value.differences
