create function pgflow.shape_slugs(shape jsonb)
returns text[]
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select array(
    select given.step_slug
    from pgflow.shape_steps(shape_slugs.shape) as given
    order by given.step_index
  );
$function$;

comment on function pgflow.shape_slugs(jsonb) is 'Internal: the step slugs of a checked shape, in order.';
