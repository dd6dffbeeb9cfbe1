create function pgflow.track_worker_function(function_name text)
returns void
language sql
begin atomic
  -- A function that tells of itself has just been started: ensure_workers() leaves it alone for its debounce.
  insert into pgflow.worker_functions as function (function_name, last_invoked_at, created_at, updated_at)
  values (track_worker_function.function_name, clock_timestamp(), clock_timestamp(), clock_timestamp())
  on conflict (function_name) do update set
    last_invoked_at = excluded.last_invoked_at,
    updated_at = excluded.updated_at;
end;

comment on function pgflow.track_worker_function(text) is
'Tells pgflow of a worker function that ensure_workers() shall keep running. A function that is known already keeps its start_mode and whether it is enabled. As in pgflow 0.14.';
