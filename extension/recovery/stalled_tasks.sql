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
inner join pgflow.step_options as step
  on step.flow_slug = task.flow_slug
  and step.step_slug = task.step_slug
inner join pgflow.step_states as state
  on state.run_id = task.run_id
  and state.step_slug = task.step_slug
  and state.status = 'started'
inner join pgflow.runs as run
  on run.run_id = task.run_id
  and run.status = 'started'
where task.status = 'started'
  and pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until) <= clock_timestamp();

comment on view pgflow.stalled_tasks is
'Started tasks past their recovery boundary: their worker is gone, or too slow and not extending its lease. may_start_again says whether recovery queues the task again or fails it.';
