create function pgflow.check_routes(flow_slug text, step_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  faults text;
begin
  select string_agg(fault.fault, ' ')
  into faults
  from pgflow.route_faults(check_routes.flow_slug, check_routes.step_slug) as fault;

  if faults is not null then
    raise exception using
      errcode = 'PF007',
      message = format('The routes of flow "%s" are not what was compiled.', check_routes.flow_slug),
      detail = faults,
      hint = 'A worker would poll the wrong queue. Find out who changed the queue or the route; '
        'pgflow.check_integrity() lists every fault.';
  end if;
end
$function$;

comment on function pgflow.check_routes(text, text) is
'Internal: raises PF007, listing persisted and derived routes, when a witness of a flow''s routes (of one step''s, when given) disagrees.';
