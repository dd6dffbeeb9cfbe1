create function pgflow.complete_steps(endings pgflow.step_ending[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[] := array(select ending.run_id from unnest(endings) as ending);
  step_slugs text[] := array(select ending.step_slug from unnest(endings) as ending);
begin
  update pgflow.step_states as state
  set
    status = 'completed',
    started_at = coalesce(state.started_at, clock_timestamp()),
    completed_at = clock_timestamp(),
    remaining_tasks = 0,
    output = case
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
  from (select every.* from unnest(endings) as every limit cardinality(endings)) as ending
  cross join pgflow.steps as step
  where state.run_id = ending.run_id
    and state.step_slug = ending.step_slug
    and step.flow_slug = state.flow_slug
    and step.step_slug = state.step_slug;

  perform pgflow.emit_step_events(run_ids, step_slugs);
  perform pgflow.release_dependents(run_ids, step_slugs);
end
$function$;

comment on function pgflow.complete_steps(pgflow.step_ending[]) is
'Internal: completes steps whose last task has a result, and empty maps. The output of a single step is its task''s; that of a map the array of all outputs in task order.';
