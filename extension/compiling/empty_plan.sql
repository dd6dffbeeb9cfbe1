create function pgflow.empty_plan()
returns jsonb
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select jsonb_build_object(
    'error', null,
    'differences', '[]'::jsonb,
    'routes', '[]'::jsonb,
    'creates', '[]'::jsonb,
    'drops', '[]'::jsonb,
    'loses', jsonb_build_object('runs', 0, 'tasks', 0, 'messages', 0),
    'collisions', '[]'::jsonb
  );
$function$;

comment on function pgflow.empty_plan() is
'Internal: the plan of a compilation that changes nothing, with every key but the status.';
