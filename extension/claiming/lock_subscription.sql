create function pgflow.lock_subscription(worker_id uuid)
returns setof pgflow.workers
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow_slug text := (
    select worker.flow_slug from pgflow.workers as worker where worker.worker_id = lock_subscription.worker_id
  );
begin
  -- Whoever recompiles, deletes or repairs a flow takes it first and the queue tables after it. A claim that waited
  -- here while it holds a queue table would wait for ever, so it gives way instead.
  if not pg_try_advisory_xact_lock_shared(pgflow.flow_key(flow_slug)) then
    return;
  end if;

  -- Waits for a fence, which the check then finds.
  perform from pgflow.workers as worker where worker.worker_id = lock_subscription.worker_id for share;

  return next pgflow.check_subscription(lock_subscription.worker_id);
end
$function$;

comment on function pgflow.lock_subscription(uuid) is
'Internal: locks a worker''s flow and its row against changes and checks again that it may claim. No row when its flow is just being recompiled, deleted or repaired. Raises as check_subscription() does.';
