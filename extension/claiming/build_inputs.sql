create function pgflow.build_inputs(tasks pgflow.step_tasks[])
returns table (
  message_id bigint,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempts_count int,
  input jsonb,
  flow_input jsonb
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- In PL/pgSQL, where the plan is kept: every claim comes here.
  return query
  select
    task.message_id,
    claimed.flow_slug,
    claimed.run_id,
    claimed.step_slug,
    task.task_index,
    task.attempts_count,
    case
      when step.step_type = 'map' then given.input -> (task.task_index - claimed.first_index)
      else coalesce(given.input, '{}')
    end,
    given.flow_input
  from (
    select
      every.flow_slug,
      every.run_id,
      every.step_slug,
      min(every.task_index) as first_index,
      max(every.task_index) as last_index,
      array_agg(every.message_id) as message_ids,
      array_agg(every.task_index) as task_indexes,
      array_agg(every.attempts_count) as attempts_counts,
      array_agg(every.ordinality) as positions
    from unnest(tasks) with ordinality as every
    group by every.flow_slug, every.run_id, every.step_slug
  ) as claimed
  cross join lateral (
    select found.step_type, found.deps_count
    from pgflow.steps as found
    where found.flow_slug = claimed.flow_slug
      and found.step_slug = claimed.step_slug
    limit 1
  ) as step
  cross join lateral (
    select
      case
        when step.step_type = 'single' then (
          select gathered.outputs
          from pgflow.dependency_outputs as gathered
          where step.deps_count > 0
            and gathered.run_id = claimed.run_id
            and gathered.flow_slug = claimed.flow_slug
            and gathered.step_slug = claimed.step_slug
        )
        -- The source of a map is read once for all its tasks in the batch, and only the stretch that they need:
        -- reading it for each task would make the cost of a task grow with the size of its map.
        else jsonb_path_query_array(
          case
            when step.deps_count = 0 then (
              select run.input from pgflow.runs as run where run.run_id = claimed.run_id
            )
            else (
              select state.output
              from pgflow.deps as dep
              inner join pgflow.step_states as state
                on state.run_id = claimed.run_id
                and state.step_slug = dep.dep_slug
              where dep.flow_slug = claimed.flow_slug
                and dep.step_slug = claimed.step_slug
            )
          end,
          'strict $[$first to $last]',
          jsonb_build_object('first', claimed.first_index, 'last', claimed.last_index)
        )
      end as input,
      case
        when step.step_type = 'single' and step.deps_count = 0 then (
          select run.input from pgflow.runs as run where run.run_id = claimed.run_id
        )
      end as flow_input
    offset 0
  ) as given
  cross join lateral unnest(claimed.message_ids, claimed.task_indexes, claimed.attempts_counts, claimed.positions)
    as task (message_id, task_index, attempts_count, position)
  order by task.position;
end
$function$;

comment on function pgflow.build_inputs(pgflow.step_tasks[]) is
'Internal: what the handlers of tasks get, in the order of the tasks: for a map its element, for a root step an empty object and the run''s input beside it, else the outputs of the dependencies. Fails where PostgreSQL can''t hold one of them.';
