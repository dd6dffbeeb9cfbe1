create function pgflow.lock_subscription(worker_id uuid)
returns setof pgflow.workers
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Whoever recompiles, deletes or fences a flow takes its row first and the queue tables after it. A claim that waited
  -- here while it holds a queue table would wait for ever, so it gives way instead.
  perform
  from pgflow.workers as worker
  inner join pgflow.flows as flow on flow.flow_slug = worker.flow_slug
  where worker.worker_id = lock_subscription.worker_id
  for key share of flow skip locked;

  if not found and exists (
    select
    from pgflow.workers as worker
    inner join pgflow.flows as flow on flow.flow_slug = worker.flow_slug
    where worker.worker_id = lock_subscription.worker_id
  ) then
    return;
  end if;

  perform from pgflow.workers as worker where worker.worker_id = lock_subscription.worker_id for share;

  return next pgflow.check_subscription(lock_subscription.worker_id);
end
$function$;

comment on function pgflow.lock_subscription(uuid) is
'Internal: locks a worker''s flow and its row against changes and checks again that it may claim. No row when its flow is just being recompiled, deleted or fenced. Raises as check_subscription() does.';
