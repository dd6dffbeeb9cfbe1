create function pgflow.claim_queued(worker pgflow.workers, msg_ids bigint[], reads int)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_indexscan to on
set enable_nestloop to on
set enable_seqscan to off
set enable_bitmapscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  queued pgflow.step_tasks[];
  timeouts int[];
  claimed_at timestamptz;
  hidden int;
  claimed pgflow.step_tasks[];
begin
  -- In the order in which results lock tasks, as in lock_tasks(). A row that is locked is read as it is then, and its status tells
  -- what became of its step and run, too.
  select
    array_agg(locked.task order by named.position),
    array_agg(named.timeout order by named.position)
  into queued, timeouts
  from (
    select
      passed.position,
      found.run_id,
      found.step_slug,
      found.task_index,
      step.step_index,
      step.timeout
    from unnest(claim_queued.msg_ids) with ordinality as passed (msg_id, position)
    cross join lateral (
      select task.run_id, task.step_slug, task.task_index
      from pgflow.step_tasks as task
      where task.queue_name = (worker).queue_name
        and task.message_id = passed.msg_id
        and task.flow_slug = (worker).flow_slug
        and ((worker).step_slug is null or task.step_slug = (worker).step_slug)
      limit 1
    ) as found
    cross join lateral (
      select every.step_index, every.timeout
      from pgflow.step_options as every
      where every.flow_slug = (worker).flow_slug
        and every.step_slug = found.step_slug
      limit 1
    ) as step
    cross join lateral (
      select state.status
      from pgflow.step_states as state
      where state.run_id = found.run_id
        and state.step_slug = found.step_slug
        and state.status = 'started'
      limit 1
    ) as state
    cross join lateral (
      select run.status from pgflow.runs as run where run.run_id = found.run_id and run.status = 'started' limit 1
    ) as run
    order by found.run_id, step.step_index, found.task_index
    limit cardinality(claim_queued.msg_ids)
  ) as named
  cross join lateral (
    select task
    from pgflow.step_tasks as task
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
      and task.status = 'queued'
    limit 1
    for no key update skip locked
  ) as locked;

  if cardinality(queued) is distinct from cardinality(msg_ids) then
    return;
  end if;

  claimed_at := clock_timestamp();
  hidden := pgflow.set_queue_visibility(
    (worker).queue_name,
    msg_ids,
    array(select pgflow.recovery_boundary(claimed_at, every.timeout, null) from unnest(timeouts) as every (timeout)),
    reads
  );

  -- Some are not on the queue, or named twice. Those that are there have been counted as read.
  if hidden <> cardinality(msg_ids) then
    return query
    select * from pgflow.claim_batch(worker, msg_ids, 0);
    return;
  end if;

  with started as (
    update pgflow.step_tasks as task
    set
      status = 'started',
      attempts_count = task.attempts_count + 1,
      started_at = claimed_at,
      last_worker_id = (worker).worker_id,
      lease_extended_until = null
    from (
      select every.run_id, every.step_slug, every.task_index, every.ordinality as position
      from unnest(queued) with ordinality as every
      limit cardinality(queued)
    ) as named
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
    returning task, named.position
  )
  select array_agg(started.task order by started.position)
  into claimed
  from started;

  return query
  select
    given.message_id,
    'claimed',
    given.flaw,
    given.flow_slug,
    given.run_id,
    given.step_slug,
    given.task_index,
    given.attempts_count,
    given.input,
    given.flow_input
  from pgflow.attempt_inputs(claimed) as given;
end
$function$;

comment on function pgflow.claim_queued(pgflow.workers, bigint[], int) is
'Internal: claims a batch that is nothing but free messages of queued tasks of the subscription, as most are: the outcome that claim_batch() comes to, without its detour. No rows, and nothing changed, when anything else is among them. The caller has checked the worker and holds the locks of its flow and of its row. reads as in set_visibility().';
