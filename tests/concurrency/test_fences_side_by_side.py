"""A fence meets claims, registrations, fatal batches and other operators: each order of the two, and all at once."""

from __future__ import annotations

import random
import uuid
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

RULES = [{"slug": "a"}, {"slug": "b"}]


def fence(connection: Any, flow: Any, reason: str = "deploy") -> list[tuple[Any, ...]]:
    return connection.execute("select * from pgflow.fence_flow(%s, %s)", (flow.slug, reason)).fetchall()


def unfence(connection: Any, flow: Any) -> list[tuple[Any, ...]]:
    return connection.execute("select * from pgflow.unfence_flow(%s)", (flow.slug,)).fetchall()


def enabled(flow: Any) -> dict[str, bool]:
    rows = flow.conn.execute(
        "select function_name, enabled from pgflow.worker_functions where function_name like %s", (f"{flow.slug}\\_%",)
    )
    return dict(rows.fetchall())


def quarantine(connection: Any, flow: Any) -> None:
    for step in "ab":
        foreign = f"select msg_id from pgmq.q_{flow.queue(step)} where message = %s"
        for (message,) in connection.execute(foreign, (Jsonb({}),)).fetchall():
            connection.execute("select pgflow.quarantine_message(%s, %s)", (flow.queue(step), message))


def test_a_fence_waits_for_a_claim_in_progress_whose_task_is_finished_behind_it(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*RULES)
    worker = flow.worker("a")
    run = flow.run()
    claiming, operator = sessions.connect(autocommit=False), sessions.connect()

    assert [row[1] for row in work.poll(claiming, worker)] == ["claimed"]
    fenced = sessions.start(lambda: fence(operator, flow))
    sessions.wait_until_blocked(operator, claiming)
    claiming.commit()
    assert fenced.result() == [(f"{flow.slug}_a", True)]
    assert work.complete(flow.conn, (run, "a", 0, 1, "done")) == ["completed"]
    assert flow.faults() == []


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_claim_waits_for_a_fence_and_finds_it_or_goes_on(
    sessions: Any, make_flow: Any, work: Any, is_given_up: bool
) -> None:
    flow = make_flow(*RULES)
    worker = flow.worker("a")
    run = flow.run()
    operator, claiming = sessions.connect(autocommit=False), sessions.connect()

    fence(operator, flow)
    claimed = sessions.start(lambda: work.claim(claiming, flow, "a", [flow.message(run, "a")], worker))
    sessions.wait_until_blocked(claiming, operator)
    if is_given_up:
        operator.rollback()
        assert [row[1] for row in claimed.result()] == ["claimed"]
    else:
        operator.commit()
        with pytest.raises(psycopg.Error, match="is fenced: deploy") as refusal:
            claimed.result()
        assert refusal.value.sqlstate == "PF012"
        assert flow.status(run, "a") == "queued 0"
    assert flow.faults() == []


def test_work_in_hand_is_finished_and_runs_are_started_while_a_fence_is_being_put_up(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*RULES)
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    operator, working = sessions.connect(autocommit=False), sessions.connect()
    working.execute("set lock_timeout to '10s'")

    fence(operator, flow)
    assert work.complete(working, (run, "a", 0, 1, 1)) == ["completed"]
    working.execute("select pgflow.start_flow(%s, '{}')", (flow.slug,))
    operator.commit()
    assert flow.faults() == []


@pytest.mark.parametrize("mode", ["step", "flow"])
def test_a_poll_that_waits_finds_the_fence_when_work_comes(sessions: Any, make_flow: Any, work: Any, mode: str) -> None:
    flow = make_flow(*RULES, mode=mode)
    worker = flow.worker("a" if mode == "step" else None)
    polling, operator = sessions.connect(), sessions.connect()

    polled = sessions.start(lambda: work.poll(polling, worker, seconds=60))
    sessions.wait_until_asleep(polling)
    assert len(fence(operator, flow)) == 1
    run = flow.run()
    with pytest.raises(psycopg.Error, match="is fenced: deploy") as refusal:
        polled.result()
    assert refusal.value.sqlstate == "PF012"
    assert flow.status(run, "a") == "queued 0"
    assert flow.faults() == []


def test_a_registration_waits_for_a_fence_and_is_refused(sessions: Any, make_flow: Any) -> None:
    flow = make_flow(*RULES)
    flow.worker("a")
    operator, registering = sessions.connect(autocommit=False), sessions.connect()
    register = "select pgflow.register_worker(gen_random_uuid(), %s, %s, 'a')"

    fence(operator, flow)
    registered = sessions.start(lambda: registering.execute(register, (f"{flow.slug}_new", flow.slug)))
    sessions.wait_until_blocked(registering, operator)
    operator.commit()
    with pytest.raises(psycopg.Error, match="is fenced: deploy") as refusal:
        registered.result()
    assert refusal.value.sqlstate == "PF012"
    assert enabled(flow) == {f"{flow.slug}_a": False}


def test_a_fence_waits_for_a_registration_and_takes_its_function_in(sessions: Any, make_flow: Any) -> None:
    flow = make_flow(*RULES)
    flow.worker("a")
    registering, operator = sessions.connect(autocommit=False), sessions.connect()
    register = "select pgflow.register_worker(gen_random_uuid(), %s, %s, 'a')"

    registering.execute(register, (f"{flow.slug}_new", flow.slug))
    fenced = sessions.start(lambda: fence(operator, flow))
    sessions.wait_until_blocked(operator, registering)
    registering.commit()
    assert fenced.result() == [(f"{flow.slug}_a", True), (f"{flow.slug}_new", True)]


def test_operators_who_fence_and_lift_at_once_do_it_once(sessions: Any, make_flow: Any) -> None:
    flow = make_flow(*RULES)
    for step in ("a", "b"):
        flow.worker(step)
    flow.conn.execute("select pgflow.disable_worker_function(%s, 'broken')", (f"{flow.slug}_b",))
    operators = sessions.connections(6)

    record = [(f"{flow.slug}_a", True), (f"{flow.slug}_b", False)]
    fenced = sessions.together([lambda operator=operator: fence(operator, flow) for operator in operators])
    assert fenced == [record] * len(operators)
    count = "select count(*) from pgflow.fences where flow_slug = %s"
    assert flow.conn.execute(count, (flow.slug,)).fetchone() == (2,)

    lifted = sessions.together([lambda operator=operator: unfence(operator, flow) for operator in operators])
    assert sorted(lifted, key=len) == [[]] * (len(operators) - 1) + [
        [(f"{flow.slug}_a", True, None), (f"{flow.slug}_b", False, "broken")]
    ]
    assert enabled(flow) == {f"{flow.slug}_a": True, f"{flow.slug}_b": False}


def test_fences_of_two_flows_over_one_function_come_and_go_in_any_order(sessions: Any, make_flow: Any) -> None:
    flows = [make_flow(*RULES) for _ in range(3)]
    shared = f"{flows[0].slug}_shared"
    for flow in flows:
        flow.worker("a", shared)

    def operate(connection: Any, seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311
        for _ in range(15):
            change = dice.choice([fence, unfence])
            change(connection, dice.choice(flows))

    sessions.together(
        [lambda connection=connection, seed=seed: operate(connection, seed)
         for seed, connection in enumerate(sessions.connections(6))]
    )  # fmt: skip
    for flow in flows:
        fence(flow.conn, flow)
    assert enabled(flows[0]) == {shared: False}
    for flow in flows:
        unfence(flow.conn, flow)
    assert enabled(flows[0]) == {shared: True}


def test_nothing_is_claimed_behind_a_fence_and_nothing_deadlocks(sessions: Any, make_flow: Any, work: Any) -> None:
    """Workers poll, finish, register and hit foreign messages, while two flows that share a function are fenced."""
    flows = [make_flow({"slug": "a", "stepType": "map"}, {"slug": "b", "dependencies": ["a"]}) for _ in range(2)]
    shared = f"{flows[0].slug}_shared"
    for flow in flows:
        for _ in range(10):
            flow.run(list(range(10)))
    cycles = 12
    done = [False]

    def labour(connection: Any, seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311
        connection.execute("set client_min_messages to error")
        while not done[0]:
            flow, step = dice.choice(flows), dice.choice("ab")
            worker = uuid.uuid4()
            function = shared if dice.random() < 0.5 else f"{flow.slug}_{step}"
            try:
                register = "select pgflow.register_worker(%s, %s, %s, %s)"
                connection.execute(register, (worker, function, flow.slug, step))
                for _ in range(dice.randint(1, 4)):
                    if dice.random() < 0.1:
                        connection.execute("select pgmq.send(%s, '{}')", (flow.queue(step),))
                    rows = work.poll(connection, worker, dice.randint(1, 5))
                    work.complete(
                        connection, *[(row[5], step, row[3], row[4], 1) for row in rows if row[1] == "claimed"]
                    )
            except psycopg.Error as error:
                assert error.sqlstate in ("PF012", "PF013"), error

    def operate(connection: Any, flow: Any) -> None:
        for _ in range(cycles):
            fence(connection, flow)
            connection.execute("select * from pgflow.fence_status(%s)", (flow.slug,))
            connection.execute("select pg_sleep(0.01)")
            unfence(connection, flow)
            # A fatal batch disables for good; the operator takes away what it met.
            quarantine(connection, flow)
            for function in (shared, f"{flow.slug}_a", f"{flow.slug}_b"):
                try:
                    connection.execute("select pgflow.enable_worker_function(%s)", (function,))
                except psycopg.Error as error:
                    assert error.sqlstate in ("PF012", "PF018"), error

    def operate_all(connection: Any, flow: Any) -> None:
        try:
            operate(connection, flow)
        finally:
            operators.pop()
            done[0] = not operators

    operators = list(flows)
    sessions.together(
        [lambda connection=connection, seed=seed: labour(connection, seed)
         for seed, connection in enumerate(sessions.connections(8))]
        + [lambda connection=connection, flow=flow: operate_all(connection, flow)
           for connection, flow in zip(sessions.connections(2), list(flows), strict=True)]
    )  # fmt: skip

    claimed_behind = flows[0].conn.execute(
        """
        select task.flow_slug, task.step_slug, task.started_at, fence.fenced_at, fence.restored_at
        from pgflow.step_tasks as task
        inner join pgflow.fences as fence
          on fence.flow_slug = task.flow_slug
          and task.started_at between fence.fenced_at and fence.restored_at
        where task.flow_slug = any(%s)
        """,
        ([flow.slug for flow in flows],),
    )
    assert claimed_behind.fetchall() == []
    completed = "select count(*) > 0 from pgflow.step_tasks where status = 'completed' and flow_slug = any(%s)"
    assert flows[0].conn.execute(completed, ([flow.slug for flow in flows],)).fetchone() == (True,)
    lifted = flows[0].conn.execute(
        "select count(*) filter (where restored_at is null), count(*) > 0 from pgflow.fences where flow_slug = any(%s)",
        ([flow.slug for flow in flows],),
    )
    assert lifted.fetchone() == (0, True)
    for flow in flows:
        quarantine(flow.conn, flow)
        assert flow.faults() == []
