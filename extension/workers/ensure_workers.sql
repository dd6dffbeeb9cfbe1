create function pgflow.ensure_workers()
returns table (function_name text, invoked boolean, request_id bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  due text[];
  request record;
begin
  -- A function that another call is starting right now is not started twice.
  select array_agg(waiting.function_name order by waiting.function_name collate "C")
  into due
  from (
    select function.function_name
    from pgflow.worker_functions as function
    where function.enabled
      and function.start_mode = 'http'
      and (
        pgflow.is_local()
        or (
          coalesce(function.last_invoked_at < clock_timestamp() - function.debounce, true)
          and not exists (
            select
            from pgflow.workers as worker
            where worker.function_name = function.function_name
              and pgflow.worker_is_live(worker, function.debounce)
          )
        )
      )
    order by function.function_name
    for no key update skip locked
  ) as waiting;

  if due is null then
    return;
  end if;

  select start_request.base_url, start_request.headers into request from pgflow.start_request();

  if not found then
    return query
    select due_function.name, false, null::bigint
    from unnest(due) as due_function (name);
    return;
  end if;

  return query execute
    'select due.name, true, net.http_post(url => $2 || due.name, headers => $3, body => ''{}''::jsonb) '
    'from unnest($1) as due (name)'
  using due, request.base_url, request.headers;

  update pgflow.worker_functions as function
  set
    last_invoked_at = clock_timestamp(),
    updated_at = clock_timestamp()
  where function.function_name = any(due);
end
$function$;

comment on function pgflow.ensure_workers() is
'Starts workers: calls every enabled function of start_mode http that has no live worker and was not called within its debounce (in local mode every one), once, through pg_net. One row for each that was due; invoked is false where it could not be called, because pg_net or a vault secret is missing: then nothing is recorded and process workers go on as ever. As in pgflow 0.14.';
