create function pgflow.worker_standing(worker_id uuid)
returns table (errcode text, reason text)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $function$
declare
  worker record;
begin
  -- One look and then plain tests: every claim comes here, and nearly every one finds nothing to object to.
  select
    known.*,
    flow.flow_slug as known_flow,
    flow.generation as known_generation,
    function.enabled as is_enabled,
    function.disabled_reason,
    fence.flow_slug as fenced_flow,
    fence.reason as fence_reason
  into worker
  from pgflow.workers as known
  left join pgflow.flows as flow on flow.flow_slug = known.flow_slug
  left join pgflow.worker_functions as function on function.function_name = known.function_name
  -- Workers of pgflow 0.14 know nothing but the queue.
  left join pgflow.queues as owner
    on known.flow_slug is null
    and owner.queue_name = lower(known.queue_name collate "C")
  -- Every worker of the flow is behind its fence, one of a function that the fence has not met, too.
  left join lateral (
    select open.flow_slug, open.reason
    from pgflow.fences as open
    where open.flow_slug = coalesce(known.flow_slug, owner.flow_slug)
      and open.restored_at is null
    limit 1
  ) as fence on true
  where known.worker_id = worker_standing.worker_id;

  -- What can't be mended comes first; a disabled function before the order to stop, since it says what to repair.
  if worker.worker_id is null then
    errcode := 'PF013';
    reason := format('worker %s is not known', coalesce(worker_standing.worker_id::text, 'null'));
  elsif worker.stopped_at is not null then
    errcode := 'PF013';
    reason := 'it was stopped at ' || worker.stopped_at;
  elsif worker.flow_slug is not null and worker.known_flow is null then
    errcode := 'PF013';
    reason := format('flow "%s" is gone', worker.flow_slug);
  elsif worker.flow_slug is not null and worker.generation is distinct from worker.known_generation then
    errcode := 'PF013';
    reason := format(
      'flow "%s" was recompiled: the worker is of generation %s, the flow of generation %s',
      worker.flow_slug, worker.generation, worker.known_generation
    );
  elsif worker.fenced_flow is not null then
    errcode := 'PF012';
    reason := format('flow "%s" is fenced: %s', worker.fenced_flow, worker.fence_reason);
  elsif not worker.is_enabled then
    errcode := 'PF012';
    reason := format(
      'function "%s" is disabled: %s', worker.function_name, coalesce(worker.disabled_reason, 'no reason was recorded')
    );
  elsif worker.stop_reason is not null then
    errcode := 'PF013';
    reason := 'it was told to stop: ' || worker.stop_reason;
  elsif worker.deprecated_at is not null then
    errcode := 'PF013';
    reason := 'it was deprecated at ' || worker.deprecated_at;
  elsif worker.flow_slug is null then
    errcode := 'PF010';
    reason := 'it never registered a subscription';
  else
    return;
  end if;

  return next;
end
$function$;

comment on function pgflow.worker_standing(uuid) is
'Whether a worker may go on: no row when it may, else the SQLSTATE that a claim of it raises (PF013, PF012, PF010) and the reason as the rest of a sentence about the worker. Claims, heartbeats and coverage all ask this function.';
