create view pgflow.stalled_tasks as
select
  task.flow_slug,
  task.run_id,
  task.step_slug,
  task.task_index,
  step.step_index,
  task.queue_name,
  task.attempts_count,
  step.max_attempts,
  task.requeued_count,
  task.last_worker_id,
  task.lease_extended_until,
  pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until) as recovery_boundary,
  task.requeued_count < 3 and task.attempts_count < step.max_attempts as may_start_again
from pgflow.step_tasks as task
-- Subqueries of their own, so that it is always the started tasks, few of them, that lead to the rest.
cross join lateral (
  select options.*
  from pgflow.step_options as options
  where options.flow_slug = task.flow_slug
    and options.step_slug = task.step_slug
  limit 1
) as step
cross join lateral (
  select found.status
  from pgflow.step_states as found
  where found.run_id = task.run_id
    and found.step_slug = task.step_slug
  limit 1
) as state
cross join lateral (
  select found.status
  from pgflow.runs as found
  where found.run_id = task.run_id
  limit 1
) as run
where task.status = 'started'
  and pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until) <= clock_timestamp()
  and state.status = 'started'
  and run.status = 'started';

comment on view pgflow.stalled_tasks is
'Started tasks past their recovery boundary: their worker is gone, or too slow and not extending its lease. may_start_again says whether recovery queues the task again or fails it.';
