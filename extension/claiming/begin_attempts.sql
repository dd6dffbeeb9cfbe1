create function pgflow.begin_attempts(queue_name text, msg_ids bigint[], worker_id uuid, reads int)
returns pgflow.step_tasks[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  claimed_at timestamptz := clock_timestamp();
  claimed pgflow.step_tasks[];
  boundaries timestamptz[];
begin
  with started as (
    update pgflow.step_tasks as task
    set
      status = 'started',
      attempts_count = task.attempts_count + 1,
      started_at = claimed_at,
      last_worker_id = begin_attempts.worker_id,
      lease_extended_until = null
    from (
      select found.run_id, found.step_slug, found.task_index
      from unnest(begin_attempts.msg_ids) as passed (msg_id)
      cross join lateral (
        select every.run_id, every.step_slug, every.task_index
        from pgflow.step_tasks as every
        where every.queue_name = begin_attempts.queue_name
          and every.message_id = passed.msg_id
          and every.status = 'queued'
        limit 1
      ) as found
      limit cardinality(begin_attempts.msg_ids)
    ) as named
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
      and task.status = 'queued'
    returning task.*
  )
  select
    array_agg(started::pgflow.step_tasks),
    array_agg(pgflow.recovery_boundary(started.started_at, step.timeout, started.lease_extended_until))
  into claimed, boundaries
  from started
  inner join pgflow.step_options as step
    on step.flow_slug = started.flow_slug
    and step.step_slug = started.step_slug;

  if claimed is null then
    return '{}';
  end if;

  perform pgflow.set_visibility(
    array(select row(task.queue_name, task.message_id)::pgflow.message_ref from unnest(claimed) as task),
    boundaries,
    begin_attempts.reads
  );

  return claimed;
end
$function$;

comment on function pgflow.begin_attempts(text, bigint[], uuid, int) is
'Internal: starts an attempt of each queued task with one of these messages: counts it, hides the message until the recovery boundary, and returns the tasks as they are now. The caller holds the locks of the tasks and has classified them. reads as in set_visibility().';
