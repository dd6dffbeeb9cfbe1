create function pgflow.unfence_flow(flow_slug text)
returns table (function_name text, enabled boolean, reason text)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_fenced_flow(unfence_flow.flow_slug);

  -- Fences of one flow come and go one after the other. Claims need not wait.
  perform from pgflow.flows as flow where flow.flow_slug = unfence_flow.flow_slug for no key update;

  perform
  from pgflow.worker_functions as known
  where known.function_name in (
    select fence.function_name
    from pgflow.fences as fence
    where fence.flow_slug = unfence_flow.flow_slug
      and fence.restored_at is null
  )
  order by known.function_name collate "C"
  for no key update;

  update pgflow.worker_functions as known
  set
    enabled = fence.was_enabled,
    disabled_at = case when not fence.was_enabled then clock_timestamp() end,
    disabled_reason = case
      when not fence.was_enabled then format('it was disabled before flow "%s" was fenced', fence.flow_slug)
    end,
    updated_at = clock_timestamp()
  from pgflow.fences as fence
  where fence.flow_slug = unfence_flow.flow_slug
    and fence.restored_at is null
    and known.function_name = fence.function_name
    and not known.enabled
    and pgflow.is_disabled_by_fence(known)
    and not exists (
      select
      from pgflow.fences as other
      where other.function_name = fence.function_name
        and other.flow_slug <> fence.flow_slug
        and other.restored_at is null
    );

  return query
  with lifted as (
    update pgflow.fences as fence
    set restored_at = clock_timestamp()
    where fence.flow_slug = unfence_flow.flow_slug
      and fence.restored_at is null
    returning fence.function_name
  )
  select
    lifted.function_name,
    coalesce(known.enabled, false),
    case
      when known.function_name is null then 'the function is no longer known'
      when known.enabled then null
      when other.flow_slug is not null then format('flow "%s" is fenced with it: %s', other.flow_slug, other.reason)
      else coalesce(known.disabled_reason, 'no reason was recorded')
    end
  from lifted
  left join pgflow.worker_functions as known on known.function_name = lifted.function_name
  left join lateral (
    select fence.flow_slug, fence.reason
    from pgflow.fences as fence
    where fence.function_name = lifted.function_name
      and fence.flow_slug <> unfence_flow.flow_slug
      and fence.restored_at is null
      and pgflow.is_disabled_by_fence(known)
    order by fence.fenced_at
    limit 1
  ) as other on true
  order by lifted.function_name collate "C";
end
$function$;

comment on function pgflow.unfence_flow(text) is
'Lifts the fence of a flow: each function is enabled or disabled again as it was before, unless another flow is still fenced with it or somebody disabled it meanwhile. Returns the functions, whether they are enabled now, and if not, why. Workers do not come back by themselves: ensure_workers() or whoever runs the processes starts new ones. Lifting a fence that is not there does nothing. Raises PF018 for a flow that is not known and was never fenced.';
