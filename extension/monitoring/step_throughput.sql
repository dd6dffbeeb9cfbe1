create view pgflow.step_throughput as
select
  step.flow_slug,
  step.step_slug,
  task.started,
  task.completed,
  task.failed,
  task.retried,
  outcome.skipped,
  task.p50_duration,
  task.p95_duration,
  task.p50_wait,
  task.p95_wait
from pgflow.steps as step
cross join lateral (
  select
    count(*) filter (where task.attempts_count > 0) as started,
    count(*) filter (where task.status = 'completed') as completed,
    count(*) filter (where task.status = 'failed') as failed,
    coalesce(sum(task.attempts_count - 1) filter (where task.attempts_count > 1), 0) as retried,
    percentile_cont(0.5) within group (order by task.completed_at - task.started_at) as p50_duration,
    percentile_cont(0.95) within group (order by task.completed_at - task.started_at) as p95_duration,
    percentile_cont(0.5) within group (order by task.started_at - task.queued_at)
    filter (where task.attempts_count = 1) as p50_wait,
    percentile_cont(0.95) within group (order by task.started_at - task.queued_at)
    filter (where task.attempts_count = 1) as p95_wait
  from pgflow.step_states as state
  inner join pgflow.step_tasks as task
    on task.run_id = state.run_id
    and task.step_slug = state.step_slug
  where state.flow_slug = step.flow_slug
    and state.step_slug = step.step_slug
) as task
cross join lateral (
  select count(*) filter (where state.status = 'skipped') as skipped
  from pgflow.step_states as state
  where state.flow_slug = step.flow_slug
    and state.step_slug = step.step_slug
) as outcome;

comment on view pgflow.step_throughput is
'One row a step: what its tasks did, over all runs that have not been pruned, and how long they took.';
comment on column pgflow.step_throughput.started is 'Tasks that were claimed at least once.';
comment on column pgflow.step_throughput.retried is 'Attempts beyond the first of each task.';
comment on column pgflow.step_throughput.skipped is 'Runs in which the step was skipped.';
comment on column pgflow.step_throughput.p50_duration is
'Median time from claim to completion of the attempt that completed.';
comment on column pgflow.step_throughput.p50_wait is
'Median time between queueing and claim, a start delay included, of tasks that were claimed once: later attempts wait for their retry.';
