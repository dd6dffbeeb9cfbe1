create function pgflow.check_registration(worker_id uuid, function_name text, flow_slug text, start_mode text)
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
declare
  missing text := case
    when worker_id is null then 'worker_id'
    when coalesce(btrim(function_name), '') = '' then 'function_name'
    when flow_slug is null then 'flow_slug'
  end;
begin
  if missing is not null then
    raise exception using
      errcode = 'PF019',
      message = format('A worker can''t be registered without a %s.', missing),
      detail = format(
        'worker_id is %s, function_name %s, flow_slug %s.',
        coalesce(worker_id::text, 'null'),
        coalesce(quote_literal(function_name), 'null'),
        coalesce(quote_literal(flow_slug), 'null')
      ),
      hint = 'Call pgflow.register_worker(worker_id => gen_random_uuid(), function_name => ..., flow_slug => ...).';
  end if;

  if start_mode not in ('http', 'process') then
    raise exception using
      errcode = 'PF019',
      message = format('Start mode "%s" of worker function "%s" is not known.', start_mode, function_name),
      detail = 'A start mode is http (ensure_workers() starts the workers) or process (they start by themselves).',
      hint = 'Pass one of the two, or null to keep what is stored.';
  end if;
end
$function$;

comment on function pgflow.check_registration(uuid, text, text, text) is
'Internal: raises PF019 for an argument of register_worker() that is missing or not one of the known values.';
