create function pgflow.lock_subscription(worker pgflow.workers)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Whoever recompiles, deletes or repairs a flow takes it first and the queue tables after it. A claim that waited
  -- here while it holds a queue table would wait for ever, so it gives way instead.
  if not pg_try_advisory_xact_lock_shared(pgflow.flow_key(worker.flow_slug)) then
    return false;
  end if;

  -- Waits for a fence, which the check then finds.
  perform from pgflow.workers as own where own.worker_id = worker.worker_id for share;
  perform pgflow.check_subscription(worker.worker_id);

  return true;
end
$function$;

comment on function pgflow.lock_subscription(pgflow.workers) is
'Internal: locks a worker''s flow and its row against changes and checks that it may claim. False when its flow is just being recompiled, deleted or repaired. Raises as check_subscription() does.';
