create function pgflow.complete_runs(run_ids uuid[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completed_runs uuid[];
begin
  with completed as (
    update pgflow.runs as run
    set
      status = 'completed',
      completed_at = clock_timestamp(),
      output = (
        select coalesce(jsonb_object_agg(state.step_slug, state.output), '{}')
        from pgflow.step_states as state
        where state.run_id = run.run_id
          and state.status = 'completed'
          and not exists (
            select
            from pgflow.deps as dep
            where dep.flow_slug = state.flow_slug
              and dep.dep_slug = state.step_slug
          )
      )
    where run.run_id = any(run_ids)
      and run.status = 'started'
      and run.remaining_steps = 0
    returning run.run_id
  )
  select array_agg(completed.run_id) into completed_runs from completed;

  if completed_runs is not null then
    perform pgflow.emit_run_events(completed_runs);
  end if;
end
$function$;

comment on function pgflow.complete_runs(uuid[]) is
'Internal: completes the runs that have no remaining step. The output of a run holds the output of every completed step without dependents, by slug.';
