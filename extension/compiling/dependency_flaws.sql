create function pgflow.dependency_flaws(steps jsonb)
returns table (step_index int, flaw text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with step as (
    select (item.position - 1)::int as step_index, item.step, item.step ->> 'slug' as step_slug
    from jsonb_array_elements(dependency_flaws.steps) with ordinality as item (step, position)
  ),
  position_of as (
    select step.step_slug, min(step.step_index) as step_index
    from step
    group by step.step_slug
  ),
  dependency as (
    select step.step_index, step.step_slug, dependency.value, dependency.value #>> '{}' as dep_slug
    from step
    cross join lateral jsonb_array_elements(
      case when jsonb_typeof(step.step -> 'dependencies') = 'array' then step.step -> 'dependencies' else '[]' end
    ) as dependency (value)
  )
  select step.step_index, format('must be an array, but is %s', pgflow.json_excerpt(step.step -> 'dependencies'))
  from step
  where jsonb_typeof(step.step -> 'dependencies') <> 'array'
  union all
  select judged.step_index, judged.flaw
  from (
    select
      dependency.step_index,
      case
        when jsonb_typeof(dependency.value) <> 'string' then
          format('must hold slugs, but holds %s', pgflow.json_excerpt(dependency.value))
        when dependency.dep_slug = dependency.step_slug then 'names the step itself'
        when position_of.step_index is null then
          format('names %s, which is no step of the flow', pgflow.json_excerpt(dependency.value))
        -- What has to come earlier can't close a cycle.
        when position_of.step_index > dependency.step_index then
          format(
            'names %s, which only comes later, at index %s; a cycle or a wrong order',
            pgflow.json_excerpt(dependency.value),
            position_of.step_index
          )
      end as flaw
    from dependency
    left join position_of
      on position_of.step_slug = dependency.dep_slug
  ) as judged
  where judged.flaw is not null
  union all
  select
    step.step_index,
    format(
      'holds %s steps, but a map can have at most one dependency',
      count(distinct dependency.dep_slug)
    )
  from step
  inner join dependency
    on dependency.step_index = step.step_index
  where step.step ->> 'stepType' = 'map'
  group by step.step_index
  having count(distinct dependency.dep_slug) > 1;
$function$;

comment on function pgflow.dependency_flaws(jsonb) is
'Internal: what is wrong with the dependencies of an array of steps: of the wrong type, missing, later, the step itself, or more than one for a map.';
