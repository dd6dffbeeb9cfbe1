create function pgflow.flow_workers(flow_slug text)
returns setof pgflow.workers
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select worker.*
  from pgflow.workers as worker
  where worker.flow_slug = flow_workers.flow_slug
    or (
      -- Workers of pgflow 0.14 know nothing but the queue.
      worker.flow_slug is null
      and lower(worker.queue_name collate "C") in (
        select owner.queue_name
        from pgflow.queues as owner
        where owner.flow_slug = flow_workers.flow_slug
      )
    );
$function$;

comment on function pgflow.flow_workers(text) is
'Internal: every worker that ever registered for a flow and is still listed, live or not. Ask while the flow owns its queues.';
