create view pgflow.run_progress as
select
  run.run_id,
  run.flow_slug,
  run.status,
  run.started_at,
  coalesce(run.completed_at, run.failed_at) as ended_at,
  coalesce(run.completed_at, run.failed_at, clock_timestamp()) - run.started_at as duration,
  step.steps_total,
  step.steps_waiting,
  step.steps_started,
  step.steps_completed,
  step.steps_skipped,
  step.steps_failed,
  task.tasks_total,
  task.tasks_queued,
  task.tasks_started,
  task.tasks_completed,
  task.tasks_failed,
  task.tasks_retried,
  step.waits_for
from pgflow.runs as run
cross join lateral (
  select
    count(*) as steps_total,
    count(*) filter (where state.status = 'created') as steps_waiting,
    count(*) filter (where state.status = 'started') as steps_started,
    count(*) filter (where state.status = 'completed') as steps_completed,
    count(*) filter (where state.status = 'skipped') as steps_skipped,
    count(*) filter (where state.status = 'failed') as steps_failed,
    case
      when run.status = 'started'
        then array_agg(state.step_slug order by state.started_at) filter (where state.status = 'started')
    end as waits_for
  from pgflow.step_states as state
  where state.run_id = run.run_id
) as step
cross join lateral (
  select
    count(*) as tasks_total,
    count(*) filter (where task.status = 'queued') as tasks_queued,
    count(*) filter (where task.status = 'started') as tasks_started,
    count(*) filter (where task.status = 'completed') as tasks_completed,
    count(*) filter (where task.status = 'failed') as tasks_failed,
    count(*) filter (where task.attempts_count > 1) as tasks_retried
  from pgflow.step_tasks as task
  where task.run_id = run.run_id
) as task;

comment on view pgflow.run_progress is 'One row a run: how far it has come.';
comment on column pgflow.run_progress.ended_at is 'Null while the run goes on.';
comment on column pgflow.run_progress.duration is 'Until it ended, or until now.';
comment on column pgflow.run_progress.steps_waiting is 'Steps that wait for a dependency.';
comment on column pgflow.run_progress.tasks_total is
'Tasks that exist so far; steps that have not started have none yet.';
comment on column pgflow.run_progress.tasks_retried is 'Tasks that were started more than once.';
comment on column pgflow.run_progress.waits_for is
'The steps whose tasks the run waits for, in the order in which they started; null when it has ended.';
