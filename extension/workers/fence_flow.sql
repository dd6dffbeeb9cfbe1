create function pgflow.fence_flow(flow_slug text, reason text)
returns table (function_name text, was_enabled boolean)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  names text[];
  worker_ids uuid[];
  now_fenced timestamptz;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception using
      errcode = 'PF019',
      message = format('Flow "%s" can''t be fenced without a reason.', fence_flow.flow_slug),
      detail = 'The reason is what its workers and operators get to read.',
      hint = 'Pass a sentence as reason.';
  end if;

  -- Keeps registrations and other fences of the flow away. Work on it goes on.
  perform from pgflow.flows as flow where flow.flow_slug = fence_flow.flow_slug for no key update;

  if not found then
    perform pgflow.refuse_unknown_flow(fence_flow.flow_slug);
  end if;

  names := array(
    select worker.function_name from pgflow.flow_workers(fence_flow.flow_slug) as worker
    union
    select fence.function_name
    from pgflow.fences as fence
    where fence.flow_slug = fence_flow.flow_slug
      and fence.restored_at is null
  );

  -- A claim shares the row of its worker: this waits for those in progress, and those that come later wait, and then
  -- find the fence. Workers before functions, as a registration and a fatal claim have them, since a function may serve
  -- other flows, too.
  worker_ids := array(
    select worker.worker_id
    from pgflow.workers as worker
    where worker.function_name = any(names)
    order by worker.worker_id
    for no key update
  );

  -- A worker of pgflow 0.14 can be there without its function.
  insert into pgflow.worker_functions as known (function_name, start_mode, created_at, updated_at)
  select unknown.name, 'process', clock_timestamp(), clock_timestamp()
  from unnest(names) as unknown (name)
  order by unknown.name collate "C"
  on conflict do nothing;

  perform
  from pgflow.worker_functions as known
  where known.function_name = any(names)
  order by known.function_name collate "C"
  for no key update;

  now_fenced := clock_timestamp();

  -- What another fence disabled was enabled before that one: so the last fence to go restores what was there at first.
  insert into pgflow.fences (flow_slug, function_name, was_enabled, fenced_at, reason)
  select
    fence_flow.flow_slug,
    known.function_name,
    coalesce(earlier.was_enabled, known.enabled),
    now_fenced,
    fence_flow.reason
  from pgflow.worker_functions as known
  left join lateral (
    select fence.was_enabled
    from pgflow.fences as fence
    where fence.function_name = known.function_name
      and fence.restored_at is null
      and pgflow.is_disabled_by_fence(known)
    order by fence.fenced_at
    limit 1
  ) as earlier on true
  where known.function_name = any(names)
    and not exists (
      select
      from pgflow.fences as open
      where open.flow_slug = fence_flow.flow_slug
        and open.function_name = known.function_name
        and open.restored_at is null
    );

  update pgflow.worker_functions as known
  set
    enabled = false,
    disabled_at = fence.fenced_at,
    disabled_reason = format('fenced with flow "%s": %s', fence.flow_slug, fence.reason),
    updated_at = clock_timestamp()
  from pgflow.fences as fence
  where fence.flow_slug = fence_flow.flow_slug
    and fence.restored_at is null
    and known.function_name = fence.function_name
    and known.enabled;

  -- Only those whose rows are ours: one that registered meanwhile, for another flow, may just meet foreign work and wait
  -- for its function's row. It finds its function disabled.
  update pgflow.workers as worker
  set deprecated_at = clock_timestamp()
  where worker.worker_id = any(worker_ids)
    and worker.deprecated_at is null
    and worker.stopped_at is null;

  return query
  select fence.function_name, fence.was_enabled
  from pgflow.fences as fence
  where fence.flow_slug = fence_flow.flow_slug
    and fence.restored_at is null
  order by fence.function_name collate "C";
end
$function$;

comment on function pgflow.fence_flow(text, text) is
'Takes every worker function of a flow out of service: those of any of its workers, live or not, in one transaction. Records whether each was enabled, disables it, so that ensure_workers() leaves it alone, and deprecates its workers; until unfence_flow() nobody can register for the flow or claim from it. Workers learn it by their next heartbeat and finish what they have; fence_status() tells when they have. Returns the functions with what will be restored. Fencing again keeps the first record, and takes in functions that came meanwhile. reason is for people. Waits for claims in progress. Raises PF018 (unknown flow), PF019 (no reason).';
