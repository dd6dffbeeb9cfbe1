create function pgflow.status_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with run as (
    select run.*
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
  )
  select
    'active_task_of_ended_parent',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('the task is %s, its step %s, its run %s', task.status, state.status, run.status)
  from pgflow.step_tasks as task
  inner join run on run.run_id = task.run_id
  inner join pgflow.step_states as state
    on state.run_id = task.run_id
    and state.step_slug = task.step_slug
  where pgflow.task_is_active(task.status)
    and (run.status <> 'started' or state.status <> 'started')
  union all
  select
    'unfinished_task_of_completed_step',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('the step is completed, the task is %s', task.status)
  from pgflow.step_tasks as task
  inner join run on run.run_id = task.run_id
  inner join pgflow.step_states as state
    on state.run_id = task.run_id
    and state.step_slug = task.step_slug
  where state.status = 'completed'
    and task.status not in ('completed', 'queued', 'started')
  union all
  select
    'open_step_of_completed_run',
    format('step "%s" of run %s', state.step_slug, state.run_id),
    format('the run is completed, the step is %s', state.status)
  from run
  inner join pgflow.step_states as state on state.run_id = run.run_id
  where run.status = 'completed'
    and state.status not in ('completed', 'skipped')
  union all
  select
    'ready_step_not_started',
    format('step "%s" of run %s', state.step_slug, state.run_id),
    'the step waits for no dependency any more and was neither started nor ended'
  from run
  inner join pgflow.step_states as state on state.run_id = run.run_id
  where run.status = 'started'
    and state.status = 'created'
    and state.remaining_deps = 0
  union all
  select
    'run_cannot_move',
    format('run %s', run.run_id),
    'the run is started and has no active task whose result could move it'
  from run
  where run.status = 'started'
    and not exists (
      select
      from pgflow.step_tasks as task
      where task.run_id = run.run_id
        and pgflow.task_is_active(task.status)
    );
$function$;

comment on function pgflow.status_faults(text) is
'Internal: statuses of runs, steps and tasks, of one flow or of all, that can''t go together, and runs in progress that nothing can move.';
