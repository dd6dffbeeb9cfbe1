create function pgflow.enable_worker_function(function_name text)
returns pgflow.worker_functions
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  enabled pgflow.worker_functions;
  fence pgflow.fences;
begin
  update pgflow.worker_functions as function
  set
    enabled = true,
    disabled_at = null,
    disabled_reason = null,
    updated_at = clock_timestamp()
  where function.function_name = enable_worker_function.function_name
  returning function.* into enabled;

  if not found then
    perform pgflow.refuse_unknown_function(enable_worker_function.function_name);
  end if;

  select open.*
  into fence
  from pgflow.fences as open
  where open.function_name = enable_worker_function.function_name
    and open.restored_at is null
  order by open.fenced_at
  limit 1;

  if found then
    raise exception using
      errcode = 'PF012',
      message = format('Worker function "%s" is fenced with flow "%s".', fence.function_name, fence.flow_slug),
      detail = format('Since %s: %s', fence.fenced_at, fence.reason),
      hint = format(
        'Lift the fence: select * from pgflow.unfence_flow(%L). It restores what was enabled before.', fence.flow_slug
      );
  end if;

  return enabled;
end
$function$;

comment on function pgflow.enable_worker_function(text) is
'Lets the workers of a function register and claim again. Workers that were told to stop stay stopped: start new ones. Returns the function''s row. Raises PF018 (unknown function), PF012 (it is fenced with a flow).';
