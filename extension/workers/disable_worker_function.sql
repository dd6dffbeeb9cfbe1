create function pgflow.disable_worker_function(function_name text, reason text)
returns pgflow.worker_functions
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  disabled pgflow.worker_functions;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception using
      errcode = 'PF019',
      message = format('Worker function "%s" can''t be disabled without a reason.', function_name),
      detail = 'The reason is what its workers and operators get to read.',
      hint = 'Pass a sentence as reason.';
  end if;

  -- A function that is disabled already gets the new time and reason: a fence must be able to tell that somebody
  -- else wants it disabled too.
  update pgflow.worker_functions as function
  set
    enabled = false,
    disabled_at = clock_timestamp(),
    disabled_reason = reason,
    updated_at = clock_timestamp()
  where function.function_name = disable_worker_function.function_name
  returning function.* into disabled;

  if not found then
    perform pgflow.refuse_unknown_function(disable_worker_function.function_name);
  end if;

  return disabled;
end
$function$;

comment on function pgflow.disable_worker_function(text, text) is
'Keeps the workers of a function from registering and claiming, and ensure_workers() from starting it, until enable_worker_function() is called; workers learn it by their next heartbeat. Returns the function''s row. Raises PF018 (unknown function), PF019 (no reason).';
