"""Databases with a long past, and the workloads of an empty one on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import psycopg
from psycopg import sql

from pgflow_stepq.bench.chain import Chain, Single, compile_chain
from pgflow_stepq.bench.diamond import Diamond, compile_diamond
from pgflow_stepq.bench.flow import FLOW
from pgflow_stepq.bench.map_flow import Map, compile_map
from pgflow_stepq.bench.scales import Scale
from pgflow_stepq.bench.templates import STEPQ, Template
from pgflow_stepq.bench.workload import Connection

# Runs of the past, and how many of their steps, in order, are done; the next that are ready wait until tomorrow.
_MAKE_RUNS: Final = """
create temporary table past_run as
select pgflow.new_run_id() as run_id, %(done)s::int as steps_done
from generate_series(1, %(runs)s)
"""
_ADD_RUNS: Final = """
insert into past_run
select pgflow.new_run_id(), %(done)s::int
from generate_series(1, %(runs)s)
"""
_WRITE_RUNS: Final = """
insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, started_at, completed_at)
select
  run_id,
  %(flow)s,
  case when steps_done = %(steps)s then 'completed' else 'started' end,
  '0',
  case when steps_done = %(steps)s then '{}'::jsonb end,
  %(steps)s - steps_done,
  now() - interval '1 hour',
  case when steps_done = %(steps)s then now() - interval '1 hour' end
from past_run
"""
_WRITE_STATES: Final = """
insert into pgflow.step_states (
  flow_slug, run_id, step_slug, status, remaining_deps, initial_tasks, remaining_tasks, output, created_at,
  started_at, completed_at
)
select
  step.flow_slug,
  run.run_id,
  step.step_slug,
  state.status,
  case when state.status = 'created' then waits.for_steps else 0 end,
  case when state.status <> 'created' or step.step_type = 'single' then tasks.number end,
  case state.status when 'completed' then 0 when 'started' then tasks.number end,
  case when state.status = 'completed' then '1'::jsonb end,
  now() - interval '1 hour',
  case when state.status <> 'created' then now() - interval '1 hour' end,
  case when state.status = 'completed' then now() - interval '1 hour' end
from past_run as run
cross join pgflow.steps as step
cross join lateral (
  select case when step.step_type = 'map' then %(elements)s else 1 end
) as tasks (number)
cross join lateral (
  select count(*)
  from pgflow.deps as dep
  inner join pgflow.steps as needed on needed.flow_slug = dep.flow_slug and needed.step_slug = dep.dep_slug
  where dep.flow_slug = step.flow_slug
    and dep.step_slug = step.step_slug
    and needed.step_index >= run.steps_done
) as waits (for_steps)
cross join lateral (
  select
    case
      when step.step_index < run.steps_done then 'completed'
      when waits.for_steps = 0 then 'started'
      else 'created'
    end
) as state (status)
where step.flow_slug = %(flow)s
"""
_WRITE_TASKS: Final = """
insert into pgflow.step_tasks (
  flow_slug, run_id, step_slug, task_index, message_id, queue_name, status, attempts_count, output, queued_at,
  started_at, completed_at
)
select
  state.flow_slug,
  state.run_id,
  state.step_slug,
  task.index,
  nextval({sequence}),
  step.queue_name,
  case when task.done then 'completed' else 'queued' end,
  task.done::int,
  case when task.done then '1'::jsonb end,
  now() - interval '1 hour',
  case when task.done then now() - interval '1 hour' end,
  case when task.done then now() - interval '1 hour' end
from pgflow.step_states as state
inner join pgflow.steps as step on step.flow_slug = state.flow_slug and step.step_slug = state.step_slug
cross join lateral (
  select number - 1, state.status = 'completed'
  from generate_series(1, state.initial_tasks) as number
) as task (index, done)
where step.queue_name = %(queue)s
  and state.status in ('completed', 'started')
"""
_WRITE_MESSAGES: Final = """
insert into {table} (msg_id, read_ct, enqueued_at, vt, message)
overriding system value
select
  task.message_id,
  task.attempts_count,
  task.queued_at,
  now() + interval '1 day',
  jsonb_build_object(
    'flow_slug', task.flow_slug, 'run_id', task.run_id, 'step_slug', task.step_slug, 'task_index', task.task_index
  )
from pgflow.step_tasks as task
where task.queue_name = %(queue)s
  and task.status = %(status)s
"""


class History(Template):
    """A flow with hundreds of thousands of finished runs, and others whose messages are for tomorrow.

    As many runs have ended as have the finished tasks of the scale; a map among the steps had `elements` elements. At
    each step other runs wait with the delayed messages of the scale.
    """

    large = True

    def __init__(self, compile_flow: Callable[[Connection], None], elements: int = 1) -> None:
        """Fill the flow that `compile_flow` compiles."""
        self._compile = compile_flow
        self._elements = elements

    def fill(self, connection: psycopg.Connection[tuple[Any, ...]], scale: Scale) -> None:
        """Make the flow and write its past as the tables have it afterwards, without a trace of the work itself."""
        STEPQ.fill(connection, scale)
        self._compile(connection)
        steps = connection.execute(
            "select queue_name, step_type from pgflow.steps where flow_slug = %s order by step_index", [FLOW]
        ).fetchall()
        tasks = [self._elements if step_type == "map" else 1 for _, step_type in steps]
        with connection.transaction():
            # All that the triggers would look at is written here; a foreign key's check for each row takes minutes.
            connection.execute("set local session_replication_role to replica")
            self._write_runs(connection, scale, tasks)
            connection.execute("analyze pgflow.step_states")
            for queue, _ in steps:
                self._write_step(connection, queue)
            connection.execute("drop table past_run")
        # As autovacuum leaves it; the first to read a row would otherwise pay for what is written here.
        connection.execute("vacuum (analyze)")

    def _write_runs(self, connection: Connection, scale: Scale, tasks: Sequence[int]) -> None:
        finished = -(-scale.history_tasks // sum(tasks))
        connection.execute(_MAKE_RUNS, {"done": len(tasks), "runs": finished})
        for done, each in enumerate(tasks):
            connection.execute(_ADD_RUNS, {"done": done, "runs": -(-scale.history_delayed // each)})
        connection.execute("analyze past_run")
        values = {"flow": FLOW, "steps": len(tasks), "elements": self._elements}
        connection.execute(_WRITE_RUNS, values)
        connection.execute(_WRITE_STATES, values)

    @staticmethod
    def _write_step(connection: Connection, queue: str) -> None:
        sequence = sql.Literal(f"pgmq.q_{queue}_msg_id_seq")
        connection.execute(sql.SQL(_WRITE_TASKS).format(sequence=sequence), {"queue": queue})
        for prefix, status in (("a", "completed"), ("q", "queued")):
            table = sql.Identifier("pgmq", f"{prefix}_{queue}")
            connection.execute(sql.SQL(_WRITE_MESSAGES).format(table=table), {"queue": queue, "status": status})


_MAP_HISTORY: Final = History(compile_map, elements=8)
_CHAIN_HISTORY: Final = History(compile_chain)
_DIAMOND_HISTORY: Final = History(compile_diamond)


class MapHistory(Map):
    """The map beside a long past."""

    name = "map-history"
    summary = "(h) map where finished runs, their archives and messages for tomorrow lie"
    against: ClassVar[tuple[str, ...]] = ("map",)
    template = _MAP_HISTORY


class ChainHistory(Chain):
    """The chain beside a long past."""

    name = "chain-history"
    summary = "(h) chain where such a past lies"
    against: ClassVar[tuple[str, ...]] = ("chain",)
    template = _CHAIN_HISTORY


class DiamondHistory(Diamond):
    """The diamond beside a long past."""

    name = "diamond-history"
    summary = "(h) diamond where such a past lies"
    against: ClassVar[tuple[str, ...]] = ("diamond",)
    template = _DIAMOND_HISTORY


class SingleHistory(Single):
    """Single calls beside a long past."""

    name = "single-history"
    summary = "(h) single where such a past lies"
    against: ClassVar[tuple[str, ...]] = ("single",)
    template = _CHAIN_HISTORY
