create function pgflow.complete_steps(run_ids uuid[], step_slugs text[], tasks int[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completed_runs uuid[];
  completed_steps text[];
begin
  with counted as (
    update pgflow.step_states as state
    set
      remaining_tasks = coalesce(state.remaining_tasks, 0) - ended.tasks,
      status = case when coalesce(state.remaining_tasks, 0) = ended.tasks then 'completed' else state.status end,
      started_at = coalesce(state.started_at, clock_timestamp()),
      completed_at = case when coalesce(state.remaining_tasks, 0) = ended.tasks then clock_timestamp() end,
      output = case
        when coalesce(state.remaining_tasks, 0) > ended.tasks then null
        when state.initial_tasks = 0 then '[]'
        when step.step_type = 'map' then (
          select jsonb_agg(task.output order by task.task_index)
          from pgflow.step_tasks as task
          where task.run_id = state.run_id
            and task.step_slug = state.step_slug
        )
        else (
          select task.output
          from pgflow.step_tasks as task
          where task.run_id = state.run_id
            and task.step_slug = state.step_slug
        )
      end
    from (
      select every.run_id, every.step_slug, every.tasks
      from unnest(run_ids, step_slugs, complete_steps.tasks) as every (run_id, step_slug, tasks)
      limit cardinality(run_ids)
    ) as ended
    cross join pgflow.steps as step
    where state.run_id = ended.run_id
      and state.step_slug = ended.step_slug
      and step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    returning state.run_id, state.step_slug, state.status
  )
  select array_agg(counted.run_id), array_agg(counted.step_slug)
  into completed_runs, completed_steps
  from counted
  where counted.status = 'completed';

  if completed_runs is null then
    return null;
  end if;

  perform pgflow.emit_step_events(completed_runs, completed_steps);

  return pgflow.release_dependents(completed_runs, completed_steps);
end
$function$;

comment on function pgflow.complete_steps(uuid[], text[], int[]) is
'Internal: takes so many finished tasks off each of these steps, and completes those that have none left: steps whose last task has a result, and empty maps (0 tasks). The output of a single step is its task''s; that of a map the array of all outputs in task order. Returns what follows from the completed ones; null when there are none.';
