create function pgflow.check_enabled(function pgflow.worker_functions, flow_slug text, worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  fence pgflow.fences;
begin
  select open.*
  into fence
  from pgflow.fences as open
  where open.flow_slug = check_enabled.flow_slug
    and open.restored_at is null
  order by open.fenced_at
  limit 1;

  if function.enabled and fence.flow_slug is null then
    return;
  end if;

  raise exception using
    errcode = 'PF012',
    message = case
      when fence.flow_slug is not null then format('Flow "%s" is fenced: %s', fence.flow_slug, fence.reason)
      else format(
        'Worker function "%s" is disabled: %s',
        function.function_name,
        coalesce(function.disabled_reason, 'no reason was recorded')
      )
    end,
    detail = format(
      '%s. Worker %s of function "%s" was not registered.',
      case
        when fence.flow_slug is not null then 'Fenced at ' || fence.fenced_at
        else 'Disabled at ' || coalesce(function.disabled_at::text, 'an unknown time')
      end,
      check_enabled.worker_id,
      function.function_name
    ),
    hint = format(
      'When the cause is removed: %s;',
      pgflow.way_to_enable(function.function_name, check_enabled.flow_slug)
    );
end
$function$;

comment on function pgflow.check_enabled(pgflow.worker_functions, text, uuid) is
'Internal: raises PF012 unless workers of a function may register for a flow: the flow is fenced, or the function is disabled.';
