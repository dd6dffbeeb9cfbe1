create function pgflow.prune_workers(silent_since timestamptz, batch_size int)
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  pruned bigint;
begin
  with ranked as (
    select
      worker.worker_id,
      row_number() over (
        partition by worker.function_name, worker.queue_name, worker.flow_slug, worker.step_slug
        order by worker.last_heartbeat_at desc, worker.worker_id
      ) as rank
    from pgflow.workers as worker
  ),
  candidate as (
    select worker.worker_id
    from ranked
    inner join pgflow.workers as worker on worker.worker_id = ranked.worker_id
    where ranked.rank > 1
      and not pgflow.worker_is_live(worker)
      and coalesce(worker.stopped_at, worker.last_heartbeat_at) < silent_since
      -- Not before its tasks are gone: deleting the worker would have to write to each of them.
      and not exists (
        select
        from pgflow.step_tasks as task
        where task.last_worker_id = worker.worker_id
      )
    order by worker.worker_id
    limit prune_workers.batch_size
    for update of worker skip locked
  )
  delete from pgflow.workers as worker
  using candidate
  where worker.worker_id = candidate.worker_id;

  get diagnostics pruned = row_count;
  return pruned;
end
$function$;

comment on function pgflow.prune_workers(timestamptz, int) is
'Internal: deletes one batch of workers that stopped, or were last heard of, before silent_since, that no task refers to, and that are not the last of their function and subscription. Returns how many.';
