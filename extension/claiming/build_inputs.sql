create function pgflow.build_inputs(tasks pgflow.step_tasks[])
returns table (message_id bigint, input jsonb, flow_input jsonb)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- In PL/pgSQL, where the plan is kept: every claim comes here.
  return query
  with claimed_tasks as materialized (
    select
      task.flow_slug,
      task.run_id,
      task.step_slug,
      task.message_id,
      task.task_index,
      step.step_type,
      step.deps_count
    from unnest(build_inputs.tasks) as task
    inner join pgflow.steps as step
      on step.flow_slug = task.flow_slug
      and step.step_slug = task.step_slug
  ),
  -- The source of a map is read once for all its tasks in the batch, and only the stretch that they need:
  -- reading it for each task would make the cost of a task grow with the size of its map.
  map_elements as materialized (
    select
      stretch.run_id,
      stretch.step_slug,
      (stretch.first_index + element.position - 1)::int as task_index,
      element.value as input
    from (
      select
        task.flow_slug,
        task.run_id,
        task.step_slug,
        task.deps_count,
        min(task.task_index) as first_index,
        max(task.task_index) as last_index
      from claimed_tasks as task
      where task.step_type = 'map'
      group by task.flow_slug, task.run_id, task.step_slug, task.deps_count
    ) as stretch
    cross join lateral (
      select
        case
          when stretch.deps_count = 0 then (
            select run.input from pgflow.runs as run where run.run_id = stretch.run_id
          )
          else (
            select state.output
            from pgflow.deps as dep
            inner join pgflow.step_states as state
              on state.run_id = stretch.run_id
              and state.step_slug = dep.dep_slug
            where dep.flow_slug = stretch.flow_slug
              and dep.step_slug = stretch.step_slug
          )
        end as elements
    ) as source
    cross join lateral jsonb_array_elements(
      jsonb_path_query_array(
        source.elements,
        'strict $[$first to $last]',
        jsonb_build_object('first', stretch.first_index, 'last', stretch.last_index)
      )
    ) with ordinality as element (value, position)
  )
  select
    task.message_id,
    case
      when task.step_type = 'map' then map_elements.input
      when task.deps_count = 0 then '{}'::jsonb
      else pgflow.dependency_outputs(task.run_id, task.flow_slug, task.step_slug)
    end,
    case
      when task.step_type = 'single' and task.deps_count = 0 then (
        select run.input from pgflow.runs as run where run.run_id = task.run_id
      )
    end
  from claimed_tasks as task
  left join map_elements
    on map_elements.run_id = task.run_id
    and map_elements.step_slug = task.step_slug
    and map_elements.task_index = task.task_index;
end
$function$;

comment on function pgflow.build_inputs(pgflow.step_tasks[]) is
'Internal: what the handlers of tasks get: for a map its element, for a root step an empty object and the run''s input beside it, else the outputs of the dependencies. Fails where PostgreSQL can''t hold one of them.';
