create function pgflow.enable_worker_function(function_name text)
returns pgflow.worker_functions
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  enabled pgflow.worker_functions;
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

  return enabled;
end
$function$;

comment on function pgflow.enable_worker_function(text) is
'Lets the workers of a function register and claim again. Workers that were told to stop stay stopped: start new ones. Returns the function''s row. Raises PF018 (unknown function).';
