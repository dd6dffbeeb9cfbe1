create function pgflow.add_step(
  flow_slug text,
  step_slug text,
  deps_slugs text[] default '{}',
  max_attempts int default null,
  base_delay int default null,
  timeout int default null,
  start_delay int default null,
  step_type text default 'single',
  required_input_pattern jsonb default null,
  forbidden_input_pattern jsonb default null,
  when_unmet text default 'skip',
  when_exhausted text default 'fail'
)
returns pgflow.steps
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  step pgflow.steps;
  dep_slugs constant text[] := array(
    select distinct dependency.slug
    from unnest(add_step.deps_slugs) as dependency (slug)
  );
begin
  perform pgflow.lock_slug(add_step.flow_slug);

  if exists (
    select
    from pgflow.flows as flow
    where flow.flow_slug = add_step.flow_slug
      and flow.queue_mode = 'step'
  ) then
    raise exception using
      errcode = 'PF009',
      message = format('Step "%s" can''t be added to flow "%s".', add_step.step_slug, add_step.flow_slug),
      detail = 'The flow has a queue for every step, and routes are only known for a complete shape.',
      hint = 'Compile the complete shape with pgflow.ensure_flow_compiled(), under a new flow slug.';
  end if;

  perform pgflow.check_routes(add_step.flow_slug, null);

  if add_step.step_type = 'map' and cardinality(add_step.deps_slugs) > 1 then
    raise exception using
      errcode = 'PF008',
      message = format(
        'Map step "%s" can have at most one dependency, but %s were provided: %s',
        add_step.step_slug,
        cardinality(add_step.deps_slugs),
        array_to_string(add_step.deps_slugs, ', ')
      ),
      detail = format('A map takes its elements from one array, in flow "%s".', add_step.flow_slug),
      hint = 'Put a single step before the map that joins its inputs into one array.';
  end if;

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
    add_step.flow_slug,
    add_step.step_slug,
    add_step.step_type,
    coalesce(max(existing.step_index) + 1, 0),
    cardinality(dep_slugs),
    add_step.max_attempts,
    add_step.base_delay,
    add_step.timeout,
    add_step.start_delay,
    add_step.required_input_pattern,
    add_step.forbidden_input_pattern,
    add_step.when_unmet,
    add_step.when_exhausted,
    lower(add_step.flow_slug collate "C")
  from pgflow.steps as existing
  where existing.flow_slug = add_step.flow_slug
  on conflict on constraint steps_pkey do nothing
  returning steps.*
  into step;

  if found then
    insert into pgflow.deps (flow_slug, dep_slug, step_slug)
    select add_step.flow_slug, dependency.slug, add_step.step_slug
    from unnest(dep_slugs) as dependency (slug)
    order by dependency.slug collate "C";

    return step;
  end if;

  select existing.*
  into step
  from pgflow.steps as existing
  where existing.flow_slug = add_step.flow_slug
    and existing.step_slug = add_step.step_slug;

  return step;
end
$function$;

comment on function pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text) is
'Adds a step at the end of a flow-mode flow and returns its row; one that exists is returned as it is. deps_slugs: steps it waits for. max_attempts counts starts; base_delay, timeout and start_delay are in seconds; null takes the flow''s (start_delay: 0). step_type: single or map. when_unmet and when_exhausted: fail, skip or skip-cascade. Raises PF009 (step-mode flow), PF007 (the queue of the flow is not what was made with it), PF008 (a map with several dependencies); other bad values violate the tables'' constraints.';
