create function pgflow.stop_flow_workers(flow_slug text, reason text)
returns void
language sql
set search_path to pg_catalog, pg_temp
as $function$
  with to_stop as (
    select worker.worker_id
    from pgflow.workers as worker
    where worker.stop_reason is null
      and worker.worker_id in (select own.worker_id from pgflow.flow_workers(stop_flow_workers.flow_slug) as own)
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
