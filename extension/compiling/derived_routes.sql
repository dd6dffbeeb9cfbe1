create function pgflow.derived_routes(flow_slug text, queue_mode text, step_slugs text[])
returns jsonb
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select coalesce(
    jsonb_agg(
      jsonb_build_object('step_slug', route.step_slug, 'queue_name', route.queue_name)
      order by route.step_index
    ),
    '[]'
  )
  from pgflow.flow_routes(derived_routes.flow_slug, derived_routes.queue_mode, derived_routes.step_slugs) as route;
$function$;

comment on function pgflow.derived_routes(text, text, text[]) is
'Internal: the route map of a complete flow as clients write it: [{"step_slug": ..., "queue_name": ...}, ...] in step order. Raises what flow_routes() raises.';
