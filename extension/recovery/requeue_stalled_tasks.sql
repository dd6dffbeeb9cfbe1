create function pgflow.requeue_stalled_tasks()
returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  stalled pgflow.stalled_tasks[] := array(select candidate from pgflow.stalled_tasks as candidate);
  flow_slugs text[];
  run_ids uuid[];
  lost pgflow.task_result[];
  messages pgflow.message_ref[];
begin
  if stalled = '{}' then
    return 0;
  end if;

  -- A flow that is just being recompiled or deleted is passed over: its tasks go away, and waiting for it would hold up
  -- the recovery of all others. So is whatever else somebody is working on: it is looked at again by the next sweep.
  flow_slugs := array(
    select flow.flow_slug
    from (select distinct task.flow_slug from unnest(stalled) as task) as flow
    where pg_try_advisory_xact_lock_shared(pgflow.flow_key(flow.flow_slug))
  );

  -- First the tasks that may not start again: ending them takes the locks of runs, which come before those of tasks.
  run_ids := array(
    select run.run_id
    from pgflow.runs as run
    where run.run_id = any(array(
      select distinct task.run_id
      from unnest(stalled) as task
      where not task.may_start_again
        and task.flow_slug = any(flow_slugs)
    ))
    order by run.run_id
    for no key update skip locked
  );

  lost := array(
    select
      row(
        task.run_id,
        task.step_slug,
        task.task_index,
        task.attempts_count,
        'stalled',
        null,
        format(
          'Attempt %s of %s was lost with its worker; requeued %s times.',
          task.attempts_count, task.max_attempts, task.requeued_count
        )
      )::pgflow.task_result
    from (
      select every.*
      from unnest(stalled) as every
      where not every.may_start_again
        and every.run_id in (select unnest(run_ids))
      order by every.run_id, every.step_index, every.task_index
    ) as task
    cross join lateral (
      select found.status
      from pgflow.step_tasks as found
      where found.run_id = task.run_id
        and found.step_slug = task.step_slug
        and found.task_index = task.task_index
      limit 1
      for no key update skip locked
    ) as locked
  );

  if lost <> '{}' then
    perform pgflow.settle_tasks(lost);
  end if;

  with picked as materialized (
    select task.run_id, task.step_slug, task.task_index
    from (
      select every.*
      from unnest(stalled) as every
      where every.may_start_again
        and every.flow_slug = any(flow_slugs)
      order by every.run_id, every.step_index, every.task_index
    ) as task
    cross join lateral (
      -- Checked again on the row as it is once its lock is ours: it may have been finished or extended meanwhile.
      select found.status
      from pgflow.step_tasks as found
      where found.run_id = task.run_id
        and found.step_slug = task.step_slug
        and found.task_index = task.task_index
        and found.status = 'started'
        and found.attempts_count = task.attempts_count
        and found.lease_extended_until is not distinct from task.lease_extended_until
      limit 1
      for no key update skip locked
    ) as locked
    limit cardinality(stalled)
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
