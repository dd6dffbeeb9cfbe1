create function pgflow.refuse_unknown_function(function_name text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF018',
    message = format('Worker function %s is not known.', coalesce('"' || function_name || '"', 'null')),
    detail = format(
      'Known functions: %s.',
      coalesce(
        (
          select string_agg(known.function_name, ', ' order by known.function_name collate "C")
          from pgflow.worker_functions as known
        ),
        'none'
      )
    ),
    hint = 'A function becomes known when a worker of it registers, or by pgflow.track_worker_function().';
end
$function$;

comment on function pgflow.refuse_unknown_function(text) is
'Internal: raises PF018 for the name of a worker function that is not known, with those that are.';
