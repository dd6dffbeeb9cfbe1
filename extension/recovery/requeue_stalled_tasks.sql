create function pgflow.requeue_stalled_tasks()
returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  flow_slugs text[];
  run_ids uuid[];
  lost pgflow.task_result[];
  messages pgflow.message_ref[];
begin
  -- A flow that is just being recompiled or deleted is passed over: its tasks go away, and waiting for it would hold up
  -- the recovery of all others.
  flow_slugs := array(
    select flow.flow_slug
    from pgflow.flows as flow
    where flow.flow_slug in (select stalled.flow_slug from pgflow.stalled_tasks as stalled)
    order by flow.flow_slug collate "C"
    for key share skip locked
  );

  -- First the tasks that may not start again: ending them takes the locks of runs, which come before those of tasks.
  run_ids := array(
    select run.run_id
    from pgflow.runs as run
    where run.run_id in (
      select stalled.run_id
      from pgflow.stalled_tasks as stalled
      where not stalled.may_start_again
        and stalled.flow_slug = any(flow_slugs)
    )
    order by run.run_id
    for no key update skip locked
  );

  lost := array(
    select
      row(
        stalled.run_id,
        stalled.step_slug,
        stalled.task_index,
        stalled.attempts_count,
        'stalled',
        null,
        format(
          'Attempt %s of %s was lost with its worker; requeued %s times.',
          stalled.attempts_count, stalled.max_attempts, stalled.requeued_count
        )
      )::pgflow.task_result
    from pgflow.stalled_tasks as stalled
    inner join pgflow.step_tasks as task
      on task.run_id = stalled.run_id
      and task.step_slug = stalled.step_slug
      and task.task_index = stalled.task_index
    where not stalled.may_start_again
      and stalled.run_id = any(run_ids)
    order by stalled.run_id, stalled.step_index, stalled.task_index
    for no key update of task skip locked
  );

  if lost <> '{}' then
    perform pgflow.settle_tasks(lost);
  end if;

  with picked as materialized (
    select task.run_id, task.step_slug, task.task_index
    from pgflow.stalled_tasks as stalled
    inner join pgflow.step_tasks as task
      on task.run_id = stalled.run_id
      and task.step_slug = stalled.step_slug
      and task.task_index = stalled.task_index
    where stalled.may_start_again
      and stalled.flow_slug = any(flow_slugs)
      -- Checked again on the row as it is once its lock is ours: it may have been finished or extended meanwhile.
      and task.status = 'started'
      and task.attempts_count = stalled.attempts_count
      and task.lease_extended_until is not distinct from stalled.lease_extended_until
    order by task.run_id, stalled.step_index, task.task_index
    for no key update of task skip locked
  ),
  requeued as (
    update pgflow.step_tasks as task
    set
      status = 'queued',
      started_at = null,
      queued_at = clock_timestamp(),
      requeued_count = task.requeued_count + 1,
      last_requeued_at = clock_timestamp()
    from picked
    where task.run_id = picked.run_id
      and task.step_slug = picked.step_slug
      and task.task_index = picked.task_index
    returning task.queue_name, task.message_id
  )
  select array_agg(row(requeued.queue_name, requeued.message_id)::pgflow.message_ref)
  into messages
  from requeued;

  if messages is null then
    return 0;
  end if;

  perform pgflow.set_visibility(messages, array_fill(clock_timestamp(), array[cardinality(messages)]));

  return cardinality(messages);
end
$function$;

comment on function pgflow.requeue_stalled_tasks() is
'Takes tasks that are past their recovery boundary from workers that are gone, and returns how many were queued again; these can be read at once. A task is requeued three times at most, and only while it has attempts left (a lost attempt is one); then it fails by the normal path, with permanently_stalled_at set, and its step''s whenExhausted decides. Run it every few seconds, by setup_requeue_stalled_tasks_cron() or any scheduler. As in pgflow 0.14.';
