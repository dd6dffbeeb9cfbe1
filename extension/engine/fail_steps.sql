create function pgflow.fail_steps(endings pgflow.step_ending[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  messages text[];
  leaving pgflow.message_ref[];
begin
  update pgflow.step_states as state
  set
    status = 'failed',
    failed_at = clock_timestamp(),
    error_message = ending.message
  from (select every.* from unnest(endings) as every limit cardinality(endings)) as ending
  where state.run_id = ending.run_id
    and state.step_slug = ending.step_slug;

  perform pgflow.emit_step_events(array_agg(ending.run_id), array_agg(ending.step_slug))
  from unnest(endings) as ending;

  -- Several steps of a run can fail in one batch; the first one speaks for the run.
  select array_agg(first_failure.run_id), array_agg(first_failure.message)
  into run_ids, messages
  from (
    select distinct on (ending.run_id) ending.run_id, ending.message
    from unnest(endings) with ordinality as ending (run_id, step_slug, ending, reason, message, position)
    order by ending.run_id, ending.position
  ) as first_failure;

  update pgflow.runs as run
  set
    status = 'failed',
    failed_at = clock_timestamp()
  where run.run_id = any(run_ids);

  with ended as (
    update pgflow.step_tasks as task
    set
      status = 'cancelled',
      cancelled_at = clock_timestamp()
    where task.run_id = any(run_ids)
      and pgflow.task_is_active(task.status)
    returning task.queue_name, task.message_id
  )
  select coalesce(array_agg(row(ended.queue_name, ended.message_id)::pgflow.message_ref), '{}')
  into leaving
  from ended;

  perform pgflow.emit_run_events(run_ids, messages);

  return leaving;
end
$function$;

comment on function pgflow.fail_steps(pgflow.step_ending[]) is
'Internal: fails steps and with them their runs. Every task of such a run that was still active, on whichever queue, becomes cancelled. Returns the messages of these.';
