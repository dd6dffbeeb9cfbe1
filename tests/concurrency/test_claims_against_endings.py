"""A claim meets another session that finishes, fails, requeues, skips or ends the same work: each order of the two."""

from __future__ import annotations

from typing import Any

import pytest

RETRIES = {"maxAttempts": 3, "baseDelay": 0}


class Scene:
    """A map of three tasks beside a task on another queue. Task 0 was started by another worker; task 1 is at stake."""

    def __init__(self, make_flow: Any, work: Any, exhausted: str = "fail") -> None:
        self.work = work
        self.flow = make_flow(
            {"slug": "a", "stepType": "map", "whenExhausted": exhausted},
            {"slug": "b"},
            {"slug": "c", "dependencies": ["a"]},
            **RETRIES,
        )
        self.run = self.flow.run(["x", "y", "z"])
        self.worker = self.flow.worker("a")
        self.other = self.flow.worker("a")
        self.ids = [self.flow.message(self.run, "a", index) for index in range(3)]
        work.claim(self.flow.conn, self.flow, "a", self.ids[:1], self.other)

    def start_task_1(self) -> None:
        """Start task 1 as well, as the other worker, and make its message visible again."""
        self.work.claim(self.flow.conn, self.flow, "a", self.ids[1:2], self.other)
        self.flow.conn.execute(f"update pgmq.q_{self.flow.queue('a')} set vt = now() where msg_id = %s", self.ids[1:2])

    def outcomes(self, connection: Any, worker: Any = None) -> list[str]:
        """Claim tasks 1 and 2 by their ids and return the outcomes."""
        return [row[1] for row in self.work.claim(connection, self.flow, "a", self.ids[1:], worker or self.worker)]

    def exhaust(self, connection: Any) -> Any:
        """Let task 0 fail for good."""
        connection.execute("update pgflow.flows set opt_max_attempts = 1 where flow_slug = %s", (self.flow.slug,))
        return self.work.fail(connection, (self.run, "a", 0, 1))


ENDINGS = {
    "complete": lambda scene, conn: scene.work.complete(conn, (scene.run, "a", 1, 1, "Y")),
    "fail": lambda scene, conn: scene.work.fail(conn, (scene.run, "a", 1, 1)),
    "requeue": lambda scene, conn: scene.work.requeue(conn),
}


@pytest.mark.parametrize(
    ("ending", "left"),
    [
        ("complete", ("completed 1", ["archived", "deferred"])),
        ("fail", ("queued 1", ["claimed", "deferred"])),
        ("requeue", ("queued 1", ["claimed", "deferred"])),
    ],
)
def test_a_claim_passes_a_task_that_is_being_finished(
    sessions: Any, make_flow: Any, work: Any, ending: str, left: tuple[str, list[str]]
) -> None:
    scene = Scene(make_flow, work)
    scene.start_task_1()
    scene.flow.conn.execute("update pgflow.step_tasks set lease_extended_until = 'infinity' where task_index = 0")
    scene.flow.age(scene.run)
    finishing, claiming = sessions.connect(autocommit=False), sessions.connect()

    ENDINGS[ending](scene, finishing)
    # Uncommitted: nothing waits; the other id of the batch is served.
    assert scene.outcomes(claiming) == ["deferred", "claimed"]
    finishing.commit()
    assert (scene.flow.status(scene.run, "a", 1), scene.outcomes(claiming)) == left
    assert scene.flow.faults() == []


@pytest.mark.parametrize("ending", ["complete", "fail", "requeue"])
def test_a_claim_goes_on_when_the_finishing_session_gives_up(
    sessions: Any, make_flow: Any, work: Any, ending: str
) -> None:
    scene = Scene(make_flow, work)
    scene.start_task_1()
    finishing, claiming = sessions.connect(autocommit=False), sessions.connect()

    ENDINGS[ending](scene, finishing)
    finishing.rollback()
    assert scene.outcomes(claiming) == ["deferred", "claimed"]
    assert scene.flow.status(scene.run, "a", 1) == "started 1"
    assert scene.flow.faults() == []


@pytest.mark.parametrize("ending", ["complete", "fail"])
def test_finishing_waits_for_a_claim_that_looks_at_the_task(
    sessions: Any, make_flow: Any, work: Any, ending: str
) -> None:
    scene = Scene(make_flow, work)
    scene.start_task_1()
    claiming, finishing = sessions.connect(autocommit=False), sessions.connect()

    assert scene.outcomes(claiming) == ["deferred", "claimed"]
    finished = sessions.start(lambda: ENDINGS[ending](scene, finishing))
    sessions.wait_until_blocked(finishing, claiming)
    claiming.commit()
    assert finished.result() == [{"complete": "completed", "fail": "retrying"}[ending]]
    assert scene.flow.status(scene.run, "a", 2) == "started 1"
    assert scene.flow.faults() == []


def test_requeue_passes_a_task_that_a_claim_looks_at(sessions: Any, make_flow: Any, work: Any) -> None:
    scene = Scene(make_flow, work)
    scene.start_task_1()
    scene.flow.age(scene.run)
    claiming, sweeping = sessions.connect(autocommit=False), sessions.connect()

    assert scene.outcomes(claiming) == ["deferred", "claimed"]
    assert work.requeue(sweeping) == 1  # task 0
    claiming.commit()
    assert work.requeue(sweeping) == 1  # task 1
    assert [scene.flow.status(scene.run, "a", index) for index in range(3)] == ["queued 1", "queued 1", "started 1"]
    assert scene.flow.faults() == []


@pytest.mark.parametrize("exhausted", ["skip", "skip-cascade", "fail"])
@pytest.mark.parametrize("is_started", [False, True])
def test_a_claim_passes_a_step_that_is_being_ended(
    sessions: Any, make_flow: Any, work: Any, exhausted: str, is_started: bool
) -> None:
    scene = Scene(make_flow, work, exhausted)
    if is_started:
        scene.start_task_1()
    ending, claiming = sessions.connect(autocommit=False), sessions.connect()

    scene.exhaust(ending)
    # Its end is not committed: the tasks are passed over without a wait, and nothing is handed out.
    assert scene.outcomes(claiming) == ["deferred", "deferred"]
    assert {row[1] for row in work.poll(claiming, scene.worker)} <= {"deferred"}
    ending.commit()

    assert scene.outcomes(claiming) == ["archived", "archived"]
    assert scene.flow.count("a") == 0
    assert scene.flow.count("a", archive=True) == 3
    terminal = "cancelled" if exhausted == "fail" else "skipped"
    assert scene.flow.status(scene.run, "a", 1) == f"{terminal} {int(is_started)}"
    assert scene.flow.faults() == []


@pytest.mark.parametrize("exhausted", ["skip", "skip-cascade", "fail"])
def test_ending_a_step_waits_for_the_claim_and_takes_its_task(
    sessions: Any, make_flow: Any, work: Any, exhausted: str
) -> None:
    scene = Scene(make_flow, work, exhausted)
    claiming, ending = sessions.connect(autocommit=False), sessions.connect()
    scene.flow.conn.execute("update pgflow.flows set opt_max_attempts = 1 where flow_slug = %s", (scene.flow.slug,))

    assert scene.outcomes(claiming) == ["claimed", "claimed"]
    failed = sessions.start(lambda: work.fail(ending, (scene.run, "a", 0, 1)))
    sessions.wait_until_blocked(ending, claiming)
    claiming.commit()
    assert failed.result() == ["failed" if exhausted == "fail" else "skipped"]

    terminal = "cancelled" if exhausted == "fail" else "skipped"
    assert [scene.flow.status(scene.run, "a", index) for index in range(3)] == [
        "failed 1",
        f"{terminal} 1",
        f"{terminal} 1",
    ]
    assert scene.flow.count("a") == 0
    assert work.complete(claiming, (scene.run, "a", 1, 1, "late"), (scene.run, "a", 2, 1, "late")) == ["ended", "ended"]
    assert scene.flow.run_status(scene.run) == ("failed" if exhausted == "fail" else "started")
    assert scene.flow.faults() == []


@pytest.mark.parametrize("exhausted", ["skip", "fail"])
def test_ending_a_step_goes_on_when_the_claim_gives_up(
    sessions: Any, make_flow: Any, work: Any, exhausted: str
) -> None:
    scene = Scene(make_flow, work, exhausted)
    claiming, ending = sessions.connect(autocommit=False), sessions.connect()
    scene.flow.conn.execute("update pgflow.flows set opt_max_attempts = 1 where flow_slug = %s", (scene.flow.slug,))

    assert scene.outcomes(claiming) == ["claimed", "claimed"]
    failed = sessions.start(lambda: work.fail(ending, (scene.run, "a", 0, 1)))
    sessions.wait_until_blocked(ending, claiming)
    claiming.rollback()
    assert failed.result() == ["failed" if exhausted == "fail" else "skipped"]
    assert scene.flow.count("a") == 0
    assert scene.flow.faults() == []


def test_a_run_that_fails_takes_work_on_other_queues_from_a_claim(sessions: Any, make_flow: Any, work: Any) -> None:
    scene = Scene(make_flow, work, "fail")
    worker = scene.flow.worker("b")
    ending, claiming = sessions.connect(autocommit=False), sessions.connect()

    scene.exhaust(ending)
    assert work.poll(claiming, worker) == []
    ending.commit()
    assert work.poll(claiming, worker) == []
    assert scene.flow.status(scene.run, "b") == "cancelled 0"
    assert (scene.flow.count("b"), scene.flow.count("b", archive=True)) == (0, 1)


def test_claims_and_endings_of_many_runs_never_deadlock(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow(
        {"slug": "a", "stepType": "map", "whenExhausted": "skip-cascade"},
        {"slug": "b", "stepType": "map"},
        {"slug": "c", "dependencies": ["a", "b"]},
        maxAttempts=1,
    )
    runs = [flow.run(list(range(12))) for _ in range(12)]

    def labour(connection: Any, step: str, number: int) -> None:
        worker = flow.worker(step) if number < 0 else workers[number]
        for _ in range(400):
            outcomes = [row for row in work.poll(connection, worker, 5) if row[1] == "claimed"]
            if not outcomes and all_ended(connection):
                return
            done = [(run, step, index, attempt, index) for _, _, step, index, attempt, run in outcomes]
            # Of each run, one task fails: in b that fails the run, in a it skips two steps.
            bad = [row[:4] for row in done if (row[2] == 7 and row[0] in failing and row[1] in "ab")]
            work.complete(connection, *[row for row in done if row[:4] not in bad])
            work.fail(connection, *bad)

    def all_ended(connection: Any) -> bool:
        return connection.execute(
            "select not exists (select from pgflow.runs where flow_slug = %s and status = 'started')", (flow.slug,)
        ).fetchone()[0]

    failing = set(runs[::2])
    order = ["a", "a", "a", "b", "b", "b", "c", "c"]
    workers = [flow.worker(step) for step in order]
    sessions.together(
        [
            lambda connection=connection, step=step, number=number: labour(connection, step, number)
            for number, (step, connection) in enumerate(zip(order, sessions.connections(8), strict=True))
        ]
    )

    assert {flow.run_status(run) for run in runs if run not in failing} == {"completed"}
    assert {flow.run_status(run) for run in runs} <= {"completed", "failed"}
    assert [flow.count(step) for step in "abc"] == [0, 0, 0]
    assert flow.faults() == []
