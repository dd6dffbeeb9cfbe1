create function pgflow.check_foreign_routes(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  stray pgflow.steps;
begin
  select step.*
  into stray
  from pgflow.queues as owner
  inner join pgflow.steps as step
    on step.queue_name = owner.queue_name
    and step.flow_slug <> owner.flow_slug
  where owner.flow_slug = check_foreign_routes.flow_slug
  order by owner.queue_name collate "C", step.flow_slug collate "C", step.step_index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF007',
      message = format(
        'Queue "%s" of flow "%s" can''t be dropped: step "%s" of flow "%s" routes to it.',
        stray.queue_name,
        check_foreign_routes.flow_slug,
        stray.step_slug,
        stray.flow_slug
      ),
      detail = (select string_agg(fault.fault, ' ') from pgflow.route_faults(stray.flow_slug) as fault),
      hint = format(
        'Somebody edited the owner or the route by hand. Set it right; or, when nobody needs flow "%s", '
        'select pgflow.delete_flow_and_data(%L).',
        stray.flow_slug,
        stray.flow_slug
      );
  end if;
end
$function$;

comment on function pgflow.check_foreign_routes(text) is
'Internal: returns when no step of another flow routes to a queue that the flow owns, so that its queues can be dropped. Raises PF007, naming queue and step, with what is wrong in the other flow.';
