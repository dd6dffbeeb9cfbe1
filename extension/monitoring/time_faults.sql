create function pgflow.time_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select
    'time_of_status',
    item.subject,
    format(
      'its status is %s; times are set for: %s',
      item.status,
      coalesce(nullif(array_to_string(item.set_for, ', '), ''), 'nothing')
    )
  from (
    select
      format('run %s', run.run_id) as subject,
      run.status,
      array[
        case when run.completed_at is not null then 'completed' end,
        case when run.failed_at is not null then 'failed' end
      ] as set_for
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
    union all
    select
      format('step "%s" of run %s', state.step_slug, state.run_id),
      state.status,
      array[
        case when state.completed_at is not null then 'completed' end,
        case when state.failed_at is not null then 'failed' end,
        case when state.skipped_at is not null then 'skipped' end
      ]
    from pgflow.step_states as state
    where only_flow is null or state.flow_slug = only_flow
    union all
    select
      format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
      task.status,
      array[
        case when task.completed_at is not null then 'completed' end,
        case when task.failed_at is not null then 'failed' end,
        case when task.skipped_at is not null then 'skipped' end,
        case when task.cancelled_at is not null then 'cancelled' end
      ]
    from pgflow.step_tasks as task
    where only_flow is null or task.flow_slug = only_flow
  ) as item
  -- Exactly the time of its own terminal status, and none while it is not terminal.
  where array_remove(item.set_for, null) <> case
    when item.status in ('created', 'queued', 'started') then '{}'::text[]
    else array[item.status]
  end
  union all
  select
    'start_of_task',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format(
      'the task is %s after %s attempts, and was started at: %s',
      task.status, task.attempts_count, coalesce(task.started_at::text, 'no time')
    )
  from pgflow.step_tasks as task
  where (only_flow is null or task.flow_slug = only_flow)
    and (
      (task.status = 'started' and (task.started_at is null or task.attempts_count = 0))
      or (task.status = 'queued' and task.started_at is not null)
    )
  union all
  select
    'time_order',
    item.subject,
    format('%s at %s comes before %s at %s', item.later, item.later_at, item.earlier, item.earlier_at)
  from (
    select
      format('run %s', run.run_id) as subject,
      'start' as earlier,
      run.started_at as earlier_at,
      'end' as later,
      coalesce(run.completed_at, run.failed_at) as later_at
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
    union all
    select
      format('step "%s" of run %s', state.step_slug, state.run_id),
      times.earlier,
      times.earlier_at,
      times.later,
      times.later_at
    from pgflow.step_states as state
    cross join lateral (
      select coalesce(state.completed_at, state.failed_at, state.skipped_at) as at
    ) as ended
    cross join lateral (
      values
      ('creation', state.created_at, 'start', state.started_at),
      ('creation', state.created_at, 'end', ended.at),
      ('start', state.started_at, 'end', ended.at)
    ) as times (earlier, earlier_at, later, later_at)
    where only_flow is null or state.flow_slug = only_flow
    union all
    select
      format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
      times.earlier,
      times.earlier_at,
      times.later,
      times.later_at
    from pgflow.step_tasks as task
    cross join lateral (
      select coalesce(task.completed_at, task.failed_at, task.skipped_at, task.cancelled_at) as at
    ) as ended
    cross join lateral (
      values
      ('queueing', task.queued_at, 'start', task.started_at),
      ('queueing', task.queued_at, 'end', ended.at),
      ('start', task.started_at, 'end', ended.at)
    ) as times (earlier, earlier_at, later, later_at)
    where only_flow is null or task.flow_slug = only_flow
  ) as item
  where item.later_at < item.earlier_at;
$function$;

comment on function pgflow.time_faults(text) is
'Internal: runs, steps and tasks, of one flow or of all, whose times don''t fit their status or each other.';
