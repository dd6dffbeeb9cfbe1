create function pgflow.prune_runs(flow_slugs text[], ended_before timestamptz, batch_size int)
returns table (what text, deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  messages pgflow.message_ref[];
  runs bigint;
  states bigint;
  tasks bigint;
begin
  run_ids := array(
    select run.run_id
    from pgflow.runs as run
    where run.flow_slug = any(flow_slugs)
      and coalesce(run.completed_at, run.failed_at) < ended_before
    order by run.run_id
    limit prune_runs.batch_size
    for update skip locked
  );

  perform
  from pgflow.step_states as state
  inner join pgflow.steps as step
    on step.flow_slug = state.flow_slug
    and step.step_slug = state.step_slug
  where state.run_id = any(run_ids)
  order by state.run_id, step.step_index
  for update of state;

  perform
  from pgflow.step_tasks as task
  inner join pgflow.steps as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug
  where task.run_id = any(run_ids)
  order by task.run_id, step.step_index, task.task_index
  for update of task;

  -- Only from queues that are the flow's own: on another one the same ids name the messages of somebody else.
  messages := array(
    select row(task.queue_name, task.message_id)::pgflow.message_ref
    from pgflow.step_tasks as task
    inner join pgflow.queues as queue
      on queue.queue_name = task.queue_name
      and queue.flow_slug = task.flow_slug
    where task.run_id = any(run_ids)
      and task.message_id is not null
  );

  delete from pgflow.step_tasks as task where task.run_id = any(run_ids);
  get diagnostics tasks = row_count;

  delete from pgflow.step_states as state where state.run_id = any(run_ids);
  get diagnostics states = row_count;

  delete from pgflow.runs as run where run.run_id = any(run_ids);
  get diagnostics runs = row_count;

  return query
  values
  ('runs', runs),
  ('step_states', states),
  ('step_tasks', tasks),
  ('messages', pgflow.delete_messages(messages));
end
$function$;

comment on function pgflow.prune_runs(text[], timestamptz, int) is
'Internal: deletes one batch of runs of some flows, which the caller has locked, that ended before a time, with all that belongs to them. Runs that are locked are left for the next batch. Takes every lock in the common order.';
