create function pgflow.refuse_routing(flow_slug text, queue_mode text, step_slugs text[], differences text[])
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  persisted_mode text;
begin
  select flow.queue_mode
  into persisted_mode
  from pgflow.flows as flow
  where flow.flow_slug = refuse_routing.flow_slug;

  raise exception using
    errcode = 'PF007',
    message = format('The routing of flow "%s" is not what was compiled: %s', refuse_routing.flow_slug, differences[1]),
    detail = concat_ws(
      ' ',
      format('Queue mode: persisted "%s", given "%s".', persisted_mode, refuse_routing.queue_mode),
      (
        select string_agg(
          format(
            'Step "%s" at index %s: persisted "%s", derived "%s".',
            derived.step_slug,
            derived.step_index,
            step.queue_name,
            derived.queue_name
          ),
          ' '
          order by derived.step_index
        )
        from pgflow.flow_routes(
          refuse_routing.flow_slug,
          refuse_routing.queue_mode,
          refuse_routing.step_slugs
        ) as derived
        left join pgflow.steps as step
          on step.flow_slug = refuse_routing.flow_slug
          and step.step_slug = derived.step_slug
      ),
      (
        select string_agg(fault.fault, ' ' order by fault.step_index)
        from pgflow.route_faults(refuse_routing.flow_slug) as fault
        where fault.persisted = fault.derived
      )
    ),
    hint = format(
      'Another queue mode or other routes need a new flow slug. A queue that is gone or was made again: '
      'select * from pgflow.repair_queues(%L). Where data may be lost, pass allow_data_loss.',
      refuse_routing.flow_slug
    );
end
$function$;

comment on function pgflow.refuse_routing(text, text, text[], text[]) is
'Internal: raises PF007 with the persisted and the derived route of every step, and what is wrong with the queues.';
