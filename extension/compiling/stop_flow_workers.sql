create function pgflow.stop_flow_workers(flow_slug text, reason text)
returns void
language sql
set search_path to pg_catalog, pg_temp
as $function$
  with to_stop as (
    select worker.worker_id
    from pgflow.workers as worker
    where worker.stop_reason is null
      and (
        worker.flow_slug = stop_flow_workers.flow_slug
        or (
          -- Workers of pgflow 0.14 know nothing but the queue.
          worker.flow_slug is null
          and lower(worker.queue_name collate "C") in (
            select owner.queue_name
            from pgflow.queues as owner
            where owner.flow_slug = stop_flow_workers.flow_slug
          )
        )
      )
    order by worker.worker_id
    for update of worker
  )
  update pgflow.workers as worker
  set stop_reason = stop_flow_workers.reason
  from to_stop
  where worker.worker_id = to_stop.worker_id;
$function$;

comment on function pgflow.stop_flow_workers(text, text) is
'Internal: gives every worker of a flow a reason to stop; what an earlier one was told stands. Ask while the flow still owns its queues.';
