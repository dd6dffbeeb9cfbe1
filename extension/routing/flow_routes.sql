create function pgflow.flow_routes(flow_slug text, queue_mode text, step_slugs text[])
returns table (step_index int, step_slug text, queue_name text)
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
begin
  if flow_routes.queue_mode = 'step' then
    return query
    select route.step_index, route.step_slug, route.queue_name
    from pgflow.resolve_step_queues(flow_routes.flow_slug, flow_routes.step_slugs) as route
    order by route.step_index;
    return;
  end if;

  if length(flow_routes.flow_slug) > pgflow.max_queue_name_length() then
    raise exception using
      errcode = 'PF015',
      message = format('Flow slug "%s" is too long for a queue name.', flow_routes.flow_slug),
      detail = format(
        'The slug is %s characters; PGMQ allows at most %s for a queue.',
        length(flow_routes.flow_slug),
        pgflow.max_queue_name_length()
      ),
      hint = format('Shorten the flow slug to at most %s characters.', pgflow.max_queue_name_length());
  end if;

  return query
  select (step.position - 1)::int, step.slug, lower(flow_routes.flow_slug collate "C")
  from unnest(flow_routes.step_slugs) with ordinality as step (slug, position)
  order by step.position;
end
$function$;

comment on function pgflow.flow_routes(text, text, text[]) is
'Internal: the route of every step of a complete flow in either queue mode, in step order: the flow''s one queue, or what resolve_step_queues() gives. Reads no table. Raises PF015 (slug too long for the one queue) and what resolve_step_queues() raises.';
