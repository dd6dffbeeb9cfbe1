create function pgflow.insert_steps(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  insert into pgflow.steps (
    flow_slug,
    step_slug,
    step_type,
    step_index,
    deps_count,
    opt_max_attempts,
    opt_base_delay,
    opt_timeout,
    opt_start_delay,
    required_input_pattern,
    forbidden_input_pattern,
    when_unmet,
    when_exhausted,
    queue_name
  )
  select
    insert_steps.flow_slug,
    given.step_slug,
    given.step_type,
    given.step_index,
    cardinality(given.dep_slugs),
    given.max_attempts,
    given.base_delay,
    given.timeout,
    given.start_delay,
    given.required_input_pattern,
    given.forbidden_input_pattern,
    given.when_unmet,
    given.when_exhausted,
    route.queue_name
  from pgflow.shape_steps(insert_steps.shape) as given
  inner join pgflow.flow_routes(
    insert_steps.flow_slug,
    insert_steps.queue_mode,
    pgflow.shape_slugs(insert_steps.shape)
  ) as route
    on route.step_index = given.step_index
  order by given.step_index;

  insert into pgflow.deps (flow_slug, dep_slug, step_slug)
  select insert_steps.flow_slug, dependency.slug, given.step_slug
  from pgflow.shape_steps(insert_steps.shape) as given
  cross join lateral unnest(given.dep_slugs) as dependency (slug)
  order by given.step_index, dependency.slug collate "C";
end
$function$;

comment on function pgflow.insert_steps(text, jsonb, text) is
'Internal: writes the steps, routes and dependencies of a checked shape. The flow and its queues are there already.';
