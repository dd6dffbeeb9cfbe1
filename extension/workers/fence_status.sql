create function pgflow.fence_status(flow_slug text)
returns table (
  function_name text,
  was_enabled boolean,
  fenced_at timestamptz,
  reason text,
  live_workers bigint,
  last_heartbeat_at timestamptz,
  started_tasks bigint,
  is_drained boolean
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_fenced_flow(fence_status.flow_slug);

  return query
  select
    fence.function_name,
    fence.was_enabled,
    fence.fenced_at,
    fence.reason,
    pool.live_workers,
    pool.last_heartbeat_at,
    work.started_tasks,
    pool.live_workers = 0 and work.started_tasks = 0
  from pgflow.fences as fence
  cross join lateral (
    select
      -- Deprecated by the fence, and yet at work as long as they are heard of.
      count(*) filter (
        where worker.stopped_at is null
          and worker.last_heartbeat_at > clock_timestamp() - interval '30 seconds'
      ) as live_workers,
      max(worker.last_heartbeat_at) as last_heartbeat_at
    from pgflow.workers as worker
    where worker.function_name = fence.function_name
  ) as pool
  cross join lateral (
    select count(*) as started_tasks
    from pgflow.workers as worker
    inner join pgflow.step_tasks as task
      on task.last_worker_id = worker.worker_id
      and task.status = 'started'
    where worker.function_name = fence.function_name
  ) as work
  where fence.flow_slug = fence_status.flow_slug
    and fence.restored_at is null
  order by fence.function_name collate "C";
end
$function$;

comment on function pgflow.fence_status(text) is
'How far the functions behind the fence of a flow have drained, a row each; none when there is no fence. live_workers counts those heard of within 30 seconds that have not stopped, started_tasks what workers of the function have in hand, of any flow; is_drained: neither. What a lost worker had in hand counts until requeue_stalled_tasks() takes it back. Raises PF018 for a flow that is not known and was never fenced.';
